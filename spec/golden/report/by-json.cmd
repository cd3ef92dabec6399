microscope report --by module,cpu --limit 2 --format json small.usprof | sed 1,3d
