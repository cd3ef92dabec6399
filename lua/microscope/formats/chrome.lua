--- chrome: Trace Event JSON, as chrome://tracing, Perfetto and Speedscope read it.

local ffi = require("ffi")

local capture = require("microscope.capture")
local core = require("microscope.core")
local input = require("microscope.input")
local output = require("microscope.output")
local text = require("microscope.report.text")

local C = core.C

local NONE = capture.NONE

-- Nanoseconds as the format's microseconds, all digits of them.
local function micros(ns)
  local whole = ns / 1000ULL
  return ("%.0f.%03d"):format(tonumber(whole), tonumber(ns - whole * 1000ULL))
end

local u32 = ffi.typeof("uint32_t[?]")

-- Threads and processes that have no id get one that no other has: the format tells by ids.
local function ids_of(cap)
  local pid, processes = cap:array("processes", "pid")
  local tid, threads = cap:array("threads", "tid")
  local process = cap:array("threads", "process")
  local pids, tids = u32(processes + 1), u32(threads + 1)
  for p = 0, processes - 1 do pids[p] = pid[p] end
  C.mic_own_ids(pids, processes)
  for t = 0, threads - 1 do tids[t] = tid[t] ~= 0 and tid[t] or pids[process[t]] end
  C.mic_own_ids(tids, threads)
  return pids, tids
end

local function write_names(cap, pids, tids, event)
  local name = cap:array("processes", "name")
  for p = 0, cap:rows("processes") - 1 do
    event('{"ph":"M","name":"process_name","pid":', pids[p], ',"args":{"name":',
      output.json(cap, name[p]), "}}")
  end
  name = cap:array("threads", "name")
  local process = cap:array("threads", "process")
  for t = 0, cap:rows("threads") - 1 do
    event('{"ph":"M","name":"thread_name","pid":', pids[process[t]], ',"tid":', tids[t],
      ',"args":{"name":', output.json(cap, name[t]), "}}")
  end
end

-- Zones of lane 0 lie inside of one another and are complete events; those of other lanes are
-- asynchronous ones, which may overlap.  One that did not end is a begin without an end.
local function write_zones(cap, pids, tids, zero, event)
  local thread, rows = cap:array("zones", "thread")
  local site, lane = cap:array("zones", "site"), cap:array("zones", "lane")
  local start, stop = cap:array("zones", "start_ns"), cap:array("zones", "end_ns")
  local process = cap:array("threads", "process")
  local name, category = cap:array("sites", "name"), cap:array("sites", "category")
  local open = 0xffffffffffffffffULL
  local text_of = output.remembered(function(s)
    return output.join { '"name":', output.json(cap, name[s]), ',"cat":',
      output.json(cap, category[s]) }
  end)
  for i = 0, rows - 1 do
    local t = thread[i]
    local where, named = ('"pid":%.0f,"tid":%.0f,'):format(pids[process[t]], tids[t]),
      text_of(site[i])
    if lane[i] > 0 then
      local id = (',"id":"0x%x","ts":'):format(i)
      event('{"ph":"b",', where, named, id, micros(zero + start[i]), "}")
      if stop[i] ~= open then
        event('{"ph":"e",', where, named, id, micros(zero + stop[i]), "}")
      end
    elseif stop[i] == open then
      event('{"ph":"B",', where, named, ',"ts":', micros(zero + start[i]), "}")
    else
      event('{"ph":"X",', where, named, ',"ts":', micros(zero + start[i]), ',"dur":',
        micros(stop[i] - start[i]), "}")
    end
  end
end

local function write_samples(cap, nodes, tids, zero, out, ctx)
  local time_ns, rows = cap:array("samples", "time_ns")
  local thread, stack = cap:array("samples", "thread"), cap:array("samples", "stack")
  local cpu, weight = cap:array("samples", "cpu"), cap:array("samples", "weight")
  local source, name = cap:array("samples", "source"), cap:array("sources", "name")
  local name_of = output.remembered(function(s) return output.json(cap, name[s]) end)
  out:write('"samples":[')
  local first, bare = true, 0
  for i = 0, rows - 1 do
    local node = nodes[stack[i]]
    if node == NONE then
      bare = bare + 1
    else
      out:write(first and "\n" or ",\n", '{"cpu":', cpu[i], ',"tid":', tids[thread[i]], ',"ts":',
        micros(zero + time_ns[i]), ',"name":', name_of(source[i]), ',"sf":', node, ',"weight":',
        ("%.0f"):format(tonumber(weight[i])), "}")
      first = false
    end
  end
  out:write("\n]")
  if bare > 0 then ctx.lost("%d samples without a frame", bare) end
