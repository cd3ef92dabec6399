microscope report other.usprof --base small.usprof --limit 6
