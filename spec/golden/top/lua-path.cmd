# normalise: prefix
env -u LUA_PATH microscope lua-path | tr ';' '\n' | head -n 2
microscope lua-path | grep -c '[.]/'
