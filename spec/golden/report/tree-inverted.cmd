microscope report --tree --invert --min-percent 10 small.usprof
