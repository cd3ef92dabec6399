COLUMNS=120 microscope report --by file,module --limit 6 small.usprof
