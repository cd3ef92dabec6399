mkdir here && cd here && cp ../tiny.usprof microscope.usprof && microscope report --limit 1
