--- wire.lua - pprof files made by hand, right or wrong, for the specs of its reader.
--
--   wire.profile {
--     types = { { "cpu", "nanoseconds" } },
--     functions = { { id = 1, name = "main" } },
--     locations = { { id = 1, lines = { { 1, 12 } } } },
--     samples = { { stack = { 1 }, values = { 5 } } },
--   }

local bit = require("bit")
local ffi = require("ffi")

local M = {}

--- A number in seven bits a byte; also negative ones, in ten.
function M.varint(value)
  if value >= 0 and value < 2 ^ 28 then
    local first, second = value % 128, math.floor(value / 128) % 128
    if value < 2 ^ 7 then return string.char(first) end
    if value < 2 ^ 14 then return string.char(first + 128, second) end
    local third, fourth = math.floor(value / 2 ^ 14) % 128, math.floor(value / 2 ^ 21)
    if fourth == 0 then return string.char(first + 128, second + 128, third) end
    return string.char(first + 128, second + 128, third + 128, fourth)
  end
  local v, out = ffi.cast("uint64_t", ffi.cast("int64_t", value)), {}
  repeat
    local low = tonumber(bit.band(v, 0x7f))
    v = bit.rshift(v, 7)
    out[#out + 1] = string.char(v ~= 0 and low + 128 or low)
  until v == 0
  return table.concat(out)
end

--- A field that is a number.
function M.number(field, value) return M.varint(field * 8) .. M.varint(value) end

--- A field that is bytes or a message.
function M.bytes(field, text) return M.varint(field * 8 + 2) .. M.varint(#text) .. text end

-- Fields by number, those that are 0 or nil left out.
local function message(fields)
  local out = {}
  for field = 1, 14 do
    local value = fields[field]
    if type(value) == "number" and value ~= 0 then out[#out + 1] = M.number(field, value) end
    if type(value) == "string" then out[#out + 1] = value end
  end
  return table.concat(out)
end

local function list(field, values)
  local out = {}
  for _, value in ipairs(values or {}) do out[#out + 1] = M.number(field, value) end
  return table.concat(out)
end

local function packed(field, values)
  local out = {}
  for _, value in ipairs(values or {}) do out[#out + 1] = M.varint(value) end
  return #out > 0 and M.bytes(field, table.concat(out)) or ""
end

-- The table of strings being made: a text's index; a number is an index as it is.
local function new_strings()
  local index, all = { [""] = 0 }, { "" }
  return function(text)
    if type(text) == "number" or not text then return text or 0 end
    if not index[text] then
      index[text] = #all
      all[#all + 1] = text
    end
    return index[text]
  end, all
end

local function location(l)
  local lines = {}
  for _, line in ipairs(l.lines or {}) do
    lines[#lines + 1] = M.bytes(4, message { line[1], line[2] })
  end
  return message { l.id, l.mapping, l.address, table.concat(lines) }
end

local function sample(s, string)
  local labels = {}
  for _, label in ipairs(s.labels or {}) do
    labels[#labels + 1] = M.bytes(3,
      message { string(label[1]), label.text and string(label.text), label.number,
        string(label.unit) })
  end
  local put = s.unpacked and list or packed
  return put(1, s.stack) .. put(2, s.values) .. table.concat(labels)
end

--- The bytes of a profile.  strings_first puts the strings before what names them.
function M.profile(p)
  local string, all = new_strings()
  local out = {}
  local function add(field, text) out[#out + 1] = M.bytes(field, text) end
  for _, t in ipairs(p.types or {}) do add(1, message { string(t[1]), string(t[2]) }) end
  for _, s in ipairs(p.samples or {}) do add(2, sample(s, string)) end
  for _, m in ipairs(p.mappings or {}) do
    add(3, message { m.id, m.start, m.limit, m.offset, string(m.file), string(m.build_id) })
  end
  for _, l in ipairs(p.locations or {}) do add(4, location(l)) end
  for _, f in ipairs(p.functions or {}) do
    add(5, message { f.id, string(f.name), string(f.system_name), string(f.file), f.line })
  end
  if p.period then
    add(11, message { string(p.period[1]), string(p.period[2]) })
    out[#out + 1] = M.number(12, p.period[3])
  end
  for _, comment in ipairs(p.comments or {}) do out[#out + 1] = M.number(13, string(comment)) end
  local strings = {}
  for i, text in ipairs(all) do
    strings[#strings + 1] = M.bytes(6, i == 1 and p.first_string or text)
  end
  table.insert(out, p.strings_first and 1 or #out + 1, table.concat(strings))
  return table.concat(out)
end

return M
