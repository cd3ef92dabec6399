microscope report --by threads small.usprof; microscope report --by cpu,cpu small.usprof; microscope report --by cpu,thread,file small.usprof
