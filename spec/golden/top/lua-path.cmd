# normalise: prefix
microscope lua-path
