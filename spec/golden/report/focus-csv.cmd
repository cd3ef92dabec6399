microscope report --focus lookup_Index_9 --limit 2 --format csv small.usprof
