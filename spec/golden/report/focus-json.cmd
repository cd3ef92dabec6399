microscope report --focus lookup_Index_9 --limit 2 --format json small.usprof | sed 1,3d
