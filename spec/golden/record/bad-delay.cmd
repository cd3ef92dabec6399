microscope record --delay 99999999999 ls
