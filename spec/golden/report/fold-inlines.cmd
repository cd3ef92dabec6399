microscope report --fold-inlines --limit 3 small.usprof | tail -n 5; microscope report --fold-inlines --tree --limit 3 small.usprof | tail -n 4
