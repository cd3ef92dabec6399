--- samples_report.lua - samples one by one, with their stacks, as text, JSON and CSV.
--
-- Samples are in order of time; those of one time in the order of threads, CPUs, stacks and
-- weights.  Nothing is kept of a sample that was written.

local csv = require("microscope.report.csv")
local json = require("microscope.report.json")
local keys_query = require("microscope.query.keys")
local list_query = require("microscope.query.sample_list")
local numbers = require("microscope.report.numbers")
local text = require("microscope.report.text")

local M = {}

-- What a frame is: module and offset as text, "" for a place in no module.
local function place_of(cap, l)
  local module = cap:array("locations", "module")[l]
  local kind = cap:array("locations", "kind")[l]
  if module == list_query.NONE or not keys_query.is_in_module(kind) then return "" end
  local offset = cap:array("locations", "offset")[l]
  return cap:string(cap:array("modules", "name")[module]) .. "+"
    .. keys_query.hex(offset)
end

-- The frames of a location, innermost first: {name, module, file, line, place, inlined}.
local function frames_of(cap, keys, l)
  local out = {}
  for f = keys.start[l + 1] - 1, keys.start[l], -1 do
    local what = keys_query.describe(cap, keys, keys.frame[f])
    what.place = place_of(cap, l)
    what.inlined = f > keys.start[l]
    out[#out + 1] = what
  end
  return out
end

-- A text of each location that stays: a stack's text is put together of them.
local function cached(make)
  local known = {}
  return function(l)
    local found = known[l]
    if not found then
      found = make(l)
      known[l] = found
    end
    return found
  end
end

local function frame_text(cap, keys, l)
  local lines = {}
  for i, what in ipairs(frames_of(cap, keys, l)) do
    local place = what.file and " " .. text.escape(what.file) .. ":" .. (what.line or "?") or ""
    local where = what.place ~= "" and text.escape(what.place) or text.escape(what.module)
    local name = text.escape(what.name)
    -- Code without a name is called by its place already.
    if name == where then where = "" end
    lines[i] = ("    %s%s%s%s\n"):format(name, place, where ~= "" and " (" .. where .. ")" or "",
      what.inlined and " (inlined)" or "")
  end
  return table.concat(lines)
end

local function write_text(cap, keys, list, options, out)
  local frames = cached(function(l) return frame_text(cap, keys, l) end)
  local ends = cached(function(code) return keys_query.ending(code).name end)
  local count = 0
  for s in list_query.each(list) do
    if count == options.limit then break end
    count = count + 1
    out(("%s  %d/%d  [%03d]  %d.%09d s  %s %s\n"):format(text.escape(s.thread_name), s.pid, s.tid,
      s.cpu, math.floor(s.time_ns / 1e9), s.time_ns % 1e9, numbers.amount(list.source, s.weight),
      text.escape(list.source.name)))
    local root = list_query.walk(list, s.stack, function(l) out(frames(l)) end)
    out("    ", ends(root), "\n\n")
  end
  if count == 0 and options.limit ~= 0 then
    out("no samples", list.source.name ~= "" and " of " .. text.escape(list.source.name) or "",
      "\n")
  end
end

local function frame_json(cap, keys, l)
  local parts = {}
  for i, what in ipairs(frames_of(cap, keys, l)) do
    parts[i] = json.encode(json.object { "name", what.name, "module", what.module,
      "file", what.file or json.null, "line", what.line or json.null, "place", what.place,
      "inlined", what.inlined })
  end
  return table.concat(parts, ",")
end

local function write_json(cap, keys, list, options, out)
  local frames = cached(function(l) return frame_json(cap, keys, l) end)
  local ends = cached(function(code)
    return json.encode((keys_query.ending(code).name:sub(2, -2)))
  end)
  out('{"version":1,\n"source":')
  json.write(json.object { "name", list.source.name, "unit", list.source.unit,
    "unit_name", list.source.unit_name or json.null, "period", list.source.period }, out)
  out(',\n"samples":[')
  local count = 0
  for s in list_query.each(list) do
    if count == options.limit then break end
    count = count + 1
    local head = json.encode(json.object { "time_ns", s.time_ns, "thread", s.thread_name,
      "pid", s.pid, "tid", s.tid, "cpu", s.cpu, "weight", s.weight })
    out(count > 1 and ",\n" or "\n", head:sub(1, -2), ',"frames":[')
    local first = true
    local root = list_query.walk(list, s.stack, function(l)
      out(first and "" or ",", frames(l))
      first = false
    end)
    out('],"end":', ends(root), "}")
  end
  out("]}\n")
end

-- Frames of a stack in one cell, innermost first, one a line, as the inside of a quoted cell.
local function frame_csv(cap, keys, l)
  local parts = {}
  for i, what in ipairs(frames_of(cap, keys, l)) do
    parts[i] = csv.inner(what.name .. (what.place ~= "" and what.place ~= what.name
      and " (" .. what.place .. ")" or ""))
  end
  return table.concat(parts, "\n")
end

local function write_csv(cap, keys, list, options, out)
  local frames = cached(function(l) return frame_csv(cap, keys, l) end)
  local ends = cached(function(code)
    return csv.cell((keys_query.ending(code).name:sub(2, -2)))
  end)
  csv.row({ "time_ns", "thread", "pid", "tid", "cpu", "weight", "unit", "source", "end", "frames" },
    out)
  local count, unit = 0, csv.cell(list.source.unit_name or list.source.unit)
  local source, threads = csv.cell(list.source.name), cached(csv.cell)
  for s in list_query.each(list) do
    if count == options.limit then break end
    count = count + 1
    local parts = {}
    local root = list_query.walk(list, s.stack, function(l) parts[#parts + 1] = frames(l) end)
    -- Stacks are put together of pieces that are quoted already: most of the time goes here.
    out(("%.0f,%s,%d,%d,%d,%.0f,%s,%s,%s,\""):format(s.time_ns, threads(s.thread_name), s.pid,
      s.tid, s.cpu, s.weight, unit, source, ends(root)), csv.mark(parts[1] or ""),
      table.concat(parts, "\n"), "\"\r\n")
  end
end

local WRITERS = { text = write_text, json = write_json, csv = write_csv }

--- Write the samples of a list (sample_list.lua) in a format: "text", "json" or "csv".  options:
-- lines (true: files and lines of frames), limit (nil: all).
function M.write(cap, list, format, options, out)
  WRITERS[format](cap, keys_query.build(cap, { lines = options.lines }), list, options, out)
end

return M
