--- firefox: the Firefox Profiler's processed profile format.
--
-- Version 60 of the format: tables of stacks, frames and functions that all threads share.  Newer
-- profilers bring older versions up to date by themselves.

local bit = require("bit")
local ffi = require("ffi")

local capture = require("microscope.capture")
local core = require("microscope.core")
local frames_query = require("microscope.frames")
local input = require("microscope.input")
local json = require("microscope.report.json")
local keys_query = require("microscope.query.keys")
local losses = require("microscope.losses")
local output = require("microscope.output")
local summary_query = require("microscope.query.summary")

local band, bxor, rshift, tobit = bit.band, bit.bxor, bit.rshift, bit.tobit
local u8, u32 = ffi.typeof("uint8_t[?]"), ffi.typeof("uint32_t[?]")

local C = core.C

local NONE = capture.NONE
local VERSION = 60
local GECKO_VERSION = 24 -- of the fields of meta that both formats have

-- Categories, by number; those of zones follow.
local OTHER, USER, REASON = 0, 1, 2
local CATEGORIES = { { "Other", "grey" }, { "User", "yellow" }, { "Stack ends short", "red" } }

local NATIVE, SIGNAL = 0, 1 -- mic_location

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

-- The same of the nodes of a tree: fn gets a node's parent and its frame's number.
local function node_column(out, name, tree, fn)
  out:write('"', name, '":[')
  tree.each(function(node, parent, number)
    if node > 0 then out:write(node % 64 == 0 and ",\n" or ",") end
    out:write(fn(parent, number))
  end)
  out:write("],\n")
end

local function constant(value) return function() return value end end

-- The format's array of strings: an index for each of the capture's that is asked for, for what a
-- frame is called that has none of these, and for other texts.  Only which they are is held.
local STRING, FRAME, TEXT = 0, 1, 2

