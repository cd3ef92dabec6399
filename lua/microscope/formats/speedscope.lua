--- speedscope: profiles as www.speedscope.app reads and writes them.

local capture = require("microscope.capture")
local frames_query = require("microscope.frames")
local input = require("microscope.input")
local output = require("microscope.output")

local UNITS = { cpu_ns = "nanoseconds", ns = "nanoseconds", bytes = "bytes" }

local function write_frames(cap, frames, out)
  local path = cap:array("files", "path")
  out:write('"shared":{"frames":[')
  frames.each(function(frame, number)
    out:write(number > 0 and ",\n" or "\n", '{"name":',
      output.json(cap, frame.name, frame.rest))
    if frame.file then out:write(',"file":', output.json(cap, path[frame.file])) end
    if frame.line then out:write(',"line":', frame.line) end
    out:write("}")
  end)
  out:write("\n]},\n")
end

-- Frames of the longest path that is remembered, and what is of a longer one.
local LONGEST, LONG = 256, "long"

-- A function that writes a stack's frames from the outermost on.
local function stack_writer(frames, out)
  local room, parts = frames_query.room(), {}
  local text_of = output.remembered(function(stack)
    local depth = frames.path(stack, room)
    if depth > LONGEST then return LONG end
    for i = 1, depth do parts[i] = room.at[depth - i] end
    return table.concat(parts, ",", 1, depth)
  end)
  return function(stack)
    local text = text_of(stack)
    if text ~= LONG then return out:write(text) end
    local depth = frames.path(stack, room)
    for i = depth - 1, 0, -1 do out:write(room.at[i], i > 0 and "," or "") end
  end
end

-- "PROGRAM / THREAD (TID), SOURCE", of which each may be missing.
local function profile_name(cap, thread, source, sources)
  local name, tid = cap:array("threads", "name")[thread], cap:array("threads", "tid")[thread]
  local process = cap:array("threads", "process")[thread]
  local program = cap:array("processes", "name")[process]
  local has_program = cap:size(program) > 0 and not cap:same(program, name)
  local bare = not has_program and cap:size(name) == 0 and tid == 0
  local parts = { '"' }
  local function add(part) parts[#parts + 1] = part end
  if has_program then
    add(output.escaped(cap, program))
    add(" / ")
  end
  add(output.escaped(cap, name))
  if tid ~= 0 then add((" (%d)"):format(tid)) end
  if bare or sources > 1 then
    add(bare and "" or ", ")
    add(output.escaped(cap, cap:array("sources", "name")[source]))
  end
  add('"')
  return output.join(parts)
end

-- A profile: the samples of a thread, rows[from] to rows[past - 1], one after the other.
local function write_profile(cap, name, source, rows, from, past, write_stack, out)
  local stack, weight = cap:array("samples", "stack"), cap:array("samples", "weight")
  local unit, total = capture.enum("mic_unit", cap:array("sources", "unit")[source]), 0
  for i = from, past - 1 do total = total + tonumber(weight[rows[i]]) end
  out:write('{"type":"sampled","name":', name, ',"unit":"',
    UNITS[unit] or "none", '","startValue":0,"endValue":', ("%.0f"):format(total), ',"samples":[')
  for i = from, past - 1 do
    out:write(i > from and ",\n[" or "\n[")
    write_stack(stack[rows[i]])
    out:write("]")
  end
  out:write('\n],"weights":[')
  for i = from, past - 1 do
    out:write(i > from and "," or "", ("%.0f"):format(tonumber(weight[rows[i]])))
  end
  out:write("]}")
end

local function write_all(cap, out, ctx)
  local frames = frames_query.of(cap)
  local sources, first = cap:rows("sources"), true
  local name = cap:fact("command") or cap:fact("program")
  out:write('{"$schema":"https://www.speedscope.app/file-format-schema.json",\n',
    '"exporter":"microscope",\n"name":', output.json(cap, name, not name and ctx.name or nil),
    ",\n")
  write_frames(cap, frames, out)
  out:write('"profiles":[')
  local write_stack = stack_writer(frames, out)
  frames_query.each_thread(cap, function(source, thread, rows, from, past)
    out:write(first and "\n" or ",\n")
    first = false
    write_profile(cap, profile_name(cap, thread, source, sources), source, rows, from, past,
      write_stack, out)
  end)
  out:write("\n]}\n")
end

local function read(path, ctx)
  local result, why = input.decode(path, ctx, "speedscope")
  if not result then return nil, why end
  if result.rounded > 0 then
    ctx.lost("parts of units in %.0f weights", tonumber(result.rounded))
  end
  return true
end

-- Its schema's address, or the two parts that every file has.
local function detect(head)
  if not head:match("^\239?\187?\191?%s*{") then return false end
  return head:find("www.speedscope.app/file-format-schema.json", 1, true) ~= nil
    or head:find('^%s*{%s*"shared"%s*:%s*{%s*"frames"%s*:') ~= nil
end

return {
  name = "speedscope",
  summary = "Profiles of speedscope.app.",
  extensions = { ".speedscope.json" },
  keeps = {
    "threads", "functions", "lines", "ends",
    -- Told apart by their units alone.
    sources = function(cap)
      local unit, seen = cap:array("sources", "unit"), {}
      for s = 0, cap:rows("sources") - 1 do
        local word = UNITS[capture.enum("mic_unit", unit[s])] or "none"
        if seen[word] then return false end
        seen[word] = true
      end
      return true
    end,
  },
  detect = detect,
  read = read,
  write = function(cap, path, ctx)
    return output.with(path, nil, function(out) write_all(cap, out, ctx) end)
  end,
}
