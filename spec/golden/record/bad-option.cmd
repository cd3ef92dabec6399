microscope record --frobnicate ls
