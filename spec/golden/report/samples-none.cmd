microscope report --samples --where 'time > 3600s' small.usprof
