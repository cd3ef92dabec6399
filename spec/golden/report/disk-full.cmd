microscope report small.usprof > /dev/full
