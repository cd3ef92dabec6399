--- groups.lua - what things cost that samples are told apart by: one, or two at once.
--
-- A sample has a thread, a process and a CPU; its frames have a function, a module, a file and a
-- line (M.OF_SAMPLES, M.OF_FRAMES).  What a frame's thing costs itself is what ran in it, and in
-- total what ran in it or below, a sample once for each; a sample's own thing has all of its cost
-- itself.  Two of frames are taken from the same frame.
--
-- groups = {
--   by    = the one or two names
--   rows  = list of { values =, self =, total = }, in the source's unit, most self first;
--           values[i] describes the thing of by[i]:
--     thread    { id =, name =, tid =, pid = }  process  { id =, name =, pid = }  cpu  { cpu = }
--     function  { key =, name =, module = }     module   { name =, path =, build_id = }
--     file      { file = }                      line     { file =, line = }
--           fields that are not known are nil
--   weight = of all samples that were taken
-- }

local ffi = require("ffi")

local costs_query = require("microscope.query.costs")
local keys_query = require("microscope.query.keys")
local tree_query = require("microscope.query.tree")

local M = {}

local NONE = tree_query.NONE
local ROOTS = tree_query.ROOTS
local CPUS = 65536 -- samples.cpu is a u16

-- More pairs of a sample's things than this would be gigabytes.
M.MOST = 2 ^ 26

local u32, f64, u8 = ffi.typeof("uint32_t[?]"), ffi.typeof("double[?]"), ffi.typeof("uint8_t[?]")

--- The names of what samples and what frames are told apart by.
M.OF_SAMPLES = { thread = true, process = true, cpu = true }
M.OF_FRAMES = { ["function"] = true, module = true, file = true, line = true }

--- Whether things need keys by line (keys.lua).
function M.needs_lines(by)
  for _, name in ipairs(by) do
    if name == "file" or name == "line" then return true end
  end
  return false
end

-- Rows of one source by two things: the thread's and the CPU's numbers.
local function add_rows(thread, cpu, weight, source, rows, wanted, of_thread, of_cpu, out)
  for i = 0, rows - 1 do
    if source[i] == wanted then
      local g = of_thread[thread[i]] + of_cpu[cpu[i]]
      out[g] = out[g] + tonumber(weight[i])
    end
  end
end

-- The same of rows that a filter kept and whose stack was not dropped.
local function add_some_rows(thread, cpu, weight, source, rows, wanted, of_thread, of_cpu, out,
    keep, stack, node_of)
  for i = 0, rows - 1 do
    if source[i] == wanted and keep[i] ~= 0 and node_of[stack[i]] ~= NONE then
      local g = of_thread[thread[i]] + of_cpu[cpu[i]]
      out[g] = out[g] + tonumber(weight[i])
    end
  end
end

local function count_rows(thread, cpu, source, rows, wanted, of_thread, of_cpu, keep, stack,
    node_of, start)
  for i = 0, rows - 1 do
    if source[i] == wanted and keep[i] ~= 0 and node_of[stack[i]] ~= NONE then
      local g = of_thread[thread[i]] + of_cpu[cpu[i]] + 1
      start[g] = start[g] + 1
    end
  end
end

local function add_up(start, count)
  for i = 1, count do start[i] = start[i] + start[i - 1] end
end

-- Nodes and weights of rows, put together by group; at[g] is where group g's next one goes.
local function place_rows(thread, cpu, weight, source, rows, wanted, of_thread, of_cpu, keep, stack,
    node_of, at, nodes, weights)
  for i = 0, rows - 1 do
    if source[i] == wanted and keep[i] ~= 0 then
      local node = node_of[stack[i]]
      if node ~= NONE then
        local g = of_thread[thread[i]] + of_cpu[cpu[i]]
        local to = at[g]
        at[g] = to + 1
        nodes[to] = node
        weights[to] = tonumber(weight[i])
      end
    end
  end
end

-- A group's rows, added up by node.  Gives how many nodes there are, listed.
local function gather(nodes, weights, from, to, sums, list)
  local count = 0
  for i = from, to - 1 do
    local node, weight = nodes[i], weights[i]
    local sum = sums[node]
    if sum == 0 and weight > 0 then
      list[count] = node
      count = count + 1
    end
    sums[node] = sum + weight
  end
  return count
