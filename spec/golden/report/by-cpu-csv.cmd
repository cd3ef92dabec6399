microscope report --by cpu --format csv small.usprof
