COLUMNS=120 microscope report other.usprof --base small.usprof --share --sort total --limit 4
