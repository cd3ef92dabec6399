microscope record --pid 1 ls
