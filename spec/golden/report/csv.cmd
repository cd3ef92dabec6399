microscope report --format csv --limit 3 small.usprof; microscope report --format csv --lines --limit 2 small.usprof
