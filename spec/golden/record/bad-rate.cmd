microscope record --rate 0 ls
