--- speedscope: profiles as www.speedscope.app reads and writes them.

local capture = require("microscope.capture")
local frames_query = require("microscope.frames")
local input = require("microscope.input")
local json = require("microscope.report.json")
local output = require("microscope.output")

local UNITS = { cpu_ns = "nanoseconds", ns = "nanoseconds", bytes = "bytes" }

local function write_frames(cap, frames, out)
  local path = cap:array("files", "path")
  out:write('"shared":{"frames":[')
  frames.each(function(frame, number)
    out:write(number > 0 and ",\n" or "\n", '{"name":', json.encode(frame.name))
    if frame.file then out:write(',"file":', json.encode(cap:string(path[frame.file]))) end
    if frame.line then out:write(',"line":', frame.line) end
    out:write("}")
  end)
  out:write("\n]},\n")
end

-- Paths that are remembered at a time, and frames of the longest of them: a few MiB of text.
local PATHS, LONGEST = 4096, 256

-- A function that writes a stack's frames from the outermost on.
local function stack_writer(frames, out)
  local room, texts, count, parts = frames_query.room(), {}, 0, {}
  return function(stack)
    if texts[stack] then return out:write(texts[stack]) end
    local depth = frames.path(stack, room)
    if depth > LONGEST then
      for i = depth - 1, 0, -1 do out:write(room.at[i], i > 0 and "," or "") end
      return
    end
    for i = 1, depth do parts[i] = room.at[depth - i] end
    if count == PATHS then texts, count = {}, 0 end
    texts[stack], count = table.concat(parts, ",", 1, depth), count + 1
    out:write(texts[stack])
  end
end

local function profile_name(cap, thread, source, sources)
  local process = cap:array("threads", "process")[thread]
  local name = cap:string(cap:array("threads", "name")[thread])
  local tid, program = cap:array("threads", "tid")[thread],
    cap:string(cap:array("processes", "name")[process])
  if program ~= "" and program ~= name then name = program .. " / " .. name end
  if tid ~= 0 then name = ("%s (%d)"):format(name, tid) end
  if name == "" then name = cap:string(cap:array("sources", "name")[source])
  elseif sources > 1 then
    name = name .. ", " .. cap:string(cap:array("sources", "name")[source])
  end
  return name
end

-- A profile: the samples of a thread, one after the other.
local function write_profile(cap, frames, list, source, sources, out)
  local stack, weight = cap:array("samples", "stack"), cap:array("samples", "weight")
  local unit = capture.enum("mic_unit", cap:array("sources", "unit")[source])
  local write_stack, total = stack_writer(frames, out), 0
  for i = 0, list.count - 1 do total = total + tonumber(weight[list.rows[i]]) end
  out:write('{"type":"sampled","name":',
    json.encode(profile_name(cap, list.thread, source, sources)), ',"unit":"',
    UNITS[unit] or "none", '","startValue":0,"endValue":', ("%.0f"):format(total), ',"samples":[')
  for i = 0, list.count - 1 do
    out:write(i > 0 and ",\n[" or "\n[")
    write_stack(stack[list.rows[i]])
    out:write("]")
  end
  out:write('\n],"weights":[')
  for i = 0, list.count - 1 do
    out:write(i > 0 and "," or "", ("%.0f"):format(tonumber(weight[list.rows[i]])))
  end
  out:write("]}")
end

local function write_all(cap, out, ctx)
  local frames = frames_query.of(cap)
  local meta, sources, first = cap:meta(), cap:rows("sources"), true
  out:write('{"$schema":"https://www.speedscope.app/file-format-schema.json",\n',
    '"exporter":"microscope",\n"name":', json.encode(meta.command or meta.program or ctx.name),
    ",\n")
  write_frames(cap, frames, out)
  out:write('"profiles":[')
  for source = 0, sources - 1 do
    for _, list in ipairs(frames_query.by_thread(cap, source)) do
      out:write(first and "\n" or ",\n")
      first = false
      write_profile(cap, frames, list, source, sources, out)
    end
  end
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
