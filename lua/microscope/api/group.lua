--- group.lua - what selected samples add up to: by thread, process, CPU or stack, and over time.

local ffi = require("ffi")

local samples_query = require("microscope.query.samples")

local M = {}

local u32, f64 = ffi.typeof("uint32_t[?]"), ffi.typeof("double[?]")

local CPUS = 65536 -- a u16 in the schema

local function add(id, weight, taken, rows, out, out_count)
  for i = 0, rows - 1 do
    if taken[i] ~= 0 then
      local k = id[i]
      out[k] = out[k] + tonumber(weight[i])
      out_count[k] = out_count[k] + 1
    end
  end
end

-- The same by what each id stands for.
local function add_mapped(id, map, weight, taken, rows, out, out_count)
  for i = 0, rows - 1 do
    if taken[i] ~= 0 then
      local k = map[id[i]]
      out[k] = out[k] + tonumber(weight[i])
      out_count[k] = out_count[k] + 1
    end
  end
end

local function add_lanes(time, id, map, weight, taken, rows, from, to, scale, last, buckets, out,
    counts)
  for i = 0, rows - 1 do
    if taken[i] ~= 0 and time[i] >= from and time[i] < to then
      local b = math.floor(tonumber(time[i] - from) * scale)
      if b > last then b = last end
      local at = map[id[i]] * buckets + b
      out[at] = out[at] + tonumber(weight[i])
      counts[at] = counts[at] + 1
    end
  end
end

local function same_ids(count)
  local map = u32(count + 1)
  for i = 0, count - 1 do map[i] = i end
  return map
end

-- Of a dimension: the samples' column, a map from its values to ids, and how many ids there are.
local function dimension(cap, by)
  if by == "thread" then
    local count = cap:rows("threads")
    return "thread", same_ids(count), count
  elseif by == "process" then
    return "thread", cap:array("threads", "process"), cap:rows("processes")
  elseif by == "cpu" then
    return "cpu", same_ids(CPUS), CPUS
  elseif by == "stack" then
    local count = cap:rows("stacks")
    return "stack", same_ids(count), count
  elseif by == "all" then
    return "source", u32(257), 1
  end
  error(("by: '%s' is none of thread, process, cpu, stack, all"):format(tostring(by)), 4)
end

-- Sums of rows and of their weights.
local function add_rows(cap, by, selection)
  local column, map, count = dimension(cap, by)
  local out = { by = by, count = count, weight = f64(count + 1), samples = f64(count + 1) }
  local rows = cap:rows("samples")
  if rows == 0 then return out end
  local id, weight = cap:array("samples", column), cap:array("samples", "weight")
  if by == "process" or by == "all" then
    add_mapped(id, map, weight, selection.rows, rows, out.weight, out.samples)
  else
    add(id, weight, selection.rows, rows, out.weight, out.samples)
  end
  return out
end

-- A row may stand for several samples: with a period its weight tells how many.
local function count_samples(selection, weight, count, out)
  local period = selection.period or 0
  if period > 0 then samples_query.divide(weight, period, count, out) end
end

--- Sums of selected samples; see M.sums of microscope.
function M.sums(cap, by, selection)
  local out = add_rows(cap, by, selection)
  count_samples(selection, out.weight, out.count, out.samples)
  return out
end

-- Only ids that have samples become lanes: a map from ids to lanes, and the ids of lanes.
local function lanes_of(sums)
  local map, ids = u32(sums.count + 1), {}
  for id = 0, sums.count - 1 do
    if sums.samples[id] > 0 then
      map[id] = #ids
      ids[#ids + 1] = id
    end
  end
  return map, ids
end

local function compose(inner, outer, count)
  local map = u32(count + 1)
  for i = 0, count - 1 do map[i] = outer[inner[i]] end
  return map
end

local function latest(time, taken, rows)
  local last = 0
  for i = 0, rows - 1 do
    if taken[i] ~= 0 and time[i] > last then last = tonumber(time[i]) end
  end
  return last
end

-- The recording's end, and past its last sample: an imported recording lasts until just that.
local function end_of(cap, selection)
  local duration = cap:rows("clocks") > 0
    and tonumber(cap:array("clocks", "duration_ns")[0]) or 0
  if selection.count == 0 then return duration end
  return math.max(duration, latest(cap:array("samples", "time_ns"), selection.rows,
    cap:rows("samples")) + 1)
end

local function bounds(cap, options, selection)
  local from, to = options.from_ns or 0, options.to_ns or end_of(cap, selection)
  if to <= from then to = from + 1 end
  return from, to
end

-- Lane number i as an array of its own: a pointer into all of them would not keep them alive.
local function part_of(all, i, buckets)
  local out = f64(buckets)
  ffi.copy(out, all + (i - 1) * buckets, buckets * 8)
  return out
end

--- Selected samples over time; see M.lanes of microscope.
function M.lanes(cap, options, selection)
  local by, buckets = options.by or "thread", options.buckets or 100
  if buckets < 1 or buckets > 1e6 or buckets % 1 ~= 0 then
    error("lanes: buckets must be a whole number of 1 to 1000000", 3)
  end
  local column, map, count = dimension(cap, by)
  local sums = add_rows(cap, by, selection)
  local lane_map, ids = lanes_of(sums)
  if #ids * buckets > 2 ^ 27 then
    error(("lanes: %d lanes of %d buckets are too many"):format(#ids, buckets), 3)
  end
  local from, to = bounds(cap, options, selection)
  local weight, samples = f64(#ids * buckets + 1), f64(#ids * buckets + 1)
  local values = by == "process" and cap:rows("threads") or by == "all" and 256 or count
  if selection.count > 0 then
    add_lanes(cap:array("samples", "time_ns"), cap:array("samples", column),
      compose(map, lane_map, values), cap:array("samples", "weight"), selection.rows,
      cap:rows("samples"), ffi.cast("uint64_t", from), ffi.cast("uint64_t", to),
      buckets / (to - from), buckets - 1, buckets, weight, samples)
  end
  count_samples(selection, weight, #ids * buckets, samples)
  local lanes = {}
  for i, id in ipairs(ids) do
    local lane = { id = id, weight = part_of(weight, i, buckets),
      samples = part_of(samples, i, buckets) }
    lane.total_weight = samples_query.sum(lane.weight, 0, buckets)
    lane.total_samples = samples_query.sum(lane.samples, 0, buckets)
    lanes[i] = lane
  end
  return { by = by, buckets = buckets, from_ns = from, to_ns = to,
    bucket_ns = (to - from) / buckets, unit = selection.unit, lanes = lanes }
end

M._add, M._add_mapped, M._add_lanes, M._latest = add, add_mapped, add_lanes, latest
return M
