--- firefox: the Firefox Profiler's processed profile format.
--
-- Version 60 of the format: tables of stacks, frames and functions that all threads share.  Newer
-- profilers bring older versions up to date by themselves.

local ffi = require("ffi")

local capture = require("microscope.capture")
local core = require("microscope.core")
local frames_query = require("microscope.frames")
local input = require("microscope.input")
local json = require("microscope.report.json")
local losses = require("microscope.losses")
local output = require("microscope.output")
local summary_query = require("microscope.query.summary")

local u32 = ffi.typeof("uint32_t[?]")

local C = core.C

local NONE = capture.NONE
local VERSION = 60
local GECKO_VERSION = 24 -- of the fields of meta that both formats have

-- Categories by number; those of zones follow.
local CATEGORIES = {
  [C.MIC_FIREFOX_OTHER] = { "Other", "grey" },
  [C.MIC_FIREFOX_USER] = { "User", "yellow" },
  [C.MIC_FIREFOX_REASON] = { "Stack ends short", "red" },
}

local SCHEMA = '[{"name":"zone","tooltipLabel":"{marker.name}","tableLabel":"{marker.name}",'
  .. '"chartLabel":"{marker.name}","display":["marker-chart","marker-table","timeline-overview"],'
  .. '"fields":[{"key":"category","label":"Category","format":"string"}]}]'

-- The format's times: milliseconds.
local function millis(ns) return json.encode(tonumber(ns) / 1e6) end

-- A column of a table: out:write each value of fn(i), i from 0 to count - 1.
local function column(out, name, count, fn)
  out:write('"', name, '":[')
  for i = 0, count - 1 do
    if i > 0 then out:write(i % 64 == 0 and ",\n" or ",") end
    out:write(fn(i))
  end
  out:write("],\n")
end

-- GNU build IDs as the format's debug ids: the first 16 bytes as a GUID in little-endian order.
-- What a capture has in their place may be any text: that is none.
local function breakpad_id(cap, build_id)
  local digits
  for piece in cap:pieces(build_id) do
    if not piece:match("^%x+$") then return "" end
    digits = digits or piece
  end
  if not digits then return "" end
  local id = (digits:sub(1, 32) .. ("0"):rep(32)):sub(1, 32):upper()
  local function pair(i) return id:sub(2 * i - 1, 2 * i) end
  return pair(4) .. pair(3) .. pair(2) .. pair(1) .. pair(6) .. pair(5) .. pair(8) .. pair(7)
    .. id:sub(17) .. "0"
end

local function write_libs(cap, out)
  local path, name = cap:array("modules", "path"), cap:array("modules", "name")
  local build_id = cap:array("modules", "build_id")
  out:write('"libs":[')
  for m = 0, cap:rows("modules") - 1 do
    local called, at, id = output.json(cap, name[m]), output.json(cap, path[m]), build_id[m]
    out:write(m > 0 and ",\n" or "\n", '{"arch":"x86_64","name":', called, ',"path":', at,
      ',"debugName":', called, ',"debugPath":', at, ',"breakpadId":"', breakpad_id(cap, id),
      '","codeId":', cap:size(id) > 0 and output.json(cap, id) or "null", "}")
  end
  out:write("],\n")
end

-- Zones' categories: the strings that name them, and by site's row the number.  The empty one is
-- the one of all that has none.
local function categories_of(cap)
  local category, sites = cap:array("sites", "category")
  local out = { names = u32(sites + 1), count = 0, of_site = u32(sites + 1) }
  local seen = u32(cap:rows("strings") + 1) -- numbers with 1 added
  for s = 0, sites - 1 do
    local id = category[s]
    if seen[id] == 0 and cap:size(id) == 0 then seen[id] = C.MIC_FIREFOX_OTHER + 1 end
    if seen[id] == 0 then
      out.names[out.count] = id
      out.count = out.count + 1
      seen[id] = C.MIC_FIREFOX_CATEGORIES + out.count
    end
    out.of_site[s] = seen[id] - 1
  end
  return out
end

local function write_categories(cap, categories, out)
  local function write(number, color, id, text)
    out:write(number > 0 and "," or "", '{"name":', output.json(cap, id, text), ',"color":"', color,
      '","subcategories":["Other"]}')
  end
  out:write('"categories":[')
  for number = 0, C.MIC_FIREFOX_CATEGORIES - 1 do
    write(number, CATEGORIES[number][2], nil, CATEGORIES[number][1])
  end
  for i = 0, categories.count - 1 do
    write(C.MIC_FIREFOX_CATEGORIES + i, "blue", categories.names[i])
  end
  out:write("]")
end

