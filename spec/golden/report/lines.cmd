microscope report small.usprof --lines --limit 8
