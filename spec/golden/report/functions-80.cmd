microscope report small.usprof --limit 12
