--- analysis_steps.lua - one step of analysis, for analysis_bench.lua.
--
-- luajit bench/analysis_steps.lua STEP CAPTURE [BASE, or for "loops" a file for columns]
-- Prints the CPU seconds of the step itself, without opening and without what it stands on.

local capture = require("microscope.capture")
local diff_query = require("microscope.query.diff")
local groups_query = require("microscope.query.groups")
local invert = require("microscope.query.invert")
local profile_query = require("microscope.query.profile")
local samples_query = require("microscope.query.samples")
local tree_query = require("microscope.query.tree")
local ffi = require("ffi")

local step, path, base_path = arg[1], arg[2], arg[3]
local began = os.clock()
local cap = assert(capture.open(path))

local function from_here() began = os.clock() end

-- What a user would write: a named function of plain locals.
local function add_up(rows, thread, weight, out)
  for i = 0, rows - 1 do
    local t = thread[i]
    out[t] = out[t] + tonumber(weight[i])
  end
end

local function by_thread()
  local out = ffi.new("double[?]", cap:rows("threads") + 1)
  for rows, thread, weight in cap:blocks("samples", "thread", "weight") do
    add_up(rows, thread, weight, out)
  end
  local most = 0
  for t = 0, cap:rows("threads") - 1 do most = math.max(most, out[t]) end
  return most
end

local function tree_totals(keys)
  local tree = tree_query.build(cap, keys, samples_query.weights(cap, 0))
  local heaviest = 0
  for node = tree_query.ROOTS, tree.count - 1 do
    if tree.total[node] > heaviest then heaviest = tree.total[node] end
  end
  return heaviest
end

local function dump(file, cap_keys)
  local out = assert(io.open(file, "wb"))
  local locations = cap:rows("locations")
  local frames = cap_keys.start[locations]
  local function write(pointer, count, size)
    for at = 0, count - 1, 2 ^ 20 do
      local rows = math.min(2 ^ 20, count - at)
      out:write(ffi.string(pointer + at, rows * size))
    end
  end
  out:write(ffi.string(ffi.new("uint64_t[5]", cap:rows("samples"), cap:rows("stacks"), locations,
    frames, cap:rows("threads")), 40))
  local samples, stacks = cap:rows("samples"), cap:rows("stacks")
  write(cap:array("samples", "thread"), samples, 4)
  write(cap:array("samples", "stack"), samples, 4)
  write(cap:array("samples", "weight"), samples, 8)
  write(cap:array("stacks", "parent"), stacks, 4)
  write(cap:array("stacks", "location"), stacks, 4)
  write(cap:array("stacks", "end"), stacks, 1)
  write(cap_keys.start, locations + 1, 4)
  write(cap_keys.frame, frames, 4)
  out:close()
end

local function least(fn, ...)
  local best, value = math.huge, nil
  for _ = 1, 5 do
    collectgarbage()
    local from = os.clock()
    value = fn(...)
    best = math.min(best, os.clock() - from)
  end
  return best * 1e9, value
end

local STEPS = {}

function STEPS.open() end

-- Loops alone, as bench/columns.c does them; and their columns in a file.
function STEPS.loops()
  local keys = require("microscope.query.keys").build(cap)
  dump(arg[3], keys)
  print(("group %.0f %.0f"):format(least(by_thread)))
  print(("tree %.0f %.0f"):format(least(tree_totals, keys)))
  os.exit(0)
end

STEPS["function table"] = function()
  from_here()
  local p = profile_query.of(cap, {})
  return p.ranked
end

function STEPS.tree()
  from_here()
  return profile_query.of(cap, {})
end

STEPS["inverted tree"] = function()
  from_here()
  local p = profile_query.of(cap, {})
  return assert(invert.build(p.tree, p.keys, p.tree.weight / 100))
end

STEPS["whole inverted tree"] = function()
  local p = profile_query.of(cap, {})
  from_here()
  return assert(invert.build(p.tree, p.keys, 0))
end

function STEPS.diff()
  local base_cap = assert(capture.open(base_path))
  from_here()
  local base, other = profile_query.of(base_cap, {}), profile_query.of(cap, {})
  return diff_query.of(base_cap, base, cap, other, {})
end

STEPS["by thread"] = function()
  local p = profile_query.of(cap, {})
  from_here()
  return groups_query.of(cap, p, { "thread" }).rows
end

STEPS["by thread, function"] = function()
  local p = profile_query.of(cap, {})
  from_here()
  return groups_query.of(cap, p, { "thread", "function" }).rows
end

STEPS["a user's group-by"] = function()
  from_here()
  return by_thread()
end

assert(STEPS[step], "no step " .. tostring(step))()
print(("%.3f"):format(os.clock() - began))
