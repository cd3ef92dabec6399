microscope report --fold-inlines --limit 3 small.usprof | sed -n '/SELF/,/(--/p'; microscope report --fold-inlines --tree --limit 3 small.usprof | sed -n '/SELF/,/(--/p'
