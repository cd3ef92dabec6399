COLUMNS=120 microscope report other.usprof --base small.usprof --tree --min-percent 30 --limit 12
