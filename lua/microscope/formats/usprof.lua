--- usprof: microscope's own captures (docs/format.md).

local losses = require("microscope.losses")
local output = require("microscope.output")

local PART = 1024 * 1024

-- A file is copied as it is: what this version does not know of it stays in it.
local function copy(path, out)
  local file, err = io.open(path, "rb")
  if not file then return nil, err end
  while true do
    local bytes = file:read(PART)
    if not bytes then break end
    out:write(bytes)
  end
  file:close()
end

return {
  name = "usprof",
  summary = "Captures of microscope.",
  extensions = { ".usprof" },
  keeps = losses.everything(),
  detect = function(head) return head:sub(1, 8) == "\137USPROF\n" end,
  write = function(cap, path)
    return output.with(path, nil, function(out) return copy(cap.path, out) end)
  end,
}
