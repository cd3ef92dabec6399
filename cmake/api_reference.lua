-- api_reference.lua - the reference of docs/api.md, from the comments of the public API.
--
--   luajit cmake/api_reference.lua          rewrite what stands between the marks
--   luajit cmake/api_reference.lua --check  status 1 and one line when it is stale
--
-- Run in the checkout's root.  Sources: lua/microscope/doc.lua names them.

package.path = "./lua/?.lua;" .. package.path
local doc = require("microscope.doc")

local BEGIN, END = "<!-- reference: begin -->\n", "<!-- reference: end -->\n"
local DOC = "docs/api.md"

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

local old = read(DOC)
local from, first = old:find(BEGIN, 1, true)
local last = first and old:find(END, first, true)
if not last then error(DOC .. ": the marks of the reference are missing", 0) end
local new = old:sub(1, from - 1) .. BEGIN .. "\n" .. doc.markdown(doc.all("lua/microscope")) .. "\n"
  .. old:sub(last)
if arg[1] == "--check" then
  if new ~= old then
    io.stderr:write(DOC .. " is stale: run luajit cmake/api_reference.lua\n")
    os.exit(1)
  end
elseif new ~= old then
  local file = assert(io.open(DOC, "wb"))
  assert(file:write(new))
  assert(file:close())
end
