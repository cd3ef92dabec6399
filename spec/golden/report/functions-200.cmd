COLUMNS=200 microscope report small.usprof --limit 12
