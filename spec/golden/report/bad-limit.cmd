microscope report --limit none small.usprof
