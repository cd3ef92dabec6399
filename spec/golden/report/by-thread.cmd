microscope report --by thread small.usprof
