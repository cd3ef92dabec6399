microscope record --dry-run -c 500000 --stack-bytes 64K --budget 5 -- prog
