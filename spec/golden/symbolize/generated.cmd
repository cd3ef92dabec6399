cp $FIXTURES/tiny.usprof t.usprof; microscope symbolize -q t.usprof && microscope symbolize --unnamed t.usprof
