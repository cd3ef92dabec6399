unset COLUMNS; microscope report small.usprof --limit 3 | cat
