--- speedscope: profiles as www.speedscope.app reads and writes them.

local capture = require("microscope.capture")
local frames_query = require("microscope.frames")
local input = require("microscope.input")
local json = require("microscope.report.json")
local output = require("microscope.output")

local NONE = capture.NONE

local UNITS = { cpu_ns = "nanoseconds", ns = "nanoseconds", bytes = "bytes" }

local function write_frames(frames, out)
  out:write('"shared":{"frames":[')
  for i, frame in ipairs(frames.list) do
    out:write(i > 1 and ",\n" or "\n", '{"name":', json.encode(frame.name))
    if frame.file then out:write(',"file":', json.encode(frame.file)) end
    if frame.line then out:write(',"line":', frame.line) end
    out:write("}")
  end
  out:write("\n]},\n")
end

-- A node's frames from the outermost on, as the format's numbers (from 0).
local function path_of(tree, node, path)
  local n = 0
  while node ~= NONE do
    n = n + 1
    path[n] = tree.frame[node] - 1
    node = tree.parent[node]
  end
  for i = 1, math.floor(n / 2) do path[i], path[n + 1 - i] = path[n + 1 - i], path[i] end
  return table.concat(path, ",", 1, n)
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
local function write_profile(cap, tree, list, source, sources, out)
  local stack, weight = cap:array("samples", "stack"), cap:array("samples", "weight")
  local unit = capture.enum("mic_unit", cap:array("sources", "unit")[source])
  local paths, path, total = {}, {}, 0
  for i = 0, list.count - 1 do total = total + tonumber(weight[list.rows[i]]) end
  out:write('{"type":"sampled","name":',
    json.encode(profile_name(cap, list.thread, source, sources)), ',"unit":"',
    UNITS[unit] or "none", '","startValue":0,"endValue":', ("%.0f"):format(total), ',"samples":[')
  for i = 0, list.count - 1 do
    local node = tree.node[stack[list.rows[i]]]
    local text = paths[node]
    if not text then
      text = path_of(tree, node, path)
      paths[node] = text
    end
    out:write(i > 0 and ",\n[" or "\n[", text, "]")
  end
  out:write('\n],"weights":[')
  for i = 0, list.count - 1 do
    out:write(i > 0 and "," or "", ("%.0f"):format(tonumber(weight[list.rows[i]])))
  end
  out:write("]}")
end

local function write_all(cap, out, ctx)
  local frames = frames_query.of(cap)
  local tree = frames_query.tree(cap, frames)
  local meta, sources, first = cap:meta(), cap:rows("sources"), true
  out:write('{"$schema":"https://www.speedscope.app/file-format-schema.json",\n',
    '"exporter":"microscope",\n"name":', json.encode(meta.command or meta.program or ctx.name),
    ",\n")
  write_frames(frames, out)
  out:write('"profiles":[')
  for source = 0, sources - 1 do
    for _, list in ipairs(frames_query.by_thread(cap, source)) do
      out:write(first and "\n" or ",\n")
      first = false
      write_profile(cap, tree, list, source, sources, out)
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
