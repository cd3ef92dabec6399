microscope report --where 'cpu = 1 and function = lookup' small.usprof; microscope report --where 'label.x = 1' small.usprof
