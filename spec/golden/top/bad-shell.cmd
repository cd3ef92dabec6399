microscope completion tcsh
