microscope record --pid 12,x
