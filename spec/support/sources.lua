--- sources.lua - the checkout's own files, for the specs that read them.

local helper = require("spec.helper")

local M = {}

--- Paths (from the checkout's root) of the tracked and new files that match a Lua pattern.
-- Outside a git checkout (an unpacked archive) the tree is walked instead.
function M.files(pattern)
  local list = "cd " .. helper.quote(helper.root)
    .. " && (git ls-files -co --exclude-standard 2>/dev/null"
    .. " || find . -path ./build -prune -o -type f -print | sed 's,^[.]/,,') | LC_ALL=C sort -u"
  local out, pipe = {}, assert(io.popen(list))
  for path in pipe:lines() do
    local file = path:match(pattern) and io.open(helper.root .. "/" .. path)
    if file then
      file:close()
      out[#out + 1] = path
    end
  end
  pipe:close()
  return out
end

function M.read(path) return helper.read(helper.root .. "/" .. path) end

--- The lines of a file.
function M.lines(path)
  local out = {}
  for line in (M.read(path) .. "\n"):gmatch("(.-)\n") do out[#out + 1] = line end
  if out[#out] == "" then out[#out] = nil end
  return out
end

--- C text with comments, strings and character constants blanked; lines keep their numbers.
function M.bare_c(text)
  local function blank(piece) return (piece:gsub("[^\n]", " ")) end
  local out, at = {}, 1
  while at <= #text do
    local from = text:find("[\"'/]", at)
    if not from then break end
    out[#out + 1] = text:sub(at, from - 1)
    local two, to = text:sub(from, from + 1), nil
    if two == "/*" then
      to = select(2, text:find("*/", from + 2, true))
    elseif two == "//" then
      to = (text:find("\n", from, true) or #text + 1) - 1
    elseif two:sub(1, 1) == "/" then
      out[#out + 1] = "/"
      at = from + 1
    else
      local quote = two:sub(1, 1)
      to = from + 1
      while to <= #text and text:sub(to, to) ~= quote do
        to = to + (text:sub(to, to) == "\\" and 2 or 1)
      end
    end
    if two:sub(1, 1) ~= "/" or two == "/*" or two == "//" then
      to = to or #text
      out[#out + 1] = blank(text:sub(from, to))
      at = to + 1
    end
  end
  out[#out + 1] = text:sub(at)
  return table.concat(out)
end

--- The functions of a C file as clang-format lays them out: {name=, first=, last=} in lines.
function M.c_functions(path)
  local out, first, open = {}, nil, nil
  local number = 0
  for line in (M.bare_c(M.read(path)) .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    if open then
      if line:match("^}") then
        out[#out + 1] = { name = open, first = first, last = number }
        open = nil
      end
    else
      if line:match("^[%a_]") then first = number end
      local name = line:match("([%w_]+)%s*%b()%s*{%s*$") or (line:match("%)%s*{%s*$") and "?")
      if name and first and not line:match("^[%s%w_]*=") then open = name end
    end
  end
  return out
end

--- The functions of a Lua file, by what the compiler says of them.
function M.lua_functions(path)
  local util = require("jit.util")
  local out = {}
  local function visit(proto)
    local info = util.funcinfo(proto)
    if info.linedefined > 0 then
      out[#out + 1] = { first = info.linedefined, last = info.lastlinedefined }
    end
    local index = -1
    while true do
      local ok, constant = pcall(util.funck, proto, index)
      if not ok or constant == nil then break end
      if type(constant) == "proto" then visit(constant) end
      index = index - 1
    end
  end
  visit(assert(loadfile(helper.root .. "/" .. path)))
  return out
end

return M
