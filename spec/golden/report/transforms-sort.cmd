microscope report --collapse-recursion --sort total --min-percent 30 small.usprof; microscope report --sort name --limit 3 small.usprof | sed -n '/SELF/,/(--/p'
