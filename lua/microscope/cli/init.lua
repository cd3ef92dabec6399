--- cli - the command line.
local core = require("microscope.core")
local M = {}
function M.main(argv)
  io.stdout:write(argv[0], " ", core.prefix, "\n")
  return 0
end
return M
