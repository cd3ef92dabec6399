microscope report --focus 'lookup*' small.usprof
