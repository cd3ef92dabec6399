microscope report --drop '*' small.usprof
