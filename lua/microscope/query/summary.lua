--- summary.lua - the facts of a recording that stand above a report.

local core = require("microscope.core")

local C = core.C

local M = {}

local NONE = 0xffffffff
local NO_CPU = 0xffff -- an off span that holds for all CPUs

-- Rows of a table of two string columns, as a Lua table; a later row beats an earlier one.
local function facts(cap, name)
  local out, key, value = {}, cap:array(name, "key"), cap:array(name, "value")
  for i = 0, cap:rows(name) - 1 do out[cap:string(key[i])] = cap:string(value[i]) end
  return out
end

-- The kinds that struct columns of enums hold, by number.
local COSTS = { [0] = "startup", "running", "finishing" }
local OFF = { [0] = "queue", "budget", "throttle" }
local UNITS = { [0] = "ns", "cycles", "count", "bytes", "ns", "other" }
local CPU_NS = 0 -- MIC_UNIT_CPU_NS

local function costs(cap)
  local out = {}
  for _, kind in pairs(COSTS) do out[kind] = { cpu_ns = 0, wall_ns = 0 } end
  local kind, cpu, wall = cap:array("costs", "kind"), cap:array("costs", "cpu_ns"),
    cap:array("costs", "wall_ns")
  for i = 0, cap:rows("costs") - 1 do
    local cost = out[COSTS[kind[i]]]
    if cost then
      cost.cpu_ns = cost.cpu_ns + tonumber(cpu[i])
      cost.wall_ns = cost.wall_ns + tonumber(wall[i])
    end
  end
  return out
end

-- The length that spans cover together: they may overlap, as a full queue within a budget's pause.
local function covered(spans)
  table.sort(spans, function(a, b) return a[1] < b[1] end)
  local total, up_to = 0, 0
  for _, span in ipairs(spans) do
    local from = math.max(span[1], up_to)
    if span[2] > from then
      total = total + span[2] - from
      up_to = span[2]
    end
  end
  return total
end

