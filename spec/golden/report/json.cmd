microscope report tiny.usprof --format json --tree
