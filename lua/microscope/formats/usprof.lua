--- usprof: microscope's own captures (docs/format.md).

local capture = require("microscope.capture")
local losses = require("microscope.losses")
local output = require("microscope.output")
local writer = require("microscope.writer")

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

-- A folder of captures is one in memory only: its rows are written anew.  Strings stand once in
-- it, so each gets the id that it has.
local function write_rows(cap, path, ctx)
  return writer.with(path, function(w)
    for id = 0, cap:rows("strings") - 1 do
      if w:string(cap:string(id)) ~= id then
        ctx.fail("its strings are not distinct, so its rows cannot be written anew")
      end
    end
    for _, name in ipairs(capture.tables()) do
      if name ~= "strings" and name ~= "string_bytes" then
        local columns = {}
        for _, column in ipairs(cap:columns(name)) do columns[column.name] = column.data end
        w:rows(name, cap:rows(name), columns)
      end
    end
  end)
end

return {
  name = "usprof",
  summary = "Captures of microscope.",
  extensions = { ".usprof" },
  keeps = losses.everything(),
  detect = function(head) return head:sub(1, 8) == "\137USPROF\n" end,
  write = function(cap, path, ctx)
    if capture.is_folder(cap.path) then return write_rows(cap, path, ctx) end
    return output.with(path, nil, function(out) return copy(cap.path, out) end)
  end,
}
