--- json.lua - write JSON with keys in a fixed order and whole numbers exact.
--
-- Objects are arrays of pairs {key, value, key, value, ...} under M.object, arrays under
-- M.array, so that the same report gives the same bytes.  Strings are bytes from outside:
-- what is no UTF-8 is written as U+FFFD, as JSON has no bytes.

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

local SHORT = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function escape(c) return SHORT[c] or ("\\u%04x"):format(c:byte()) end

-- The code point of a sequence of two or three bytes of UTF-8.
local function code_point(sequence)
  local a, b, c = sequence:byte(1, 3)
  return c and a % 0x10 * 0x1000 + b % 0x40 * 0x40 + c % 0x40 or a % 0x20 * 0x40 + b % 0x40
end

-- Text with every sequence that is no UTF-8 replaced, and escaped what a terminal would act on.
local function valid_utf8(value, text)
  local out, at = {}, 1
  while at <= #value do
    local size = text.utf8_length(value, at)
    local piece = size and value:sub(at, at + size - 1) or "\xef\xbf\xbd"
    if text.is_control(piece) then piece = ("\\u%04x"):format(code_point(piece)) end
    out[#out + 1] = piece
    at = at + (size or 1)
  end
  return table.concat(out)
end

local function string_text(value)
  value = value:gsub('[%z\1-\31"\\\127]', escape)
  if value:find("[\128-\255]") then
    value = valid_utf8(value, require("microscope.report.text"))
  end
  return '"' .. value .. '"'
end

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
  local parts = {}
  write(value, function(text) parts[#parts + 1] = text end)
  return table.concat(parts)
end

return M
