microscope symbolize -o - $FIXTURES/tiny.usprof