end

-- The costs of a group's classes by walking up from each of its nodes; sums are 0 again after it.
local function add_by_paths(list, count, sums, parent, class_of, outermost, self, total)
  local i, node, weight = -1, 0, 0
  while i < count do
    if node < ROOTS then
      i = i + 1
      node = i < count and list[i] or 0
      weight = sums[node]
      sums[node] = 0
      if node >= ROOTS then
        local class = class_of[node]
        self[class] = self[class] + weight
      end
    else
      if outermost[node] ~= 0 then
        local class = class_of[node]
        total[class] = total[class] + weight
      end
      node = parent[node]
    end
  end
end

local function add_selves(list, count, sums, class_of, self)
  for i = 0, count - 1 do
    local node = list[i]
    if node >= ROOTS then
      local class = class_of[node]
      self[class] = self[class] + sums[node]
    end
  end
end

-- The same by one pass over all nodes, from the leaves up.
local function add_by_nodes(nodes, sums, parent, class_of, outermost, total)
  for node = nodes - 1, ROOTS, -1 do
    local weight = sums[node]
    if weight ~= 0 then
      sums[node] = 0
      local up = parent[node]
      sums[up] = sums[up] + weight
      if outermost[node] ~= 0 then
        local class = class_of[node]
        total[class] = total[class] + weight
      end
    end
  end
end

local function classes_of_nodes(key, map, count, out)
  for node = ROOTS, count - 1 do out[node] = map[key[node]] end
end

-- A frame's things, by the key's row.
local DESCRIBE = {}

DESCRIBE["function"] = function(cap, keys, key)
  local what = keys_query.describe(cap, keys, key)
  return { key = key, name = what.name, module = what.module }
end

local function module_row(cap, keys, key)
  local fn = keys_query.function_of(cap, keys, key)
  if fn then return cap:array("functions", "module")[fn] end
  return cap:array("locations", "module")[keys.ref[key]]
end

function DESCRIBE.module(cap, keys, key)
  local row = module_row(cap, keys, key)
  if row == NONE then return {} end
  local function text(column) return cap:string(cap:array("modules", column)[row]) end
  return { name = text("name"), path = text("path"), build_id = text("build_id") }
end

function DESCRIBE.line(cap, keys, key)
  local what = keys_query.describe(cap, keys, key)
  return { file = what.file, line = what.line }
end

function DESCRIBE.file(cap, keys, key)
  return { file = keys_query.describe(cap, keys, key).file }
end

-- What tells a key's things apart, as text.
local IDENTITY = {
  ["function"] = function(_, keys, key) return keys.group[key] end,
  module = function(cap, keys, key) return module_row(cap, keys, key) end,
  file = function(cap, keys, key) return keys_query.describe(cap, keys, key).file or "" end,
  line = function(cap, keys, key)
    local what = keys_query.describe(cap, keys, key)
    return (what.file or "") .. ":" .. (what.line or "")
  end,
}

-- The classes of keys by things of frames: a map (costs.lua), how many, and a key of each.
local function frame_classes(cap, keys, by)
  local map, seen, first, count = u32(keys.count + keys_query.ENDS), {}, {}, 0
  for key = 0, keys.count - 1 do
    local parts = {}
    for i, name in ipairs(by) do parts[i] = IDENTITY[name](cap, keys, key) end
    local id = table.concat(parts, "\0")
    if not seen[id] then
      seen[id] = count
      first[count] = key
      count = count + 1
    end
    map[key] = seen[id]
  end
  -- Ends are of no class: an empty one.
  for key = keys.count, keys.count + keys_query.ENDS - 1 do map[key] = count end
  return { map = map, count = count, first = first }
end

local function note_cpus(cpu, source, rows, wanted, seen)
  for i = 0, rows - 1 do
    if source[i] == wanted then seen[cpu[i]] = 1 end
  end
end

