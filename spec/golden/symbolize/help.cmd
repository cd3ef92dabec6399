microscope symbolize --help
