microscope report --format csv --tree --limit 4 small.usprof; microscope report --format csv --tree --invert --limit 3 small.usprof
