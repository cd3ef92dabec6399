microscope report --tree --min-percent 8 small.usprof
