microscope record --preset none ls
