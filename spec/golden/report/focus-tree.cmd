microscope report --focus lookup_Index_9 --tree --min-percent 10 small.usprof; microscope report --focus lookup_Index_9 --tree --invert --min-percent 25 --limit 6 small.usprof | tail -n 8
