microscope report --samples --limit 2 --format json tiny.usprof
