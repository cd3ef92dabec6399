microscope symbolize --debug-dir nowhere $FIXTURES/tiny.usprof
