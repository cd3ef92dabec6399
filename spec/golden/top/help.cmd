microscope --help
