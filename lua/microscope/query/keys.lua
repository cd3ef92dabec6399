--- keys.lua - what frames are told apart by: functions, or functions and lines.
--
-- keys = {
--   count  = number of keys; ids are 0 to count - 1
--   start  = FFI u32[locations + 1]: a location's frames are frame[start[l]] to
--            frame[start[l + 1] - 1], outermost first, as inlined functions are frames too
--   frame  = FFI u32[]: key ids
--   kind   = FFI u8[count]: a FUNCTION, LINE or PLACE
--   ref    = FFI u32[count]: the functions', lines' or locations' row that tells its name
--   group  = FFI u32[count + ENDS]: the function that a key is of, as a dense number; keys of
--            one function's lines share it, a PLACE has one of its own
--   groups = number of groups
-- }
-- A location that no function is proven for is a frame of its own (a PLACE), never dropped.
-- Ids from count to count + ENDS - 1 stand for why stacks end (stacks.end); no location has them,
-- trees of callers (invert.lua) do.

local bit = require("bit")
local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C

local M = {}

--- What a key's ref is a row of: functions, lines or locations.
M.FUNCTION, M.LINE, M.PLACE = 0, 1, 2
--- How many ids past the keys stand for ends of stacks: stacks.end is a u8.
M.ENDS = 256

local NONE = 0xffffffff
local SIGNAL, NAMED = 1, 4 -- mic_location

local u32, u8 = ffi.typeof("uint32_t[?]"), ffi.typeof("uint8_t[?]")

-- How many frames each location has, into start[location + 1].  A signal frame is one frame,
-- whatever its trampoline's name is.
local function count_frames(location, lines, kind, locations, start)
  for i = 0, lines - 1 do
    local at = location[i] + 1
    start[at] = start[at] + 1
  end
  for l = 0, locations - 1 do
    if start[l + 1] == 0 or kind[l] == SIGNAL then start[l + 1] = 1 end
  end
end

local function add_up(start, locations)
  for l = 1, locations do start[l] = start[l] + start[l - 1] end
end

-- Lines come innermost first: a location's first line is its last frame.
local function fill_frames(location, depth, key_of_line, lines, kind, start, frame)
  for i = 0, lines - 1 do
    local l = location[i]
    if kind[l] ~= SIGNAL then frame[start[l + 1] - 1 - depth[i]] = key_of_line[i] end
  end
end

-- The same where inlined functions are counted as part of the function that holds their code: a
-- location has one frame, that of its last line.
local function fill_outer_frames(location, key_of_line, lines, kind, frame)
  for i = 0, lines - 1 do
    local l = location[i]
    if kind[l] ~= SIGNAL then frame[l] = key_of_line[i] end
  end
end

-- Locations without a line get keys of their own, signal frames one for all.
local function fill_places(kind, locations, start, frame, ref, first)
  local key, signal = first, NONE
  for l = 0, locations - 1 do
    local at = start[l]
    if kind[l] == SIGNAL then
      if signal == NONE then
        signal = key
        ref[key] = l
        key = key + 1
      end
      frame[at] = signal
    elseif frame[at] == NONE then
      frame[at] = key
      ref[key] = l
      key = key + 1
    end
  end
  return key
end

-- Keys by function: a function's id is its key.
local function by_function(cap, lines)
  local functions = cap:rows("functions")
  local ref = u32(functions + 1)
  for f = 0, functions - 1 do ref[f] = f end
  return cap:array("lines", "function"), functions, ref, lines
end

-- Keys by function, file and line: equal triples share the key of the first.
local function by_line(cap, lines)
  local fn, file, line = cap:array("lines", "function"), cap:array("lines", "file"),
    cap:array("lines", "line")
  local key_of_line, ref, seen, count = u32(lines + 1), u32(lines + 1), {}, 0
  -- A table of the key's own at the first use.
  local function inner(of, key)
    local found = of[key]
    if not found then
      found = {}
      of[key] = found
    end
    return found
  end
  for i = 0, lines - 1 do
    local places = inner(inner(seen, tonumber(fn[i])), tonumber(file[i]))
    local key = places[line[i]]
    if not key then
      key = count
      places[line[i]] = key
      ref[key] = i
      count = count + 1
    end
    key_of_line[i] = key
  end
  return key_of_line, count, ref
end

-- A number for each function that has keys by line, in order of the functions' rows.
local function group_lines(cap, ref, named, group)
  local fn = cap:array("lines", "function")
  for key = 0, named - 1 do group[key] = fn[ref[key]] end
  return cap:rows("functions")
end

local function groups_of(cap, ref, named, count, by_lines)
  local group, groups = u32(count + M.ENDS), named
  if by_lines then
    groups = group_lines(cap, ref, named, group)
  else
    for key = 0, named - 1 do group[key] = key end
  end
  for key = named, count + M.ENDS - 1 do
    group[key] = groups
    groups = groups + 1
  end
  return group, groups
end

