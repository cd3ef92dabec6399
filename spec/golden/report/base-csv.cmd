microscope report other.usprof --base small.usprof --format csv --limit 2
