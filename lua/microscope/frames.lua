--- frames.lua - a capture's stacks as single frames, for formats that know no inlining.
--
-- A location has a frame for each function that runs there, the inlined ones too, the outermost
-- first.  A stack that ends short has its reason in brackets as outermost frame; such frames have
-- the numbers after all others.  Nothing is held for a frame: they are told again when asked for,
-- as a capture may have millions.  frames.of(cap) gives
--   count   frames of locations: numbers from 0 on
--   first   FFI u32[locations + 1]: a location's frames are first[l] to first[l + 1] - 1
--   each(fn)  calls fn(frame, number) in order, the reasons last: a frame is
--           {name=, rest=, file=, line=}: it is called by the string `name` (an id), if any, and
--           the text `rest` behind it; file (a row) and line are nil where they are not known
--   path(stack, room)  the numbers of a stack's frames into room.at, an FFI u32[] that grows
--           (frames.room() makes it), the innermost first; how many there are

local ffi = require("ffi")

local capture = require("microscope.capture")
local ends_query = require("microscope.query.ends")
local keys_query = require("microscope.query.keys")

local M = {}

local NONE = capture.NONE
local SIGNAL = 1 -- MIC_LOCATION_SIGNAL

local u32 = ffi.typeof("uint32_t[?]")

-- The functions of lines, innermost first as the table has them.
local function line_frame(cap, i)
  local file, line = cap:array("lines", "file")[i], cap:array("lines", "line")[i]
  return {
    name = cap:array("functions", "name")[cap:array("lines", "function")[i]],
    file = file ~= NONE and file or nil,
    line = line ~= 0 and line or nil,
  }
end

-- A place without a function, by the name that reports give it.
local function place_frame(cap, l)
  local name, rest = keys_query.place_parts(cap, l)
  return { name = name, rest = rest }
end

local function reason_frame(ending) return { rest = "[" .. ends_query.reason(ending) .. "]" } end

-- How many frames each location has, added up.
local function count_frames(location, lines, kind, locations, first)
  for i = 0, lines - 1 do first[location[i] + 1] = first[location[i] + 1] + 1 end
  for l = 0, locations - 1 do
    local count = first[l + 1]
    if count == 0 or kind[l] == SIGNAL then count = 1 end
    first[l + 1] = first[l] + count
  end
end

