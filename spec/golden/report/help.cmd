microscope report --help
