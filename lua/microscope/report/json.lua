--- json.lua - write JSON with keys in a fixed order and whole numbers exact.
--
-- Objects are arrays of pairs {key, value, key, value, ...} under M.object, arrays under
-- M.array, so that the same report gives the same bytes.  Strings are bytes from outside:
-- what is no UTF-8 is written as U+FFFD, as JSON has no bytes (core/import/json_text.h).

local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C

local M = {}

M.null = setmetatable({}, { __tostring = function() return "null" end })

--- The value, or null for nil, which an object's list of pairs cannot hold.
function M.or_null(value)
  if value == nil then return M.null end
  return value
end

local Object, Array = {}, {}

--- An object of pairs: M.object { "name", "x", "size", 3 }.
function M.object(pairs_of) return setmetatable(pairs_of, Object) end

--- An array of a list.
function M.array(list) return setmetatable(list, Array) end

-- Where the core writes what texts become, and how far it has read them.
local ROOM = 16 * 1024
local room, at = ffi.new("char[?]", ROOM), ffi.new("uint64_t[1]")

--- What a text becomes between JSON's quotes.
function M.escape(text)
  if not text:find('[%z\1-\31"\\\127-\255]') then return text end
  local parts = {}
  at[0] = 0
  while at[0] < #text do
    parts[#parts + 1] = ffi.string(room, C.mic_json_text(text, #text, at, room, ROOM))
  end
  return table.concat(parts)
end

local function string_text(value) return '"' .. M.escape(value) .. '"' end

-- Whole numbers without an exponent; others with as many digits as a double holds.
local function number_text(value)
  if value ~= value or value == math.huge or value == -math.huge then return "null" end
  if value == math.floor(value) and math.abs(value) < 2 ^ 63 then return ("%.0f"):format(value) end
  local short = ("%.15g"):format(value)
  return tonumber(short) == value and short or ("%.17g"):format(value)
end

local write

local function write_object(value, out)
  out("{")
  for i = 1, #value, 2 do
    if i > 1 then out(",") end
    out(string_text(value[i]))
    out(":")
    write(value[i + 1], out)
  end
  out("}")
end

local function write_array(value, out)
  out("[")
  for i = 1, #value do
    if i > 1 then out(",") end
    write(value[i], out)
  end
  out("]")
end

--- Write a value through out(text), called many times.
function write(value, out)
  local kind, meta = type(value), getmetatable(value)
  if value == M.null then
    out("null")
  elseif meta == Object then
    write_object(value, out)
  elseif meta == Array then
    write_array(value, out)
  elseif kind == "number" then
    out(number_text(value))
  elseif kind == "string" then
    out(string_text(value))
  elseif kind == "boolean" then
    out(tostring(value))
  else
    error("no JSON for a " .. kind)
  end
end

M.write = write

--- The JSON text of a value.
function M.encode(value)
  if type(value) == "string" then return string_text(value) end
  local parts = {}
  write(value, function(text) parts[#parts + 1] = text end)
  return table.concat(parts)
end

return M
