--- naming.lua - which locations of a capture have names, and why others have none.

local bit = require("bit")
local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C

local M = {}

local NONE = 0xffffffff
-- MIC_LOCATION_FILE: its offset is one in the file, and _RELATIVE: from the first segment's address
local SIGNAL, FILE, RELATIVE = 1, 5, 6

local u8 = ffi.typeof("uint8_t[?]")

-- Marks: 1 a function that a symbol or debug information names, 2 a source line too.
local function mark(location, fn, line, rows, linkage, no_name, out)
  for i = 0, rows - 1 do
    local l = location[i]
    if linkage[fn[i]] ~= no_name and out[l] == 0 then out[l] = 1 end
    if line[i] ~= 0 then out[l] = 2 end
  end
end

-- The id of the empty string, or NONE.
local function empty_string(cap)
  for i = 0, cap:rows("strings") - 1 do
    if cap:string(i) == "" then return i end
  end
  return NONE
end

-- The last row of `naming` of each module.
local function reasons(cap)
  local out, module, problem = {}, cap:array("naming", "module"), cap:array("naming", "problem")
  for i = 0, cap:rows("naming") - 1 do out[module[i]] = cap:string(problem[i]) end
  return out
end

local function new_module(cap, id, why)
  local function text(column) return cap:string(cap:array("modules", column)[id]) end
  local problem = why[id]
  if not problem or problem == "" then problem = text("problem") end
  return { name = text("name"), path = text("path"), build_id = text("build_id"),
    problem = problem, unnamed = {} }
end

-- Locations differ by evidence and by kind too; a place is one address (or one offset in the file)
-- of one module, however many locations are there.  A list of {module, location, mark} in order of
-- the locations, mark being the most that one of them has.
local function places_of(cap, marks)
  local kind, module, offset = cap:array("locations", "kind"), cap:array("locations", "module"),
    cap:array("locations", "offset")
  local out, of_file, of_relative, of_image = {}, {}, {}, {}
  for l = 0, cap:rows("locations") - 1 do
    local placed = kind[l] == SIGNAL or C.mic_location_in_module(kind[l]) ~= 0
    if placed and module[l] ~= NONE then
      local by_module = kind[l] == FILE and of_file or kind[l] == RELATIVE and of_relative
        or of_image
      local seen = by_module[module[l]] or {}
      by_module[module[l]] = seen
      local key = tonumber(offset[l])
      if key >= 2 ^ 53 then key = tostring(offset[l]) end
      local place = seen[key]
      if not place then
        place = { module = module[l], location = l, mark = 0 }
        seen[key], out[#out + 1] = place, place
      end
      place.mark = math.max(place.mark, marks[l])
    end
  end
  return out
end

--- What of a capture's places in modules has a name: {places, named, with_lines, unnamed}, the last
-- a list of {name, path, build_id, problem, unnamed = addresses as texts}, by module.  A function
-- that is told by its start alone has no name.
function M.of(cap)
  local locations = cap:rows("locations")
  local marks = u8(locations + 1)
  mark(cap:array("lines", "location"), cap:array("lines", "function"), cap:array("lines", "line"),
    cap:rows("lines"), cap:array("functions", "linkage_name"), empty_string(cap), marks)
  local places, offset = places_of(cap, marks), cap:array("locations", "offset")
  local out, by_module, why = { places = #places, named = 0, with_lines = 0, unnamed = {} }, {},
    reasons(cap)
  for _, place in ipairs(places) do
    if place.mark > 0 then
      out.named = out.named + 1
      out.with_lines = out.with_lines + place.mark - 1
    else
      local of = by_module[place.module]
      if not of then
        of = new_module(cap, place.module, why)
        by_module[place.module] = of
        out.unnamed[#out.unnamed + 1] = of
      end
      of.unnamed[#of.unnamed + 1] = "0x"
        .. (bit.tohex(offset[place.location]):gsub("^0+(.)", "%1"))
    end
  end
  return out
end

M._mark = mark
return M
