microscope report --focus Index small.usprof
