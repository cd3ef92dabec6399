--- sources.lua - the text of source files, where they are still to be found.

local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C
local file_type = ffi.typeof("struct mic_host_file")

local M = {}

-- Larger than any source a person wrote; SQLite's amalgamation has 9 MB.
local MOST_BYTES = 64 * 2 ^ 20

local function stat(path)
  local facts = file_type()
  if path:find("%z") or C.mic_host_stat(path, facts) ~= 0 then return nil end
  -- Files of /proc and /sys have no size; some of them never end, or wait for what to say.
  if facts.kind ~= C.MIC_HOST_FILE or facts.size == 0 or facts.size > MOST_BYTES then return nil end
  return facts
end

-- Below a folder the longest end of the path that is there.
local function below(folder, path)
  local rest = path:gsub("^/+", "")
  while rest do
    local candidate = folder .. "/" .. rest
    local facts = stat(candidate)
    if facts then return candidate, facts end
    rest = rest:match("^[^/]*/+(.+)$")
  end
end

local function lines_of(path)
  local file = io.open(path, "rb")
  local text = file and file:read(MOST_BYTES)
  if file then file:close() end
  if not text then return nil end
  local out = {}
  for line in (text:sub(-1) == "\n" and text or text .. "\n"):gmatch("([^\n]*)\n") do
    out[#out + 1] = line:gsub("\r$", "")
  end
  return out
end

--- A source file: {path= (where it was found), written_ns=, lines= (a list of texts)}; nil when
-- it is nowhere.  Looked for at its own path when that is absolute, then below each of `folders`.
function M.find(path, folders)
  local found, facts = path, path:sub(1, 1) == "/" and stat(path) or nil
  for _, folder in ipairs(folders or {}) do
    if facts then break end
    found, facts = below(folder, path)
  end
  local lines = facts and lines_of(found)
  return lines and { path = found, written_ns = tonumber(facts.written_ns), lines = lines } or nil
end

return M
