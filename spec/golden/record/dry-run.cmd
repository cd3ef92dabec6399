microscope record --dry-run -F 499 -g -o x.usprof ./prog -F 3 -- --tree