--- The keys of a capture's locations.  options.lines tells functions apart by line; options.fold
-- counts inlined functions as part of the function they were inlined into.  true is
-- { lines = true }.
function M.build(cap, options)
  if options == true then options = { lines = true } end
  local by_lines, fold = options and options.lines, options and options.fold
  local locations, lines = cap:rows("locations"), cap:rows("lines")
  local location, depth = cap:array("lines", "location"), cap:array("lines", "depth")
  local kind = cap:array("locations", "kind")
  local start = u32(locations + 1)
  if fold then
    for l = 0, locations do start[l] = l end
  else
    count_frames(location, lines, kind, locations, start)
    add_up(start, locations)
  end

  local key_of_line, named, ref_of_named = (by_lines and by_line or by_function)(cap, lines)
  local frames = start[locations]
  local frame = u32(frames + 1)
  ffi.fill(frame, (frames + 1) * 4, 0xff)
  if fold then
    fill_outer_frames(location, key_of_line, lines, kind, frame)
  else
    fill_frames(location, depth, key_of_line, lines, kind, start, frame)
  end

  local ref = u32(named + locations + 1)
  ffi.copy(ref, ref_of_named, named * 4)
  local count = fill_places(kind, locations, start, frame, ref, named)
  local kinds = u8(count + 1)
  ffi.fill(kinds, named, by_lines and M.LINE or M.FUNCTION)
  ffi.fill(kinds + named, count - named, M.PLACE)
  local group, groups = groups_of(cap, ref, named, count, by_lines)
  return { count = count, start = start, frame = frame, kind = kinds, ref = ref, group = group,
    groups = groups }
end

-- A module's name by its row, "" for none.
local function module_name(cap, module)
  if module == NONE then return "" end
  return cap:string(cap:array("modules", "name")[module])
end

-- A place that is called by what it is, not by a string of the capture.
local function described(kind, offset)
  if kind == SIGNAL then return "[signal]", true end
  if kind == 2 then return ("[anon %s]"):format(M.hex(offset)), true end
  if kind == 3 then return ("[unmapped %s]"):format(M.hex(offset)), true end
  -- A later version's kind: what its offset means is not known.
  return ("[place of kind %d]"):format(kind)
end

--- Whether a place of this kind (locations.kind) is code of a module.
function M.is_in_module(kind) return C.mic_location_in_module(kind) ~= 0 end

--- An offset as 0x and hex digits.
function M.hex(offset) return ("0x%s"):format(bit.tohex(offset):gsub("^0+(.)", "%1")) end

--- What a location without a function is called: the id of the string that its name begins with,
-- or nil, and the text behind it, or nil; and whether it is of no module, whatever the row says.
function M.place_parts(cap, l)
  local kind = cap:array("locations", "kind")[l]
  local offset = cap:array("locations", "offset")[l]
  if kind == NAMED then return tonumber(offset) end
  if not M.is_in_module(kind) then return nil, described(kind, offset) end
  local module = cap:array("locations", "module")[l]
  local name = module ~= NONE and cap:array("modules", "name")[module] or nil
  return name, "+" .. M.hex(offset)
end

local function place(cap, l)
  local id, rest, bare = M.place_parts(cap, l)
  local module = bare and "" or module_name(cap, cap:array("locations", "module")[l])
  return { name = (id and cap:string(id) or "") .. (rest or ""), module = module }
end

--- What a location without a function is called: {name=, module= (its name)}.
M.place = place

--- What the end of a stack (stacks.end) is called, in brackets, as reports print it.
function M.ending(code)
  local text = C.mic_end_text(code)
  return { name = ("[%s]"):format(text ~= nil and ffi.string(text) or "reason " .. code),
    module = "" }
end

--- What a key is called: {name=, module=, file=, line=}; file and line only for keys by line,
-- nil where they are not known.  Names are bytes from outside.
function M.describe(cap, keys, key)
  if key >= keys.count then return M.ending(key - keys.count) end
  local kind, ref = keys.kind[key], keys.ref[key]
  if kind == M.PLACE then return place(cap, ref) end
  local fn = kind == M.LINE and cap:array("lines", "function")[ref] or ref
  local out = {
    name = cap:string(cap:array("functions", "name")[fn]),
    module = module_name(cap, cap:array("functions", "module")[fn]),
  }
  if kind == M.LINE then
    local file, line = cap:array("lines", "file")[ref], cap:array("lines", "line")[ref]
    if file ~= NONE then out.file = cap:string(cap:array("files", "path")[file]) end
    if line ~= 0 then out.line = line end
  end
  return out
end

--- The row of `functions` that a key is of, or nil for a PLACE or an end.
function M.function_of(cap, keys, key)
  if key >= keys.count or keys.kind[key] == M.PLACE then return nil end
  local ref = keys.ref[key]
  return keys.kind[key] == M.LINE and cap:array("lines", "function")[ref] or ref
end

M._count_frames, M._fill_frames, M._fill_places = count_frames, fill_frames, fill_places
M._fill_outer_frames, M._add_up = fill_outer_frames, add_up
return M