-- The ends that roots have and reports tell, each once, in the order of the roots.
local function endings_of(cap)
  local parent, stacks = cap:array("stacks", "parent")
  local ends, number, list = cap:array("stacks", "end"), {}, {}
  for i = 0, stacks - 1 do
    if parent[i] == NONE and not number[ends[i]] and not ends_query.is_silent(ends[i]) then
      list[#list + 1] = ends[i]
      number[ends[i]] = #list
    end
  end
  return list, number
end

local function each_frame(cap, frames, fn)
  local location, lines = cap:array("lines", "location")
  local kind, at, number = cap:array("locations", "kind"), 0, 0
  for l = 0, cap:rows("locations") - 1 do
    local from = at
    while at < lines and location[at] == l do at = at + 1 end
    if from == at or kind[l] == SIGNAL then
      fn(place_frame(cap, l), number)
      number = number + 1
    else
      for i = at - 1, from, -1 do
        fn(line_frame(cap, i), number)
        number = number + 1
      end
    end
  end
  for i, ending in ipairs(frames.endings) do fn(reason_frame(ending), frames.count + i - 1) end
end

-- One more number, in twice the room where it is full.
local function push(room, count, number)
  if count == room.size then
    local at = u32(room.size * 2)
    ffi.copy(at, room.at, room.size * 4)
    room.at, room.size = at, room.size * 2
  end
  room.at[count] = number
  return count + 1
end

--- Room for a path.
function M.room() return { at = u32(1024), size = 1024 } end

local function path_of(cap, frames, stack, room)
  local parent, location = cap:array("stacks", "parent"), cap:array("stacks", "location")
  local first, count = frames.first, 0
  while parent[stack] ~= NONE do
    local l = location[stack]
    for f = first[l + 1] - 1, first[l], -1 do count = push(room, count, f) end
    stack = parent[stack]
  end
  local ending = frames.ending[cap:array("stacks", "end")[stack]]
  if ending then count = push(room, count, frames.count + ending - 1) end
  return count
end

--- The frames of all locations and reasons.
function M.of(cap)
  local kind, locations = cap:array("locations", "kind")
  local location, lines = cap:array("lines", "location")
  local first = u32(locations + 1)
  count_frames(location, lines, kind, locations, first)
  local frames = { first = first, count = first[locations] }
  frames.endings, frames.ending = endings_of(cap)
  frames.all = frames.count + #frames.endings
  function frames.each(fn) return each_frame(cap, frames, fn) end
  function frames.path(stack, room) return path_of(cap, frames, stack, room) end
  return frames
end

-- Whether a row is later than another; of equal times the one that stands later is.
local function is_later(time_ns, a, b)
  if time_ns[a] ~= time_ns[b] then return time_ns[a] > time_ns[b] end
  return a > b
end

-- Let a row sink in a heap of count rows from `from` on, whose greatest is the latest.
local function sink(at, from, count, place, time_ns)
  local row = at[from + place]
  while true do
    local child = 2 * place + 1
    if child >= count then break end
    if child + 1 < count and is_later(time_ns, at[from + child + 1], at[from + child]) then
      child = child + 1
    end
    if not is_later(time_ns, at[from + child], row) then break end
    at[from + place] = at[from + child]
    place = child
  end
  at[from + place] = row
end

-- Rows from `from` to `past` - 1 in order of time, in place.  Most come sorted.
local function sort(at, from, past, time_ns)
  local sorted, count = true, past - from
  for i = from + 1, past - 1 do
    if time_ns[at[i]] < time_ns[at[i - 1]] then sorted = false break end
  end
  if sorted then return end
  for place = math.floor(count / 2) - 1, 0, -1 do sink(at, from, count, place, time_ns) end
  for last = count - 1, 1, -1 do
    at[from], at[from + last] = at[from + last], at[from]
    sink(at, from, last, 0, time_ns)
  end
end

-- Rows in the order of a column's values, which are less than `values`: FFI u32[], and how many.
-- Those of a value keep the order that row_at(i) gives, i from 0 to rows - 1; it gives nil for
-- what is left out.
local function ordered(column, values, rows, row_at)
  local past, kept = u32(values + 1), 0
  for i = 0, rows - 1 do
    local row = row_at(i)
    if row then
      past[column[row] + 1] = past[column[row] + 1] + 1
      kept = kept + 1
    end
  end
  for v = 1, values do past[v] = past[v] + past[v - 1] end
  local at = u32(kept + 1)
  for i = 0, rows - 1 do
    local row = row_at(i)
    if row then
      local value = column[row]
      at[past[value]] = row
      past[value] = past[value] + 1
    end
  end
  return at, kept
end

-- Where rows of a value that stand together end.
local function run_past(column, at, from, count)
  local value, past = column[at[from]], from + 1
  while past < count and column[at[past]] == value do past = past + 1 end
  return past
end

--- Rows by their threads, and those of a thread in order of time:
--   at, count  FFI u32[]: rows
--   of(t)      where those of a thread begin, and one past their end; of threads in rising order
-- wanted(row), where it is given, tells which rows.
function M.rows_by_thread(thread, rows, threads, time_ns, wanted)
  local at, count = ordered(thread, threads, rows, function(i)
    if not wanted or wanted(i) then return i end
  end)
  local past = 0
  while past < count do
    local from = past
    past = run_past(thread, at, from, count)
    sort(at, from, past, time_ns)
  end
  local out, next_at = { at = at, count = count }, 0
  function out.of(t)
    local from = next_at
    if from == count or thread[at[from]] ~= t then return from, from end
    next_at = run_past(thread, at, from, count)
    return from, next_at
  end
  return out
end

--- The samples of one source by their threads, as rows_by_thread.
function M.by_thread(cap, source)
  local thread, rows = cap:array("samples", "thread")
  local of_source = cap:array("samples", "source")
  return M.rows_by_thread(thread, rows, cap:rows("threads"), cap:array("samples", "time_ns"),
    function(row) return of_source[row] == source end)
end

local SOURCES = 256 -- ids of sources are u8

--- Calls fn(source, thread, at, from, past) for each thread of each source that has samples, in
-- that order: their rows in order of time are at[from] to at[past - 1].
function M.each_thread(cap, fn)
  local thread, rows = cap:array("samples", "thread")
  local source, time_ns = cap:array("samples", "source"), cap:array("samples", "time_ns")
  local at = ordered(thread, cap:rows("threads"), rows, function(i) return i end)
  if cap:rows("sources") > 1 then
    local by_thread = at
    at = ordered(source, SOURCES, rows, function(i) return by_thread[i] end)
  end
  local from = 0
  while from < rows do
    local s, t = source[at[from]], thread[at[from]]
    local past = from + 1
    while past < rows and thread[at[past]] == t and source[at[past]] == s do past = past + 1 end
    sort(at, from, past, time_ns)
    fn(s, t, at, from, past)
    from = past
  end
end

return M