local function source_of(cap, id)
  local unit = capture.enum("mic_unit", cap:array("sources", "unit")[id])
  return { id = id, unit = unit, is_time = unit == "cpu_ns" or unit == "ns",
    period = tonumber(cap:array("sources", "period")[id]) }
end

-- How weights are said: a period each is one sample, other time in ms, bytes as they are.
local function weighing(cap, source)
  local weight, rows = cap:array("samples", "weight")
  local of_source, equal = cap:array("samples", "source"), source.period > 0
  for i = 0, rows - 1 do
    if of_source[i] == source.id and weight[i] ~= source.period then equal = false break end
  end
  if equal then return "samples", nil end
  if source.is_time then return "tracing-ms", millis end
  local function whole(value) return ("%.0f"):format(tonumber(value)) end
  return source.unit == "bytes" and "bytes" or "samples", whole
end

local function write_samples(cap, thread, parts, out)
  local stack, time_ns = cap:array("samples", "stack"), cap:array("samples", "time_ns")
  local weight = cap:array("samples", "weight")
  local stacks, value, rows = parts.stacks, parts.weight_of, parts.samples.at
  local from, past = parts.samples.of(thread)
  local count = past - from
  out:write('"samples":{')
  column(out, "stack", count, function(i)
    local node = stacks[stack[rows[from + i]]]
    return node ~= NONE and node or "null"
  end)
  column(out, "time", count, function(i) return millis(time_ns[rows[from + i]]) end)
  if value then
    column(out, "weight", count, function(i) return value(weight[rows[from + i]]) end)
  else
    out:write('"weight":null,')
  end
  out:write('"weightType":"', parts.weight_type, '","length":', count, "},\n")
end

-- Zones are markers of a span (phase 1); one that did not end is the begin of one (phase 2).
local function write_markers(cap, thread, parts, out)
  local site, name = cap:array("zones", "site"), cap:array("sites", "name")
  local start, stop = cap:array("zones", "start_ns"), cap:array("zones", "end_ns")
  local open, rows = 0xffffffffffffffffULL, parts.zones.at
  local from, past = parts.zones.of(thread)
  local count = past - from
  out:write('"markers":{')
  column(out, "data", count, function(i) return parts.data_of(site[rows[from + i]]) end)
  column(out, "name", count, function(i)
    return C.mic_firefox_shared_string(parts.tables, name[site[rows[from + i]]])
  end)
  column(out, "startTime", count, function(i) return millis(start[rows[from + i]]) end)
  column(out, "endTime", count, function(i)
    local at = stop[rows[from + i]]
    return at ~= open and millis(at) or "null"
  end)
  column(out, "phase", count, function(i) return stop[rows[from + i]] ~= open and 1 or 2 end)
  column(out, "category", count, function(i) return parts.of_site[site[rows[from + i]]] end)
  out:write('"length":', count, "}")
end

local function write_thread(cap, t, parts, out)
  local p = cap:array("threads", "process")[t]
  local stop, pid = cap:array("threads", "end_ns")[t], cap:array("processes", "pid")[p]
  local tid = cap:array("threads", "tid")[t]
  local open = 0xffffffffffffffffULL
  local name = cap:array("threads", "name")[t]
  local unnamed = cap:size(name) == 0
  local process_stop = cap:array("processes", "end_ns")[p]
  out:write('{"processType":"default","processStartupTime":',
    millis(cap:array("processes", "start_ns")[p]), ',"processShutdownTime":',
    process_stop ~= open and millis(process_stop) or "null", ',"registerTime":',
    millis(cap:array("threads", "start_ns")[t]), ',"unregisterTime":',
    stop ~= open and millis(stop) or "null", ',"pausedRanges":[],"showMarkersInTimeline":true,',
    '"name":', unnamed and '"thread"' or output.json(cap, name), ',"isMainThread":',
    tostring(tid == pid), ',"processName":', output.json(cap, cap:array("processes", "name")[p]),
    ',"pid":"', pid,
    parts.repeated[p] > 0 and "." .. parts.repeated[p] or "", '","tid":', tid, ",\n")
  write_samples(cap, t, parts, out)
  write_markers(cap, t, parts, out)
  out:write("}")
end

local function zones_by_thread(cap)
  local thread, rows = cap:array("zones", "thread")
  return frames_query.rows_by_thread(thread, rows, cap:rows("threads"),
    (cap:array("zones", "start_ns")))
end

-- The format tells processes by their pids: one that came again is "PID.N".
local function repeated_pids(cap)
  local pid, rows = cap:array("processes", "pid")
  local out = u32(rows + 1)
  C.mic_own_ids_repeats(pid, rows, out)
  return out
end

