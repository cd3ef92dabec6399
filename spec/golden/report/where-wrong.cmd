for w in 'thread' 'time > 5' 'cpu = 1 or' 'cpu ~ 1' 'function ~ /(/' 'label.x <'; do microscope report --where "$w" small.usprof; done
