microscope report tiny.usprof
