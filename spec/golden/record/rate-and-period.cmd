microscope record -F 99 -c 1000 ls