-- Numbers for the CPUs that samples were taken on.
local function number_cpus(cap, source)
  local seen, of_cpu, list = u8(CPUS), u32(CPUS), {}
  for rows, cpu, of in cap:blocks("samples", "cpu", "source") do
    note_cpus(cpu, of, rows, source, seen)
  end
  for cpu = 0, CPUS - 1 do
    if seen[cpu] ~= 0 then
      of_cpu[cpu] = #list
      list[#list + 1] = cpu
    end
  end
  return of_cpu, list
end

local function thread_value(cap, thread)
  local process = cap:array("threads", "process")[thread]
  return { id = thread, name = cap:string(cap:array("threads", "name")[thread]),
    tid = cap:array("threads", "tid")[thread], pid = cap:array("processes", "pid")[process] }
end

local function process_value(cap, process)
  return { id = process, name = cap:string(cap:array("processes", "name")[process]),
    pid = cap:array("processes", "pid")[process] }
end

-- Numbers for a sample's things: g = of_thread[thread] + of_cpu[cpu], below count;
-- value(name, g) describes one.
local function sample_groups(cap, source, by)
  local has = {}
  for _, name in ipairs(by) do has[name] = true end
  local of_cpu, cpus = u32(CPUS), { 0 }
  if has.cpu then of_cpu, cpus = number_cpus(cap, source) end
  local width, threads = math.max(#cpus, 1), cap:rows("threads")
  local of_thread, process = u32(threads + 1), cap:array("threads", "process")
  local rows = has.thread and threads or has.process and cap:rows("processes") or 1
  if rows * width > M.MOST then return nil end
  for t = 0, threads - 1 do
    of_thread[t] = (has.thread and t or has.process and process[t] or 0) * width
  end
  local function value(name, g)
    local row = math.floor(g / width)
    if name == "cpu" then return { cpu = cpus[g % width + 1] } end
    if name == "thread" then return thread_value(cap, row) end
    return process_value(cap, has.thread and process[row] or row)
  end
  return { of_thread = of_thread, of_cpu = of_cpu, count = rows * width, value = value }
end

local SAMPLES = { "thread", "cpu", "weight", "source", "stack" }

-- Call fn(rows, thread, cpu, weight, source, stack, keep) for each block.
local function each_block(cap, filter, fn)
  local first, ones, room = 0, nil, 0
  for rows, thread, cpu, weight, source, stack in cap:blocks("samples", unpack(SAMPLES)) do
    if not filter and rows > room then
      ones, room = u8(rows), rows
      ffi.fill(ones, rows, 1)
    end
    fn(rows, thread, cpu, weight, source, stack, filter and filter(first, rows) or ones)
    first = first + rows
  end
end

local function by_samples(cap, p, groups)
  local out, source, of_thread, of_cpu = f64(groups.count + 1), p.source_id, groups.of_thread,
    groups.of_cpu
  local all = not p.filter and not p.dropped
  each_block(cap, p.filter, function(rows, thread, cpu, weight, of, stack, keep)
    if all then
      add_rows(thread, cpu, weight, of, rows, source, of_thread, of_cpu, out)
    else
      add_some_rows(thread, cpu, weight, of, rows, source, of_thread, of_cpu, out, keep, stack,
        p.tree.node_of)
    end
  end)
  return out
end

-- Samples put together by group: start (double[count + 1]), nodes and weights.
local function sort_rows(cap, p, groups)
  local start, node_of, source = f64(groups.count + 2), p.tree.node_of, p.source_id
  local of_thread, of_cpu, count = groups.of_thread, groups.of_cpu, groups.count
  each_block(cap, p.filter, function(rows, thread, cpu, _, of, stack, keep)
    count_rows(thread, cpu, of, rows, source, of_thread, of_cpu, keep, stack, node_of, start)
  end)
  add_up(start, count)
  local at, all = f64(count + 1), start[count]
  ffi.copy(at, start, count * 8)
  local nodes, weights = u32(all + 1), f64(all + 1)
  each_block(cap, p.filter, function(rows, thread, cpu, weight, of, stack, keep)
    place_rows(thread, cpu, weight, of, rows, source, of_thread, of_cpu, keep, stack, node_of, at,
      nodes, weights)
  end)
  return start, nodes, weights
end

-- A walk up a path costs some tens of steps, a pass over the tree one for each node.
local STEPS_A_PATH = 32

-- The costs of each class in each group: emit(group, class, self, total).
local function by_both(cap, p, groups, classes, emit)
  local tree = p.tree
  local outermost = costs_query.outermost(tree, classes.map, classes.count + 1)
  local class_of, sums = u32(tree.count), f64(tree.count)
  classes_of_nodes(tree.key, classes.map, tree.count, class_of)
  local start, nodes, weights = sort_rows(cap, p, groups)
  local list, self, total = u32(tree.count), f64(classes.count + 1), f64(classes.count + 1)
  for g = 0, groups.count - 1 do
    local from, to = start[g], start[g + 1]
    if to > from then
      local count = gather(nodes, weights, from, to, sums, list)
      if count * STEPS_A_PATH < tree.count then
        add_by_paths(list, count, sums, tree.parent, class_of, outermost, self, total)
      else
        add_selves(list, count, sums, class_of, self)
        add_by_nodes(tree.count, sums, tree.parent, class_of, outermost, total)
      end
      ffi.fill(sums, ROOTS * 8)
      for class = 0, classes.count - 1 do
        if total[class] > 0 then emit(g, class, self[class], total[class]) end
      end
      ffi.fill(self, classes.count * 8)
      ffi.fill(total, classes.count * 8)
    end
  end
end

local function split(by)
  local of_samples, of_frames = {}, {}
  for _, name in ipairs(by) do
    local list = M.OF_SAMPLES[name] and of_samples or of_frames
    list[#list + 1] = name
  end
  return of_samples, of_frames
end

-- Rows in order: most self, then total, then as they were numbered.
local function sort(rows, by)
  local main, other = by == "total" and "total" or "self", by == "total" and "self" or "total"
  table.sort(rows, function(a, b)
    if a[main] ~= b[main] then return a[main] > b[main] end
    if a[other] ~= b[other] then return a[other] > b[other] end
    if a.group ~= b.group then return a.group < b.group end
    return a.class < b.class
  end)
end

local function collect(cap, p, groups, classes)
  local rows = {}
  local function emit(g, class, self, total)
    rows[#rows + 1] = { group = g, class = class, self = self, total = total }
  end
  if not classes then
    local weights = by_samples(cap, p, groups)
    for g = 0, groups.count - 1 do
      if weights[g] > 0 then emit(g, 0, weights[g], weights[g]) end
    end
  elseif not groups then
    local costs = costs_query.flat(p.tree, p.keys, classes.map, classes.count + 1)
    for class = 0, classes.count - 1 do
      if costs.total[class] > 0 then emit(0, class, costs.self[class], costs.total[class]) end
    end
  else
    by_both(cap, p, groups, classes, emit)
  end
  return rows
end

--- The groups of a profile (profile.lua) by a list of one or two names; options.sort is "self"
-- (the default) or "total".  nil and a message when there would be too many.
function M.of(cap, p, by, options)
  local of_samples, of_frames = split(by)
  local groups, classes
  if #of_samples > 0 then
    groups = sample_groups(cap, p.source_id, of_samples)
    if not groups then return nil, "there are too many threads and CPUs to group by both" end
  end
  if #of_frames > 0 then classes = frame_classes(cap, p.keys, of_frames) end
  local rows = collect(cap, p, groups, classes)
  sort(rows, options and options.sort)
  local function values(row)
    local out = {}
    for i, name in ipairs(by) do
      out[i] = M.OF_SAMPLES[name] and groups.value(name, row.group)
        or DESCRIBE[name](cap, p.keys, classes.first[row.class])
    end
    return out
  end
  -- Described when asked for: a report shows few of them.
  local lazy = { __index = function(row, field)
    if field ~= "values" then return nil end
    row.values = values(row)
    return row.values
  end }
  for _, row in ipairs(rows) do setmetatable(row, lazy) end
  return { by = by, rows = rows, weight = p.tree.weight, both = groups ~= nil and classes ~= nil,
    of_samples = classes == nil }
end

M._add_rows, M._add_some_rows, M._count_rows, M._place_rows = add_rows, add_some_rows, count_rows,
  place_rows
M._gather, M._add_by_paths, M._add_selves, M._add_by_nodes = gather, add_by_paths, add_selves,
  add_by_nodes
M._note_cpus = note_cpus
return M
