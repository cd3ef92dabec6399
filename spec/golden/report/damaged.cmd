microscope report damaged.usprof
