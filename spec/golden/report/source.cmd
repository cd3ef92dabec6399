microscope report --source cycles small.usprof; microscope report --source cpu-clock --native --limit 1 small.usprof | sed -n '/SELF/,/(--/p'
