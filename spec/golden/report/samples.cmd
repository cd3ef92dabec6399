COLUMNS=100 microscope report --samples --limit 2 small.usprof
