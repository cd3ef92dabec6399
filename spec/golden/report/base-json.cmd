microscope report other.usprof --base small.usprof --format json --limit 1 | sed 1,3d
