microscope record --dry-run -e cycles --preset max prog
