microscope report nothing.usprof
