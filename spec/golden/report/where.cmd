microscope report --where 'thread ~ worker and time = 100ms..0.2s and not innermost = lookup_Index_9' --limit 3 small.usprof
