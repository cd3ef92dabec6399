--- folded: a line a stack, as flame graph tools read and write them.

local ffi = require("ffi")

local ends_query = require("microscope.query.ends")
local input = require("microscope.input")
local keys_query = require("microscope.query.keys")
local output = require("microscope.output")
local summary_query = require("microscope.query.summary")
local tree_query = require("microscope.query.tree")

local function read(path, ctx)
  local result, why = input.decode(path, ctx, "folded")
  if not result then return nil, why end
  local bad = tonumber(result.bad_lines)
  if bad > 0 then
    ctx.lost("%d line%s of %d %s no stack: line %d: %s", bad, bad == 1 and "" or "s",
      tonumber(result.lines), bad == 1 and "is" or "are", tonumber(result.first_bad),
      ffi.string(result.why))
  end
  return true
end

-- A key's name as a frame: what separates frames and lines cannot stand in it.
local function frame_name(cap, keys, key, changed)
  local name = keys_query.describe(cap, keys, key).name
  local plain = name:gsub(";", ":"):gsub("[\r\n]", " ")
  if plain ~= name then changed.count = changed.count + 1 end
  return plain
end

-- A node's frames from the outermost on; a short stack begins with its reason.
local function path_of(tree, node, name_of, frames)
  local n = 0
  while node >= tree_query.ROOTS do
    n = n + 1
    frames[n] = name_of[tree.key[node]]
    node = tree.parent[node]
  end
  if not ends_query.is_silent(node) then
    n = n + 1
    frames[n] = "[" .. ends_query.reason(node) .. "]"
  end
  for i = 1, math.floor(n / 2) do frames[i], frames[n + 1 - i] = frames[n + 1 - i], frames[i] end
  return table.concat(frames, ";", 1, n)
end

local function write_tree(cap, source, out, ctx)
  local keys = keys_query.build(cap, false)
  local tree = tree_query.build(cap, keys, source.id)
  if not tree then ctx.fail("the stacks have more frames than can be held") end
  local changed = { count = 0 }
  local name_of = setmetatable({}, { __index = function(names, key)
    local name = frame_name(cap, keys, key, changed)
    names[key] = name
    return name
  end })
  -- What is taken by a period is told in samples, all else in its own unit.
  local unit = source.period > 0 and source.period or 1
  local frames = {}
  for node = 0, tree.count - 1 do
    local value = math.floor(tree.self[node] / unit + 0.5)
    if value > 0 then
      local path = path_of(tree, node, name_of, frames)
      if path == "" then path = "[no frames]" end
      out:write(path, (" %.0f\n"):format(value))
    end
  end
  if changed.count > 0 then
    ctx.lost("\";\" and line ends in %d names, which are written as \":\" and blanks",
      changed.count)
  end
  return true
end

local function write(cap, path, ctx)
  local source = summary_query.cpu_source(cap)
  if not source then ctx.fail("it has no samples, so no stacks to fold") end
  return output.with(path, nil, function(out) return write_tree(cap, source, out, ctx) end)
end

local function is_stack(line)
  return not line:find("[%z\1-\8\14-\31]") and line:match("^.*%S[ \t]+%d+[ \t]*$") ~= nil
end

-- A few lines that all are stacks: "frame;frame 12".  The last of a head may be cut, and counts
-- only when it is all there is.
local function detect(head)
  local lines, at = 0, 1
  while lines < 8 do
    local stop = head:find("\n", at, true)
    if not stop then break end
    local line = head:sub(at, stop - 1):gsub("\r$", "")
    if line ~= "" then
      if not is_stack(line) then return false end
      lines = lines + 1
    end
    at = stop + 1
  end
  return lines > 0 or is_stack(head:sub(at))
end

return {
  name = "folded",
  summary = "Folded stacks: frames separated by \";\", a blank, a count.",
  extensions = { ".folded", ".collapsed" },
  keeps = { "functions", "ends", "bytes" },
  detect = detect,
  read = read,
  write = write,
}
