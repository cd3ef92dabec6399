microscope report other.usprof --base small.usprof --focus lookup_Index_9 --limit 3 | tail -n 14
