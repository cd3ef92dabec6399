microscope record --help
