--- frames.lua - a capture's stacks as trees of single frames, for formats that know no inlining.
--
-- A location has a frame for each function that runs there, the inlined ones too.  frames.of(cap)
-- gives
--   list    frames from 1 on: {name=, linkage=, file=, line=, start_line=, module=, location=,
--           depth=}; file, module (rows) and lines are nil where they are not known
--   first, past  of a location (from 0): its frames, list[first[l]] to list[past[l] - 1], the
--           outermost first
-- and frames.tree(cap, frames) a tree of them:
--   count   nodes, from 0; a parent stands before its children
--   parent  FFI u32[count]: NONE for an outermost frame
--   frame   FFI u32[count]: an index of list
--   node    FFI u32[stacks]: the node of each stack; NONE for one without frames
-- A stack that ends short has its reason in brackets as outermost frame.

local ffi = require("ffi")

local capture = require("microscope.capture")
local ends_query = require("microscope.query.ends")
local keys_query = require("microscope.query.keys")

local M = {}

local NONE = capture.NONE
local SIGNAL = 1 -- MIC_LOCATION_SIGNAL

M.NONE = NONE

local u32 = ffi.typeof("uint32_t[?]")

-- The functions of lines, innermost first as the table has them.
local function line_frame(cap, i, l)
  local fn = cap:array("lines", "function")[i]
  local file, line = cap:array("lines", "file")[i], cap:array("lines", "line")[i]
  local module = cap:array("functions", "module")[fn]
  local start_line = cap:array("functions", "line")[fn]
  if module == NONE then module = cap:array("locations", "module")[l] end
  return {
    name = cap:string(cap:array("functions", "name")[fn]),
    linkage = cap:string(cap:array("functions", "linkage_name")[fn]),
    file = file ~= NONE and cap:string(cap:array("files", "path")[file]) or nil,
    line = line ~= 0 and line or nil,
    start_line = start_line ~= 0 and start_line or nil,
    module = module ~= NONE and module or nil,
    location = l,
    depth = cap:array("lines", "depth")[i],
    fn = fn,
  }
end

-- A place without a function, by the name that reports give it.
local function place_frame(cap, keys, l)
  local module = cap:array("locations", "module")[l]
  return {
    name = keys_query.describe(cap, keys, keys.frame[keys.start[l]]).name,
    module = module ~= NONE and module or nil,
    location = l,
    depth = 0,
  }
end

--- The frames of all locations.
function M.of(cap)
  local keys = keys_query.build(cap, false)
  local kind, locations = cap:array("locations", "kind")
  local location, lines = cap:array("lines", "location")
  local out, at = { list = {}, first = {}, past = {} }, 0
  for l = 0, locations - 1 do
    local from = at
    while at < lines and location[at] == l do at = at + 1 end
    out.first[l] = #out.list + 1
    if from == at or kind[l] == SIGNAL then
      out.list[#out.list + 1] = place_frame(cap, keys, l)
    else
      for i = at - 1, from, -1 do out.list[#out.list + 1] = line_frame(cap, i, l) end
    end
    out.past[l] = #out.list + 1
  end
  return out
end

-- The node that stacks of an end hang from: none for whole ones and those that do not say.
local function root_of(tree, frames, ending, roots)
  if ends_query.is_silent(ending) then return NONE end
  if not roots[ending] then
    frames.list[#frames.list + 1] = { name = "[" .. ends_query.reason(ending) .. "]", depth = 0,
      ending = ending }
    roots[ending] = tree.count
    tree.parent[tree.count], tree.frame[tree.count] = NONE, #frames.list
    tree.count = tree.count + 1
  end
  return roots[ending]
end

local function room_of(location, stacks, frames)
  local room = keys_query.ENDS
  for i = 0, stacks - 1 do
    local l = location[i]
    if l ~= NONE then room = room + frames.past[l] - frames.first[l] end
  end
  return room
end

--- The tree of all stacks' frames.
function M.tree(cap, frames)
  local parent, stacks = cap:array("stacks", "parent")
  local location, ends = cap:array("stacks", "location"), cap:array("stacks", "end")
  local room = room_of(location, stacks, frames)
  local tree = { count = 0, parent = u32(room), frame = u32(room), node = u32(stacks + 1) }
  local roots = {}
  for i = 0, stacks - 1 do
    local l = location[i]
    if l == NONE then
      tree.node[i] = root_of(tree, frames, ends[i], roots)
    else
      local node = tree.node[parent[i]]
      for f = frames.first[l], frames.past[l] - 1 do
        tree.parent[tree.count], tree.frame[tree.count] = node, f
        node = tree.count
        tree.count = tree.count + 1
      end
      tree.node[i] = node
    end
  end
  return tree
end

--- The samples of each thread in order of time: a list of {thread=, rows = FFI u32[count],
-- count=}, in the order of threads; of one source, or of all when it is nil.
function M.by_thread(cap, source)
  local thread, rows = cap:array("samples", "thread")
  local of_source, time_ns = cap:array("samples", "source"), cap:array("samples", "time_ns")
  local threads = cap:rows("threads")
  local counts = u32(threads + 1)
  for i = 0, rows - 1 do
    if not source or of_source[i] == source then counts[thread[i]] = counts[thread[i]] + 1 end
  end
  local by, out = {}, {}
  for t = 0, threads - 1 do
    if counts[t] > 0 then
      by[t] = { thread = t, rows = u32(counts[t]), count = 0 }
      out[#out + 1] = by[t]
    end
  end
  for i = 0, rows - 1 do
    if not source or of_source[i] == source then
      local list = by[thread[i]]
      list.rows[list.count] = i
      list.count = list.count + 1
    end
  end
  for _, list in ipairs(out) do M.sort(list.rows, list.count, time_ns) end
  return out
end

-- Rows in order of time, of equal times in their own order.  Most come sorted.
function M.sort(rows, count, time_ns)
  local sorted = true
  for i = 1, count - 1 do
    if time_ns[rows[i]] < time_ns[rows[i - 1]] then sorted = false break end
  end
  if sorted then return end
  local list = {}
  for i = 0, count - 1 do list[i + 1] = rows[i] end
  table.sort(list, function(a, b)
    if time_ns[a] ~= time_ns[b] then return time_ns[a] < time_ns[b] end
    return a < b
  end)
  for i = 1, count do rows[i - 1] = list[i] end
end

return M
