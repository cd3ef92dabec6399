DEBUGINFOD_URLS= microscope symbolize --debuginfod $FIXTURES/tiny.usprof
