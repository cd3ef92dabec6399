microscope report --by thread,function --limit 6 small.usprof
