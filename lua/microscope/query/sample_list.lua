--- sample_list.lua - samples one by one, in order of time.
--
-- Rows of samples are nearly in order of time, as CPUs gave them.  Where they are not, an index
-- of u32 is sorted: all else that is kept is one row.

local ffi = require("ffi")

local M = {}

local u32 = ffi.typeof("uint32_t[?]")

M.NONE = 0xffffffff
local NONE = M.NONE

-- Whether row b must come before row a: by time, then by all that tells samples apart.
local function is_after(c, a, b)
  local x, y = c.time[a], c.time[b]
  if x ~= y then return x > y end
  if c.thread[a] ~= c.thread[b] then return c.thread[a] > c.thread[b] end
  if c.cpu[a] ~= c.cpu[b] then return c.cpu[a] > c.cpu[b] end
  if c.stack[a] ~= c.stack[b] then return c.stack[a] > c.stack[b] end
  return c.weight[a] > c.weight[b]
end

-- The first row that is to come before the one before it; `rows` when there is none.
local function first_disorder(time, rows)
  for i = 1, rows - 1 do
    if time[i] <= time[i - 1] then return i end
  end
  return rows
end

-- Merge the sorted runs from[lo..mid) and from[mid..hi) into to.  One row a step, whichever run it
-- comes from, and the rest of the longer run at once.
local function merge_runs(c, from, to, lo, mid, hi)
  local a, b, i = lo, mid, lo
  while a < mid and b < hi do
    local x, y = from[a], from[b]
    local second = is_after(c, x, y) and 1 or 0
    to[i] = second == 1 and y or x
    a, b, i = a + 1 - second, b + second, i + 1
  end
  ffi.copy(to + i, from + a, (mid - a) * 4)
  ffi.copy(to + i + mid - a, from + b, (hi - b) * 4)
end

-- Runs of sixteen by insertion: what is nearly in order takes few steps.
local RUN = 16

local function sort_runs(c, index, rows)
  for lo = 0, rows - 1, RUN do
    for i = lo + 1, math.min(lo + RUN, rows) - 1 do
      local row, at = index[i], i
      while at > lo and is_after(c, index[at - 1], row) do
        index[at] = index[at - 1]
        at = at - 1
      end
      index[at] = row
    end
  end
end

-- The rows in order, or nil when they are in order as they are.
local function order_of(c, rows)
  if first_disorder(c.time, rows) >= rows then return nil end
  local index, other = u32(rows), u32(rows)
  for i = 0, rows - 1 do index[i] = i end
  sort_runs(c, index, rows)
  local width = RUN
  while width < rows do
    for lo = 0, rows - 1, width * 2 do
      local mid, hi = math.min(lo + width, rows), math.min(lo + width * 2, rows)
      if mid >= hi or not is_after(c, index[mid - 1], index[mid]) then
        ffi.copy(other + lo, index + lo, (hi - lo) * 4)
      else
        merge_runs(c, index, other, lo, mid, hi)
      end
    end
    index, other = other, index
    width = width * 2
  end
  return index
end

--- The samples of a capture: {source=, ...} for each and walk.  source is one of
-- summary.sources, filter (or nil) as samples.weights takes it.
function M.of(cap, source, filter)
  local rows = cap:rows("samples")
  local c = { time = cap:array("samples", "time_ns") }
  for _, name in ipairs { "thread", "cpu", "stack", "weight", "source" } do
    c[name] = cap:array("samples", name)
  end
  return {
    cap = cap,
    source = source,
    columns = c,
    rows = rows,
    order = order_of(c, rows),
    -- One byte a sample: which are taken.
    keep = filter and rows > 0 and filter(0, rows) or nil,
    parent = cap:array("stacks", "parent"),
    location = cap:array("stacks", "location"),
    ending = cap:array("stacks", "end"),
  }
end

--- Iterate over the samples: each is {time_ns=, thread=, thread_name=, tid=, pid=, cpu=, stack=,
-- weight=, row=}, the same table again each time.
function M.each(list)
  local c, order, keep, wanted = list.columns, list.order, list.keep, list.source.id
  local cap, i, s = list.cap, -1, {}
  local process, tid = cap:array("threads", "process"), cap:array("threads", "tid")
  local name, pid = cap:array("threads", "name"), cap:array("processes", "pid")
  local names = {}
  return function()
    while true do
      i = i + 1
      if i >= list.rows then return nil end
      local row = order and order[i] or i
      if c.source[row] == wanted and (not keep or keep[row] ~= 0) then
        local thread = c.thread[row]
        names[thread] = names[thread] or cap:string(name[thread])
        s.time_ns, s.thread, s.thread_name = tonumber(c.time[row]), thread, names[thread]
        s.tid, s.pid, s.cpu = tid[thread], pid[process[thread]], c.cpu[row]
        s.stack, s.weight, s.row = c.stack[row], tonumber(c.weight[row]), row
        return s
      end
    end
  end
end

--- Call visit(location) for each location of a stack, the innermost first; gives why it ends
-- (stacks.end).
function M.walk(list, stack, visit)
  local parent, location = list.parent, list.location
  while parent[stack] ~= NONE do
    visit(location[stack])
    stack = parent[stack]
  end
  return list.ending[stack]
end

M._first_disorder, M._merge_runs, M._order_of = first_disorder, merge_runs, order_of
return M
