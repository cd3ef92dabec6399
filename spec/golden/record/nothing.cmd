microscope record
