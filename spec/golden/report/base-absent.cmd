microscope report other.usprof --base small.usprof --drop none_such