-- Off time: in all, by kind, and that of single CPUs apart (which is time of one CPU each).
local function off_time(cap)
  local start, stop = cap:array("off_spans", "start_ns"), cap:array("off_spans", "end_ns")
  local kind, cpu = cap:array("off_spans", "kind"), cap:array("off_spans", "cpu")
  local out = { queue = {}, budget = {}, throttle = {}, one_cpu_ns = 0 }
  local all = {}
  for i = 0, cap:rows("off_spans") - 1 do
    local span = { tonumber(start[i]), tonumber(stop[i]) }
    if cpu[i] ~= NO_CPU then
      out.one_cpu_ns = out.one_cpu_ns + span[2] - span[1]
    else
      all[#all + 1] = span
      local of_kind = out[OFF[kind[i]]]
      if of_kind then of_kind[#of_kind + 1] = span end
    end
  end
  return {
    total_ns = covered(all),
    queue_ns = covered(out.queue),
    budget_ns = covered(out.budget),
    throttle_ns = covered(out.throttle),
    one_cpu_ns = out.one_cpu_ns,
  }
end

local function losses(cap)
  local kind, count = cap:array("losses", "kind"), cap:array("losses", "count")
  local samples, records = 0, 0
  for i = 0, cap:rows("losses") - 1 do
    if kind[i] == C.MIC_LOSS_SAMPLES then
      samples = samples + tonumber(count[i])
    else
      records = records + tonumber(count[i])
    end
  end
  return samples, records
end

-- What naming said of each module: {first = problem, last = problem, later = true or nil}.  A later
-- attempt's words take the place of those before.
local function naming(cap)
  local out, module, state, problem = {}, cap:array("naming", "module"),
    cap:array("naming", "state"), cap:array("naming", "problem")
  for i = 0, cap:rows("naming") - 1 do
    local why, of = cap:string(problem[i]), out[module[i]]
    if not of then
      of = { first = why }
      out[module[i]] = of
    end
    of.last, of.later = why, state[i] == C.MIC_NAMING_LATER or nil
  end
  return out
end

local function module_problems(cap, out)
  local problem, name = cap:array("modules", "problem"), cap:array("modules", "name")
  local named = naming(cap)
  for i = 0, cap:rows("modules") - 1 do
    local texts, of = { cap:string(problem[i]) }, named[i]
    if of then
      if texts[1] == of.first then texts[1] = "" end
      texts[2] = of.last
    end
    for _, why in ipairs(texts) do
      if why ~= "" then
        out[#out + 1] = { text = cap:string(name[i]) .. ": " .. why, count = 1 }
      end
    end
  end
end

--- Modules that were left for later, but lack what would name them: a list of {name=, why=}.
function M.nameless(cap)
  local out, name = {}, cap:array("modules", "name")
  for module, of in pairs(naming(cap)) do
    if of.later and of.last ~= "" then
      out[#out + 1] = { name = cap:string(name[module]), why = of.last, module = module }
    end
  end
  table.sort(out, function(a, b) return a.module < b.module end)
  return out
end

-- Whether functions and lines of some module were left for later.
local function names_later(cap)
  for _, of in pairs(naming(cap)) do
    if of.later then return true end
  end
  return false
end

local function problems(cap)
  local out, text, count = {}, cap:array("problems", "text"), cap:array("problems", "count")
  for i = 0, cap:rows("problems") - 1 do
    out[#out + 1] = { text = cap:string(text[i]), count = tonumber(count[i]) }
  end
  module_problems(cap, out)
  return out
end

--- What is measured, of each source: {id=, name=, unit=, unit_name=, period=, is_cpu=}.  unit is
-- "ns", "cycles", "count", "bytes" or "other", unit_name the unit's own name where an imported
-- file gave it one (else nil); is_cpu is true for time on a CPU.  A period of 0: samples are not
-- taken by a period.
function M.sources(cap)
  local out = {}
  local name, unit, period = cap:array("sources", "name"), cap:array("sources", "unit"),
    cap:array("sources", "period")
  local unit_name = cap:array("sources", "unit_name")
  for i = 0, cap:rows("sources") - 1 do
    local own = unit_name and cap:string(unit_name[i]) or ""
    out[#out + 1] = {
      id = i,
      name = cap:string(name[i]),
      unit = UNITS[unit[i]] or "other",
      unit_name = own ~= "" and own or nil,
      period = tonumber(period[i]),
      is_cpu = unit[i] == CPU_NS,
    }
  end
  return out
end

--- The source that a report is about when none is asked for: the first of CPU time, else the
-- one that an imported file shows first (meta default_source), else the first; nil for a capture
-- without any.
function M.cpu_source(cap)
  local id = M.cpu_source_id(cap)
  return id and M.sources(cap)[id + 1]
end

--- The same as its row alone: names of sources may have any size.
function M.cpu_source_id(cap)
  local unit, rows = cap:array("sources", "unit")
  for i = 0, rows - 1 do
    if unit[i] == CPU_NS then return i end
  end
  local name, preferred = cap:array("sources", "name"), cap:fact("default_source")
  for i = 0, rows - 1 do
    if preferred and cap:same(name[i], preferred) then return i end
  end
  return rows > 0 and 0 or nil
end

local function duration_ns(cap)
  return cap:rows("clocks") > 0 and tonumber(cap:array("clocks", "duration_ns")[0]) or 0
end

-- What was recorded, in words, for a capture that holds no command line: its processes.
local function program(cap)
  local name, pid, parent = cap:array("processes", "name"), cap:array("processes", "pid"),
    cap:array("processes", "parent")
  local out = {}
  for i = 0, cap:rows("processes") - 1 do
    if parent[i] == NONE then
      -- Imported files may not say which process it was.
      out[#out + 1] = pid[i] == 0 and cap:string(name[i]) == "" and "a process without a name"
        or ("%s (pid %d)"):format(cap:string(name[i]), pid[i])
    end
    if #out == 5 then
      out[#out + 1] = "..."
      break
    end
  end
  return #out > 0 and table.concat(out, ", ") or "no process"
end

-- User CPU time of the program, as the kernel counted it; nil when it was not started or its end
-- not seen, or when sampling began later than the program did or left out what it started.  Of
-- several segments the facts are the last one's: what all of them ran for is not known.
local function program_user_ns(meta, settings)
  if (tonumber(meta.segments) or 1) > 1 then return nil end
  if settings.children == "no" then return nil end
  if tonumber(settings.delay and settings.delay:match("^[%d.]+") or 0) > 0 then return nil end
  return tonumber(meta.user_cpu_ns)
end

--- The facts: program (in words), meta and settings (tables of texts), duration_ns, costs, off,
-- lost_samples, lost_records, threads, processes, zones, problems, names_later (whether functions
-- and lines were left for later); program_user_ns (or nil).
function M.of(cap)
  local lost_samples, lost_records = losses(cap)
  local meta, settings = facts(cap, "meta"), facts(cap, "settings")
  return {
    program = program(cap),
    meta = meta,
    settings = settings,
    program_user_ns = program_user_ns(meta, settings),
    duration_ns = duration_ns(cap),
    costs = costs(cap),
    off = off_time(cap),
    lost_samples = lost_samples,
    lost_records = lost_records,
    threads = cap:rows("threads"),
    processes = cap:rows("processes"),
    zones = cap:rows("zones"),
    problems = problems(cap),
    names_later = names_later(cap),
  }
end

M._covered = covered
return M
