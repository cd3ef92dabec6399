microscope report tiny.usprof --format json --limit 1
