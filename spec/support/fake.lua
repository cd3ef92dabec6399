--- fake.lua - a capture made of Lua tables, for specs of queries.
--
-- Answers rows, array, string, same and fact as microscope.capture's captures do.  Strings may
-- stand for their ids: in a column that is given texts, each becomes the id of that string.

local ffi = require("ffi")

local M = {}

--- Rows of a block, of all captures.
M.block_rows = 7

local NONE = 0xffffffff

local WIDTHS = {
  u64 = ffi.typeof("uint64_t[?]"),
  u32 = ffi.typeof("uint32_t[?]"),
  u16 = ffi.typeof("uint16_t[?]"),
  u8 = ffi.typeof("uint8_t[?]"),
}

-- Columns that a capture does not give have no rows; one row of room for each type, made once,
-- as captures are asked in hot loops.
local EMPTY = {}
for name, new in pairs(WIDTHS) do EMPTY[name] = new(1) end

-- Columns whose type is not u32, by table and column.
local TYPES = {
  ["samples.weight"] = "u64", ["samples.time_ns"] = "u64", ["samples.source"] = "u8",
  ["samples.cpu"] = "u16", ["stacks.end"] = "u8", ["locations.kind"] = "u8",
  ["locations.evidence"] = "u8", ["locations.offset"] = "u64", ["sources.unit"] = "u8",
  ["sources.period"] = "u64", ["costs.kind"] = "u8", ["costs.cpu_ns"] = "u64",
  ["costs.wall_ns"] = "u64", ["off_spans.start_ns"] = "u64", ["off_spans.end_ns"] = "u64",
  ["off_spans.kind"] = "u8", ["off_spans.cpu"] = "u16", ["losses.kind"] = "u8",
  ["losses.count"] = "u64", ["problems.count"] = "u64", ["clocks.duration_ns"] = "u64",
  ["clocks.monotonic_ns"] = "u64", ["labels.kind"] = "u8", ["labels.number"] = "u64",
}

local Capture = {}
Capture.__index = Capture

function Capture:rows(name) return self.counts[name] or 0 end

function Capture:array(tab, column)
  local key = tab .. "." .. column
  -- A column that not all captures have.
  if key == "sources.unit_name" and not self.arrays[key] then return nil end
  return self.arrays[key] or EMPTY[TYPES[key] or "u32"], self:rows(tab)
end

-- Blocks of as many rows as M.block_rows says, so that what walks blocks sees several.
function Capture:blocks(tab, ...)
  local columns, row, rows = { ... }, 0, self:rows(tab)
  return function()
    if row >= rows then return nil end
    local first, data = row, {}
    for i, column in ipairs(columns) do data[i] = self:array(tab, column) + first end
    row = math.min(rows, first + M.block_rows)
    return row - first, unpack(data)
  end
end

function Capture:string(id) return self.strings[tonumber(id) + 1] end

function Capture:same(a, b) return self:string(a) == self:string(b) end

function Capture:fact(name)
  local key, value = self:array("meta", "key"), self:array("meta", "value")
  for i = self:rows("meta") - 1, 0, -1 do
    if self:string(key[i]) == name then return value[i] end
  end
end

--- A capture of tables: M.capture { samples = { stack = { 0, 1 }, ... }, ... }.  nil in a row of
-- a u32 column cannot be written; use M.NONE.
function M.capture(tables)
  local self = setmetatable({ counts = {}, arrays = {}, strings = {} }, Capture)
  local ids = {}
  local function id_of(text)
    if not ids[text] then
      self.strings[#self.strings + 1] = text
      ids[text] = #self.strings - 1
    end
    return ids[text]
  end
  for tab, columns in pairs(tables) do
    for column, values in pairs(columns) do
      local array = WIDTHS[TYPES[tab .. "." .. column] or "u32"](#values + 1)
      for i, value in ipairs(values) do
        array[i - 1] = type(value) == "string" and id_of(value) or value
      end
      self.arrays[tab .. "." .. column] = array
      self.counts[tab] = #values
    end
  end
  return self
end

--- A capture of stacks written as text, "main > work > leaf" with a number of samples each; all
-- frames are functions of the module "app".  An end other than the outermost frame comes in
-- brackets first: "[3] > work".  Each sample weighs 1000 ns.
function M.stacks(list)
  local fns, fn_ids = {}, {}
  local t = { parent = {}, location = {}, ends = {}, stack = {}, node_ids = {} }
  local function node(key, parent, location, ending)
    if not t.node_ids[key] then
      t.parent[#t.parent + 1] = parent
      t.location[#t.location + 1] = location
      t.ends[#t.ends + 1] = ending
      t.node_ids[key] = #t.parent - 1
    end
    return t.node_ids[key]
  end
  for _, entry in ipairs(list) do
    local rest = entry[1]
    local ending = rest:match("^%[(%d+)%]")
    if ending then rest = rest:gsub("^%[%d+%] ?>? ?", "") end
    local path = "[" .. (ending or 1) .. "]"
    local at = node(path, NONE, NONE, tonumber(ending or 1))
    for name in rest:gmatch("[^>%s]+") do
      if not fn_ids[name] then
        fns[#fns + 1] = name
        fn_ids[name] = #fns - 1
      end
      path = path .. ">" .. name
      at = node(path, at, fn_ids[name], 0)
    end
    for _ = 1, entry[2] do t.stack[#t.stack + 1] = at end
  end
  local function all(value, count)
    local out = {}
    for i = 1, count do out[i] = value end
    return out
  end
  local ids = {}
  for i = 1, #fns do ids[i] = i - 1 end
  return M.capture {
    functions = { name = fns, module = all(0, #fns), file = all(NONE, #fns), line = all(0, #fns) },
    modules = { name = { "app" }, problem = { "" } },
    locations = { kind = all(0, #fns), evidence = all(0, #fns), module = all(0, #fns),
      offset = ids },
    lines = { location = ids, ["function"] = ids, depth = all(0, #fns), file = all(NONE, #fns),
      line = all(0, #fns) },
    stacks = { parent = t.parent, location = t.location, ["end"] = t.ends },
    samples = { stack = t.stack, weight = all(1000, #t.stack), source = all(0, #t.stack) },
    sources = { name = { "cpu-clock" }, unit = { 0 }, period = { 1000 } },
  }
end

M.NONE = NONE
return M
