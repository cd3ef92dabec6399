microscope report --by line,thread --limit 2 --format csv small.usprof
