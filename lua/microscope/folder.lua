--- folder.lua - what is in a folder.

local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C

local M = {}

local names_type = ffi.typeof("struct mic_host_names *[1]")

--- The names in a folder that end in `ending` and have something before it, in the order of their
-- bytes, hidden ones left out; of a folder that cannot be read none, and errno.
function M.names(path, ending)
  local handle, names = names_type(), {}
  local errno = C.mic_host_names(path, handle)
  if errno ~= 0 then return names, errno end
  local i = 0
  while true do
    local name = C.mic_host_name(handle[0], i)
    if name == nil then break end
    name, i = ffi.string(name), i + 1
    if #name > #ending and name:sub(-#ending) == ending then names[#names + 1] = name end
  end
  C.mic_host_names_free(handle[0])
  return names
end

return M
