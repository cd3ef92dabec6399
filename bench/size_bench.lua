-- size_bench.lua - bytes a sample in captures, by group of tables.
--
-- "samples" and "stacks" are what grows with a recording; names, modules and the like depend on
-- what ran and are shown apart, as are locations.  Sizes are those of the stored blocks
-- (docs/format.md, the directory), padding apart.

local kit = require("bench.kit")

local GOAL = 25

local GROUPS = {
  samples = "samples", sample_values = "samples", stacks = "stacks", locations = "locations",
}

-- A reader of a capture's directory: u8, u32, u64 and names, one after the other.
local function cursor(text, at)
  local c = {}
  function c.take(size)
    local value = 0
    for i = size, 1, -1 do value = value * 256 + text:byte(at + i) end
    at = at + size
    return value
  end
  function c.name()
    local size = c.take(1)
    at = at + size
    return text:sub(at - size + 1, at)
  end
  return c
end

-- Stored bytes by table, and rows by table.
local function sizes(path)
  local text = kit.read(path)
  local c = cursor(text, cursor(text, 32).take(8))
  local bytes, rows = {}, {}
  for _ = 1, c.take(4) do
    local name = c.name()
    rows[name], bytes[name] = c.take(8), 0
    for _ = 1, c.take(4) do
      c.name()
      c.name()
      c.take(4)
      for _ = 1, c.take(4) do
        c.take(8)
        bytes[name] = bytes[name] + c.take(4)
        c.take(4 + 8 + 4 + 4)
      end
    end
  end
  return bytes, rows, #text
end

local rows = { { "program", "samples", "stack nodes", "samples", "stacks", "together", "goal",
  "locations", "names and all else", "file B/sample" } }
for _, name in ipairs { "deep C", "C++", "cc1", "python3" } do
  local path = kit.folder .. "/size.usprof"
  kit.run("'%s' record -q --preset max -o '%s' -- %s >/dev/null", kit.microscope, path,
    kit.workload(name, 1.5))
  local bytes, count, file = sizes(path)
  local n, sum = count.samples, { samples = 0, stacks = 0, locations = 0, rest = 0 }
  for tab, size in pairs(bytes) do
    local group = GROUPS[tab] or "rest"
    sum[group] = sum[group] + size
  end
  local function each(value) return ("%.1f"):format(value / n) end
  rows[#rows + 1] = { name, kit.count(n), kit.count(count.stacks), each(sum.samples),
    each(sum.stacks), each(sum.samples + sum.stacks), GOAL, each(sum.locations), each(sum.rest),
    each(file) }
  os.remove(path)
  os.remove(path .. ".old")
end
kit.print("bytes a sample in the capture, max", rows)
