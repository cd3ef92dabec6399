--- select.lua - which samples are meant: by time, thread, process, CPU and source.
--
-- selection = { rows = FFI u8[samples] of 0 and 1, count = how many rows, weight =,
--   source = its id, unit =, period = the source's (0: none),
--   samples = how many the rows stand for }

local ffi = require("ffi")

local summary_query = require("microscope.query.summary")

local M = {}

local u8, u64 = ffi.typeof("uint8_t[?]"), ffi.typeof("uint64_t")

-- Sources are u8 in the schema and a capture may have none: no sample has this one.
local NO_SOURCE = 256
local CPUS = 65536 -- a u16 in the schema
local LATEST = 0xffffffffffffffffULL

local function mark(time, thread, cpu, source, rows, from, to, wanted, threads, cpus, out)
  local count = 0
  for i = 0, rows - 1 do
    local t = time[i]
    if source[i] == wanted and t >= from and t < to and threads[thread[i]] ~= 0
      and cpus[cpu[i]] ~= 0 then
      out[i] = 1
      count = count + 1
    end
  end
  return count
end

local function add_weight(weight, rows, taken)
  local total = 0
  for i = 0, rows - 1 do
    if taken[i] ~= 0 then total = total + tonumber(weight[i]) end
  end
  return total
end

local function both(keep, rows, taken)
  local count = 0
  for i = 0, rows - 1 do
    local one = keep[i] ~= 0 and taken[i] or 0
    taken[i] = one
    count = count + one
  end
  return count
end

-- A set of ids: given as one, as a list, or nil for all of `count`.
local function set_of(ids, count, what)
  local set = u8(count + 1)
  if ids == nil then
    ffi.fill(set, count, 1)
    return set
  end
  for _, id in ipairs(type(ids) == "table" and ids or { ids }) do
    if type(id) ~= "number" or id < 0 or id >= count or id % 1 ~= 0 then
      error(("selection: %s %s is none of %d"):format(what, tostring(id), count), 4)
    end
    set[id] = 1
  end
  return set
end

-- Threads of the wanted processes that are wanted themselves.
local function threads_of(cap, options)
  local count = cap:rows("threads")
  local set = set_of(options.thread, count, "thread")
  if options.process == nil then return set end
  local wanted = set_of(options.process, cap:rows("processes"), "process")
  local process = cap:array("threads", "process")
  for t = 0, count - 1 do
    if wanted[process[t]] == 0 then set[t] = 0 end
  end
  return set
end

--- The source that options name: its facts, or of CPU time; nil when the capture has none.
function M.source(cap, id)
  if id == nil then return summary_query.cpu_source(cap) end
  for _, source in ipairs(summary_query.sources(cap)) do
    if source.id == id or source.name == id then return source end
  end
  error("there is no source " .. tostring(id), 3)
end

local function time_of(value, default)
  if value == nil then return default end
  if value >= 2 ^ 64 then return LATEST end
  return u64(math.max(0, value))
end

-- Leave only what an expression chooses.
local function keep_where(cap, expression, rows, taken)
  local where = require("microscope.query.where")
  local ast, err = where.parse(expression)
  local bound
  if ast then bound, err = where.bind(cap, ast) end
  if not bound then error("selection: " .. where.explain(expression, err), 4) end
  return both(bound.filter(0, rows), rows, taken)
end

--- The samples that options describe; see M.selection of microscope.
function M.of(cap, options)
  local rows = cap:rows("samples")
  local taken = u8(rows + 1)
  local source = M.source(cap, options.source)
  local cpus = set_of(options.cpu, CPUS, "CPU")
  local threads = threads_of(cap, options)
  local count, weight = 0, 0
  if rows > 0 then
    count = mark(cap:array("samples", "time_ns"), cap:array("samples", "thread"),
      cap:array("samples", "cpu"), cap:array("samples", "source"), rows,
      time_of(options.from_ns, u64(0)), time_of(options.to_ns, LATEST),
      source and source.id or NO_SOURCE, threads, cpus, taken)
    if options.where then count = keep_where(cap, options.where, rows, taken) end
    weight = add_weight(cap:array("samples", "weight"), rows, taken)
  end
  local period = source and source.period or 0
  return {
    rows = taken,
    count = count,
    weight = weight,
    period = period,
    samples = period > 0 and weight / period or count,
    source = source and source.id,
    unit = source and source.unit or "count",
  }
end

M._mark, M._add_weight, M._both = mark, add_weight, both
return M
