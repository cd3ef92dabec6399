microscope --version
