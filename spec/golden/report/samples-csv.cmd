microscope report --samples --limit 2 --format csv --lines --where "cpu = 1" tiny.usprof