local function write_meta(cap, source, categories, out)
  local product, kernel = cap:fact("command") or cap:fact("program"), cap:fact("kernel")
  local clocks = cap:rows("clocks") > 0
  local realtime = clocks and tonumber(cap:array("clocks", "realtime_ns")[0]) or 0
  local duration = clocks and cap:array("clocks", "duration_ns")[0] or 0
  out:write('"meta":{"version":', GECKO_VERSION, ',"preprocessedProfileVersion":', VERSION,
    ',"interval":', source.period > 0 and source.is_time and millis(source.period) or "1",
    ',"startTime":', json.encode(realtime / 1e6), ',"profilingStartTime":0,"profilingEndTime":',
    millis(duration), ',"processType":0,"product":',
    product and output.json(cap, product) or '"microscope"',
    ',"stackwalk":1,"debug":false,"importedFrom":"microscope","oscpu":"Linux',
    kernel and output.join { " ", output.escaped(cap, kernel) } or "",
    '","symbolicated":true,"symbolicationNotSupported":true,"usesOnlyOneStackType":true,',
    '"sourceCodeIsNotOnSearchfox":true,"extensions":{"id":[],"name":[],"baseURL":[],"length":0},',
    '"sampleUnits":{"time":"ms","eventDelay":"ms","threadCPUDelta":"ns"},')
  write_categories(cap, categories, out)
  out:write(',"markerSchema":', SCHEMA, "},\n")
end

local function write_all(cap, source, out)
  local tables = ffi.gc(C.mic_firefox_shared_new(cap:handle()), C.mic_firefox_shared_free)
  local categories = categories_of(cap)
  local parts = { tables = tables, stacks = C.mic_firefox_shared_stacks(tables),
    of_site = categories.of_site, samples = frames_query.by_thread(cap, source.id),
    zones = zones_by_thread(cap), repeated = repeated_pids(cap) }
  parts.weight_type, parts.weight_of = weighing(cap, source)
  local category = cap:array("sites", "category")
  parts.data_of = output.remembered(function(s)
    return output.join { '{"type":"zone","category":', output.json(cap, category[s]), "}" }
  end)
  out:write("{")
  write_meta(cap, source, categories, out)
  write_libs(cap, out)
  out:write('"threads":[')
  for t = 0, cap:rows("threads") - 1 do
    out:write(t > 0 and ",\n" or "\n")
    write_thread(cap, t, parts, out)
  end
  -- Last, as they hold all strings.
  out:write('],\n"shared":')
  C.mic_firefox_shared_write(tables, out:handle())
  out:write(',\n"pages":[],"counters":[]}\n')
  C.mic_firefox_shared_free(ffi.gc(tables, nil))
end

-- What reading left out: a field of the result and what it counts.
local LEFT_OUT = {
  { "empty", "%.0f samples without a stack" },
  { "instants", "%.0f markers that are no spans" },
  { "unmatched_ends", "%.0f ends of markers that did not begin" },
  { "addresses", "addresses of %.0f frames in no library" },
  { "rounded", "parts of units in %.0f weights" },
}
local NOTES = {
  { "inlined", "%.0f frames were inlined into no frame of theirs: they are frames of their own" },
  { "early", "%.0f times before the start are taken as the start" },
  { "overlapping", "%.0f spans overlap others of their thread: they have lanes of their own" },
  { "unfinished", "%.0f spans begin and do not end" },
}

local function read(path, ctx)
  local result, why = input.decode(path, ctx, "firefox")
  if not result then return nil, why end
  input.tell(result, LEFT_OUT, ctx.lost)
  input.tell(result, NOTES, ctx.note)
  return true
end

local function detect(head)
  return head:match("^\239?\187?\191?%s*{") ~= nil
    and head:find('"preprocessedProfileVersion"%s*:') ~= nil
end

return {
  name = "firefox",
  summary = "Profiles of the Firefox Profiler (profiler.firefox.com).",
  extensions = { ".firefox.json" },
  keeps = {
    "times", "threads", "processes", "lives", "functions", "lines", "inlines", "modules",
    "ends", "zones", "clocks",
    -- One without a name is shown as "thread".
    ids = function(cap)
      local name, rows = cap:array("threads", "name")
      for t = 0, rows - 1 do
        if cap:size(name[t]) == 0 then return false end
      end
      return true
    end,
    addresses = function(cap) return losses.has_only(cap, { "native", "signal", "named" }) end,
  },
  detect = detect,
  read = read,
  write = function(cap, path, ctx)
    local id = summary_query.cpu_source_id(cap)
    if not id then ctx.fail("it has no samples") end
    return output.with(path, nil, function(out) write_all(cap, source_of(cap, id), out) end)
  end,
}
