microscope report small.usprof --base small.usprof
