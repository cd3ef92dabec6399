COLUMNS=200 microscope report --tree --min-percent 15 small.usprof
