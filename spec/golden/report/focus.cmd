microscope report --focus lookup_Index_9 --min-percent 10 --limit 5 small.usprof
