microscope record --duration 0 ls
