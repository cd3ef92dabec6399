microscope report --source cycles small.usprof; microscope report --source cpu-clock --native --limit 1 small.usprof | tail -n 3
