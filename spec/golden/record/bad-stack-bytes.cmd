microscope record --stack-bytes 12 ls