local function new_strings(cap)
  local of_string, of_text, texts = u32(cap:rows("strings") + 1), {}, {}
  local kinds, refs, room, count = u8(1024), u32(1024), 1024, 0
  local M = {}
  local function add(kind, ref)
    if count == room then
      local more_kinds, more_refs = u8(room * 2), u32(room * 2)
      ffi.copy(more_kinds, kinds, room)
      ffi.copy(more_refs, refs, room * 4)
      kinds, refs, room = more_kinds, more_refs, room * 2
    end
    kinds[count], refs[count] = kind, ref
    count = count + 1
    return count - 1
  end
  function M.string(id)
    if of_string[id] == 0 then of_string[id] = add(STRING, id) + 1 end
    return of_string[id] - 1
  end
  function M.frame(number) return add(FRAME, number) end
  function M.text(text)
    if not of_text[text] then
      texts[#texts + 1] = text
      of_text[text] = add(TEXT, #texts)
    end
    return of_text[text]
  end
  -- Calls fn(i, id, text) with each, in order, id being a string of the capture or nil, and text
  -- what follows it; frame_at tells a frame.
  function M.each(frame_at, fn)
    for i = 0, count - 1 do
      local kind, ref = kinds[i], refs[i]
      if kind == STRING then
        fn(i, ref)
      elseif kind == TEXT then
        fn(i, nil, texts[ref])
      else
        local frame = frame_at(ref)
        fn(i, frame.name, frame.rest)
      end
    end
  end
  return M
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
    if seen[id] == 0 and cap:size(id) == 0 then seen[id] = OTHER + 1 end
    if seen[id] == 0 then
      out.names[out.count] = id
      out.count = out.count + 1
      seen[id] = #CATEGORIES + out.count
    end
    out.of_site[s] = seen[id] - 1
  end
  return out
end

local function write_categories(cap, categories, out)
  local function write(i, color, id, text)
    out:write(i > 1 and "," or "", '{"name":', output.json(cap, id, text), ',"color":"', color,
      '","subcategories":["Other"]}')
  end
  out:write('"categories":[')
  for i, c in ipairs(CATEGORIES) do write(i, c[2], nil, c[1]) end
  for i = 0, categories.count - 1 do write(#CATEGORIES + 1, "blue", categories.names[i]) end
  out:write("]")
end

-- Whether a frame's offset is an address in its module; addresses beyond 2^53 are none here, as
-- readers in JavaScript would take others for them.
local function is_addressed(cap, frame)
  local kind = frame.location and cap:array("locations", "kind")[frame.location]
  return frame.module ~= nil and (kind == NATIVE or kind == SIGNAL)
    and cap:array("locations", "offset")[frame.location] < 2 ^ 53
end

-- An address is one in its function's library; what is known by its address alone is called by
-- that, as the format does it.
local function name_address(cap, frame)
  local addressed = is_addressed(cap, frame)
  if addressed then frame.module = cap:array("locations", "module")[frame.location] end
  if addressed and not frame.fn and cap:array("locations", "kind")[frame.location] == NATIVE then
    frame.name = nil
    frame.rest = keys_query.hex(cap:array("locations", "offset")[frame.location])
  end
  return frame
end

-- A table of rows of u32 columns that grows.
local function new_rows(names)
  local rows, room = { count = 0 }, 1024
  for _, name in ipairs(names) do rows[name] = u32(room) end
  function rows.add(...)
    if rows.count == room then
      for _, name in ipairs(names) do
        local more = u32(room * 2)
        ffi.copy(more, rows[name], room * 4)
        rows[name] = more
      end
      room = room * 2
    end
    for i, name in ipairs(names) do rows[name][rows.count] = (select(i, ...)) end
    rows.count = rows.count + 1
    return rows.count - 1
  end
  return rows
end

-- A slot of a function in an open-addressed table: factors are odd and of 24 bits, so that their
-- products with row numbers are exact in a double and in reach of bit.tobit (2^51).
local function seek(rows, slots, mask, name, file, module)
  local h = bxor(tobit(name * 0x9e3779), tobit(bxor(file, 0x55) * 0x85eb), tobit(module * 0xc2b3))
  local at = band(bxor(h, rshift(h, 15)), mask)
  while slots[at] ~= 0 do
    local row = slots[at] - 1
    if rows.name[row] == name and rows.file[row] == file and rows.module[row] == module then
      return at
    end
    at = band(at + 1, mask)
  end
  return at
end

-- Rows of functions: one for each name, file and module; file and module are rows + 1 or 0.
local function new_functions()
  local rows = new_rows { "name", "file", "module", "start_line" }
  local mask = 4095
  local slots = u32(mask + 1)
  function rows.of(name, file, module, start_line)
    if rows.count * 2 > mask then
      mask = mask * 2 + 1
      slots = u32(mask + 1)
      for row = 0, rows.count - 1 do
        slots[seek(rows, slots, mask, rows.name[row], rows.file[row], rows.module[row])] = row + 1
      end
    end
    local at = seek(rows, slots, mask, name, file, module)
    if slots[at] == 0 then slots[at] = rows.add(name, file, module, start_line) + 1 end
    return slots[at] - 1
  end
  return rows
end

-- The functions of frames, and the function's row of each.
local function functions_of(cap, frames, strings)
  local functions, of_frame = new_functions(), u32(frames.all + 1)
  local name = cap:array("functions", "name")
  frames.each(function(frame, number)
    name_address(cap, frame)
    local index = frame.fn and strings.string(name[frame.fn])
      or frame.ending and strings.text(frame.rest) or strings.frame(number)
    of_frame[number] = functions.of(index, frame.file and frame.file + 1 or 0,
      frame.module and frame.module + 1 or 0, frame.start_line or 0)
  end)
  return functions, of_frame
end

-- A column of frames.
local function frame_column(out, name, frames, fn)
  out:write('"', name, '":[')
  frames.each(function(frame, number)
    if number > 0 then out:write(number % 64 == 0 and ",\n" or ",") end
    out:write(fn(frame, number))
  end)
  out:write("],\n")
end

local function write_frame_table(cap, frames, of_frame, out)
  local offset, count = cap:array("locations", "offset"), frames.all
  out:write('"frameTable":{')
  frame_column(out, "address", frames, function(frame)
    return is_addressed(cap, frame) and ("%.0f"):format(tonumber(offset[frame.location])) or "-1"
  end)
  -- 0 for the function that holds the code, counting up to the innermost that was inlined.
  frame_column(out, "inlineDepth", frames, function(frame, number)
    return frame.location and number - frames.first[frame.location] or 0
  end)
  column(out, "category", count, function(i) return i >= frames.count and REASON or USER end)
  column(out, "subcategory", count, constant(0))
  column(out, "func", count, function(i) return of_frame[i] end)
  column(out, "nativeSymbol", count, constant("null"))
  column(out, "innerWindowID", count, constant("null"))
  frame_column(out, "line", frames, function(frame) return frame.line or "null" end)
  column(out, "column", count, constant("null"))
  out:write('"length":', count, "},\n")
end

-- A number that is kept with 1 added: 0 is none.
local function or_none(value, none) return value > 0 and value - 1 or none end

local function write_func_table(functions, sources, out)
  local count = functions.count
  out:write('"funcTable":{')
  column(out, "name", count, function(i) return functions.name[i] end)
  column(out, "isJS", count, constant("false"))
  column(out, "relevantForJS", count, constant("false"))
  column(out, "resource", count, function(i) return or_none(functions.module[i], "-1") end)
  column(out, "source", count, function(i)
    local file = functions.file[i]
    return file > 0 and sources.index[file - 1] - 1 or "null"
  end)
  column(out, "lineNumber", count, function(i)
    return functions.start_line[i] > 0 and functions.start_line[i] or "null"
  end)
  column(out, "columnNumber", count, constant("null"))
  out:write('"length":', count, "},\n")
end

-- The files of functions, in the order that these name them: of a row of files its number + 1.
local function sources_of(cap, functions)
  local files = cap:rows("files")
  local sources = { index = u32(files + 1), list = u32(files + 1), count = 0 }
  for i = 0, functions.count - 1 do
    local file = functions.file[i]
    if file > 0 and sources.index[file - 1] == 0 then
      sources.list[sources.count] = file - 1
      sources.count = sources.count + 1
      sources.index[file - 1] = sources.count
    end
  end
  return sources
end

local function write_strings(cap, frames, strings, out)
  out:write('"stringArray":[')
  strings.each(function(number) return name_address(cap, frames.at(number)) end,
    function(i, id, rest)
      out:write(i > 0 and ",\n" or "\n", output.json(cap, id, rest))
    end)
  out:write("]},\n")
end

local function write_shared(cap, frames, tree, strings, out)
  local modules = cap:rows("modules")
  local functions, of_frame = functions_of(cap, frames, strings)
  local sources = sources_of(cap, functions)
  out:write('"shared":{"stackTable":{')
  node_column(out, "frame", tree, function(_, number) return number end)
  node_column(out, "prefix", tree, function(parent) return parent ~= NONE and parent or "null" end)
  out:write('"length":', tree.count, "},\n")
  write_frame_table(cap, frames, of_frame, out)
  write_func_table(functions, sources, out)
  out:write('"resourceTable":{')
  column(out, "lib", modules, function(i) return i end)
  column(out, "name", modules, function(i)
    return strings.string(cap:array("modules", "name")[i])
  end)
  column(out, "host", modules, constant("null"))
  column(out, "type", modules, constant(1)) -- a library
  out:write('"length":', modules, "},\n")
  out:write('"nativeSymbols":{"libIndex":[],"address":[],"name":[],"functionSize":[],"length":0},')
  out:write('"sources":{')
  column(out, "uuid", sources.count, constant("null"))
  column(out, "filename", sources.count, function(i)
    return strings.string(cap:array("files", "path")[sources.list[i]])
  end)
  out:write('"length":', sources.count, "},\n")
  write_strings(cap, frames, strings, out)
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
  local tree, value, rows = parts.tree, parts.weight_of, parts.samples.at
  local from, past = parts.samples.of(thread)
  local count = past - from
  out:write('"samples":{')
  column(out, "stack", count, function(i)
    local node = tree.node[stack[rows[from + i]]]
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
  local category = cap:array("sites", "category")
  local start, stop = cap:array("zones", "start_ns"), cap:array("zones", "end_ns")
  local open, rows = 0xffffffffffffffffULL, parts.zones.at
  local from, past = parts.zones.of(thread)
  local count = past - from
  out:write('"markers":{')
  local data_of = output.remembered(function(s)
    return output.join { '{"type":"zone","category":', output.json(cap, category[s]), "}" }
  end)
  column(out, "data", count, function(i) return data_of(site[rows[from + i]]) end)
  column(out, "name", count, function(i)
    return parts.strings.string(name[site[rows[from + i]]])
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
  local frames = frames_query.of(cap)
  local tree = frames_query.tree(cap, frames)
  local strings = new_strings(cap)
  local categories = categories_of(cap)
  local parts = { tree = tree, strings = strings, of_site = categories.of_site,
    samples = frames_query.by_thread(cap, source.id), zones = zones_by_thread(cap),
    repeated = repeated_pids(cap) }
  parts.weight_type, parts.weight_of = weighing(cap, source)
  out:write("{")
  write_meta(cap, source, categories, out)
  write_libs(cap, out)
  out:write('"threads":[')
  for t = 0, cap:rows("threads") - 1 do
    out:write(t > 0 and ",\n" or "\n")
    write_thread(cap, t, parts, out)
  end
  out:write("],\n")
  -- Last, as it holds all strings.
  write_shared(cap, frames, tree, strings, out)
  out:write('"pages":[],"counters":[]}\n')
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
