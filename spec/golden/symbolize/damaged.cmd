microscope symbolize damaged.usprof