end

local function write_facts(cap, zero, out)
  local key, value = cap:array("meta", "key"), cap:array("meta", "value")
  out:write('"displayTimeUnit":"ns",\n"otherData":{"exporter":"microscope","time_zero_ns":"',
    ("%.0f"):format(tonumber(zero)), '"')
  for i = 0, cap:rows("meta") - 1 do
    out:write(",", output.json(cap, key[i]), ":", output.json(cap, value[i]))
  end
  out:write("},\n")
end

local function write_all(cap, out, ctx)
  local pids, tids = ids_of(cap)
  -- Times on the recording's own clock, so that traces of one machine agree.
  local zero = cap:rows("clocks") > 0 and cap:array("clocks", "monotonic_ns")[0] or 0ULL
  out:write("{")
  write_facts(cap, zero, out)
  out:write('"traceEvents":[')
  local first = true
  local function event(...)
    out:write(first and "\n" or ",\n", ...)
    first = false
  end
  write_names(cap, pids, tids, event)
  write_zones(cap, pids, tids, zero, event)
  out:write('\n],\n"stackFrames":')
  local nodes = ffi.gc(C.mic_chrome_write_frames(cap:handle(), out:handle()),
    C.mic_chrome_frames_free)
  out:write(",\n")
  write_samples(cap, nodes, tids, zero, out, ctx)
  C.mic_chrome_frames_free(ffi.gc(nodes, nil))
  out:write("}\n")
end

-- What is read of a trace but has no table, by the result's fields.
local PARTS = {
  { "unmatched_ends", "end", "of nothing that began" },
  { "args", "event", "with arguments" },
  { "instants", "instant event" },
  { "counters", "counter" },
  { "flows", "flow event" },
  { "profiles", "part", "of V8's CPU profiles, whose samples are not read" },
  { "others", "event", "of other kinds" },
  { "left_samples", "sample" },
}

local function tell(result, ctx)
  local bad = tonumber(result.bad_events)
  if bad > 0 then
    ctx.lost("%s: event %d has %s", text.plural(bad, "event"), tonumber(result.first_bad),
      ffi.string(result.why))
  end
  for _, part in ipairs(PARTS) do
    local count = tonumber(result[part[1]])
    if count > 0 then
      ctx.lost("%s%s", text.plural(count, part[2]), part[3] and " " .. part[3] or "")
    end
  end
  if result.rounded > 0 then
    ctx.lost("parts of units in %.0f weights", tonumber(result.rounded))
  end
  local overlapping, unended = tonumber(result.overlapping), tonumber(result.unfinished)
  if result.cut ~= 0 then ctx.note("the text ends within an event: those before are read") end
  if overlapping > 0 then
    ctx.note("%s overlap others of their thread: they have lanes of their own",
      text.plural(overlapping, "span"))
  end
  if unended > 0 then ctx.note("%s begin and do not end", text.plural(unended, "span")) end
end

local function read(path, ctx)
  local result, why = input.decode(path, ctx, "chrome")
  if not result then return nil, why end
  tell(result, ctx)
  return true
end

-- Whether each row has a number of its own.
local function differ(cap, tab, column)
  local ids, rows = cap:array(tab, column)
  return C.mic_own_ids_differ(ids, rows) ~= 0
end

local function detect(head)
  local start = head:match("^\239?\187?\191?%s*()[%[{]")
  if not start then return false end
  if head:find('"traceEvents"%s*:') then return true end
  local first = head:match("^%[%s*()", start)
  if not first then return false end
  if head:find("^{", first) then return head:find('"ph"%s*:%s*"') ~= nil end
  return first > #head or head:find("^%]%s*$", first) ~= nil
end

return {
  name = "chrome",
  summary = "Chrome's Trace Event JSON.",
  extensions = { ".json" },
  keeps = {
    "times", "cpus", "sources", "threads", "functions", "zones", "facts", "ends", "monotonic",
    -- Those without an id, or with another's, get one that none has.
    processes = function(cap) return differ(cap, "processes", "pid") end,
    ids = function(cap)
      return differ(cap, "threads", "tid") and differ(cap, "processes", "pid")
    end,
  },
  detect = detect,
  read = read,
  write = function(cap, path, ctx)
    return output.with(path, nil, function(out) write_all(cap, out, ctx) end)
  end,
}
