microscope recrod
