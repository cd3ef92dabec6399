microscope record --budget 0.05 ls
