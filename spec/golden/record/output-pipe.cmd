microscope record -o - ls
