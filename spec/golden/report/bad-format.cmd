microscope report --format yaml small.usprof
