--- places.lua - what single places in the code of functions cost: instructions and lines.
--
-- A place is an address in a module at which samples found the function, running itself or what it
-- calls; an inlined function has places in each of its copies.  Of a place
--   self   is what ran at that very address, the function's own code or what is inlined into it
--   total  is that and what was called from there; a stack that passes the place several times
--          (recursion) counts once

local ffi = require("ffi")

local costs_query = require("microscope.query.costs")
local tree_query = require("microscope.query.tree")

local M = {}

local NONE = 0xffffffff
-- Addresses beyond are no whole numbers in Lua; no image of x86-64 reaches there.  The kernel's, at
-- the other end of memory, are small numbers below 0.
local MOST_ADDRESS = 2 ^ 52

local i64 = ffi.typeof("int64_t")
local u32, u8, f64 = ffi.typeof("uint32_t[?]"), ffi.typeof("uint8_t[?]"),
  ffi.typeof("double[?]")

-- The rows of lines whose function is wanted.
local function pick(fn, rows, wanted, out)
  local count = 0
  for i = 0, rows - 1 do
    if wanted[fn[i]] ~= 0 then
      out[count] = i
      count = count + 1
    end
  end
  return count
end

-- The frames of locations: key 0 for those without a wanted function.
local function lay_out(sizes, locations, start)
  for l = 0, locations - 1 do
    local size = sizes[l]
    start[l + 1] = start[l] + (size > 0 and size or 1)
  end
end

local function line_of(lines, file, line)
  local of_file = lines[file]
  if not of_file then
    of_file = {}
    lines[file] = of_file
  end
  if not of_file[line] then of_file[line] = { file = file, line = line } end
  return of_file[line]
end

-- The part of a function, made at its first place.
local function part_of(parts, fn)
  local part = parts[fn]
  if not part then
    part = { fn = fn, places = {}, lines = {} }
    parts[fn] = part
  end
  return part
end

--- Where functions are: wanted is a set of functions' rows ({[row] = true}).  A list of
-- {fn=, places= {[location] = {address= (less 2^64 for the kernel's), location=, line=}}}, for
-- M.costs.
function M.find(cap, wanted)
  local rows, functions = cap:rows("lines"), cap:rows("functions")
  local flags, picked = u8(functions + 1), u32(rows + 1)
  for f in pairs(wanted) do flags[f] = 1 end
  local count = pick(cap:array("lines", "function"), rows, flags, picked)
  local fn, file, line, location = cap:array("lines", "function"), cap:array("lines", "file"),
    cap:array("lines", "line"), cap:array("lines", "location")
  local offset, parts, out = cap:array("locations", "offset"), {}, {}
  for i = 0, count - 1 do
    local row = picked[i]
    local l, part = location[row], part_of(parts, fn[row])
    -- A function that is inlined into itself: its innermost line stands for the place.
    local address = tonumber(ffi.cast(i64, offset[l]))
    if not part.places[l] and math.abs(address) < MOST_ADDRESS then
      part.places[l] = { address = address, location = l,
        line = line_of(part.lines, file[row], line[row]) }
    end
  end
  for _, part in pairs(parts) do out[#out + 1] = part end
  table.sort(out, function(a, b) return a.fn < b.fn end)
  return out
end

-- Numbers all parts, their lines and their units, from 1 on; gives at[location], the keys of the
-- frames that a location has, and one more than the last key.
local function number(parts, unit_of)
  local last, at = 0, {}
  local function key()
    last = last + 1
    return last
  end
  for _, part in ipairs(parts) do
    part.key, part.units = key(), {}
    for l, place in pairs(part.places) do
      local name = unit_of(part, place)
      local unit = part.units[name] or { key = key(), name = name, self = 0 }
      part.units[name] = unit
      place.unit = unit
      place.line.key = place.line.key or key()
      at[l] = at[l] or {}
      for _, k in ipairs { part.key, place.line.key, unit.key } do table.insert(at[l], k) end
    end
  end
  return at, last + 1
end

-- Keys as keys.lua makes them.
local function keys_of(cap, at, count)
  local locations = cap:rows("locations")
  local sizes, start = u32(locations + 1), u32(locations + 1)
  for l, list in pairs(at) do sizes[l] = #list end
  lay_out(sizes, locations, start)
  local frame = u32(start[locations] + 1)
  for l, list in pairs(at) do
    for i, key in ipairs(list) do frame[start[l] + i - 1] = key end
  end
  return { count = count, start = start, frame = frame }
end

-- What ran at each location itself.
local function add_self(weight, location, stacks, out)
  for i = 0, stacks - 1 do
    local l = location[i]
    if l ~= NONE then out[l] = out[l] + weight[i] end
  end
end

local function by_line(a, b)
  local file_a, file_b = a.file or -1, b.file or -1
  if file_a ~= file_b then return file_a < file_b end
  return (a.line or 0) < (b.line or 0)
end

local function finish(part, total, self)
  local out = { fn = part.fn, total = total[part.key], self = 0, units = {}, lines = {} }
  for l, place in pairs(part.places) do
    place.unit.self = place.unit.self + self[l]
    place.line.self = (place.line.self or 0) + self[l]
    out.self = out.self + self[l]
  end
  for name, unit in pairs(part.units) do
    out.units[name] = { self = unit.self, total = total[unit.key] }
  end
  for _, of_file in pairs(part.lines) do
    for _, line in pairs(of_file) do
      out.lines[#out.lines + 1] = { file = line.file ~= NONE and line.file or nil,
        line = line.line ~= 0 and line.line or nil, self = line.self, total = total[line.key] }
    end
  end
  table.sort(out.lines, by_line)
  return out
end

local function by_address(_, place) return place.address end

--- What the places of parts (M.find) cost, weights being those of the stacks (samples.lua).  A list
-- of, in the order of the parts,
-- {fn=, self=, total=, units= {[name] = {self=, total=}},
--  lines= {{file= (row or nil), line= (or nil), self=, total=}...} by file and line},
-- in the weights' unit.  Places are put together in units: those for which unit_of(part, place)
-- gives the same name; without unit_of a unit is an address.  nil for a capture whose tree is too
-- large (tree.lua).  Once for each result of M.find.
function M.costs(cap, weights, parts, unit_of)
  local at, count = number(parts, unit_of or by_address)
  local tree = tree_query.build(cap, keys_of(cap, at, count), weights)
  if not tree then return nil end
  local total = costs_query.flat(tree, { count = count }).total
  local self = f64(cap:rows("locations") + 1)
  add_self(weights.weight, cap:array("stacks", "location"), cap:rows("stacks"), self)
  local out = {}
  for i, part in ipairs(parts) do out[i] = finish(part, total, self) end
  return out
end

M._pick, M._lay_out, M._add_self = pick, lay_out, add_self
return M
