microscope record --dry-run -p 1,2 --pid=3 --preset prod --duration 2.5 --no-children
