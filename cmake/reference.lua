-- reference.lua - keep what stands between the marks of a document what a program makes of it.

local BEGIN, END = "<!-- reference: begin -->\n", "<!-- reference: end -->\n"

local M = {}

function M.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

--- Put text between the marks of a document; with "--check" in arg[1] status 1 and one line when
-- another stands there.
function M.put(path, text)
  local old = M.read(path)
  local from, first = old:find(BEGIN, 1, true)
  local last = first and old:find(END, first, true)
  if not last then error(path .. ": the marks of the reference are missing", 0) end
  local new = old:sub(1, from - 1) .. BEGIN .. "\n" .. text .. old:sub(last)
  if arg[1] == "--check" then
    if new ~= old then
      io.stderr:write(("%s is stale: run luajit %s\n"):format(path, arg[0]))
      os.exit(1)
    end
  elseif new ~= old then
    local file = assert(io.open(path, "wb"))
    assert(file:write(new))
    assert(file:close())
  end
end

return M
