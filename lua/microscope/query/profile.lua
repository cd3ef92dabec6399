--- profile.lua - all that a report of CPU time says of a capture, as data.
--
-- profile = {
--   summary  (summary.lua), source  (summary.lua; nil when nothing was measured)
--   keys     (keys.lua), tree (tree.lua), costs (costs.lua)
--   ranked   = keys by cost, ends = (ends.lua)
--   frame_pointer_samples = samples with frames that only frame pointers tell of
-- }

local costs_query = require("microscope.query.costs")
local ends_query = require("microscope.query.ends")
local keys_query = require("microscope.query.keys")
local summary_query = require("microscope.query.summary")
local tree_query = require("microscope.query.tree")

local M = {}

-- Under these a recording says too little (shares of 20 samples are 40 % wide).
M.FEW_SAMPLES = 20
M.LITTLE_CPU_NS = 50e6

-- Sources are u8 in the schema and a capture may have none: no sample has this one.
local NO_SOURCE = 256

--- The profile of a capture, or nil and why there is none; options.lines tells functions apart by
-- line.
function M.of(cap, options)
  local source = summary_query.cpu_source(cap)
  local keys = keys_query.build(cap, options.lines)
  local id = source and source.id or NO_SOURCE
  local tree = tree_query.build(cap, keys, id)
  if not tree then
    return nil, ("its stacks have more than %d frames, counting inlined ones: more than a report"
      .. " can hold"):format(tree_query.MOST)
  end
  local costs = costs_query.flat(tree, keys)
  return {
    summary = summary_query.of(cap),
    lines = options.lines or false,
    source = source,
    keys = keys,
    tree = tree,
    costs = costs,
    ranked = costs_query.ranked(costs, keys),
    ends = ends_query.of(tree),
    frame_pointer_samples = ends_query.by_frame_pointer(cap, id),
  }
end

--- Whether a profile is too short to judge, in a few words; nil when it is not.
function M.too_short(profile)
  local samples = profile.tree.samples
  if samples < M.FEW_SAMPLES then return ("fewer than %d samples"):format(M.FEW_SAMPLES) end
  if profile.source.unit == "ns" and profile.tree.weight < M.LITTLE_CPU_NS then
    return ("under %d ms of CPU time"):format(M.LITTLE_CPU_NS / 1e6)
  end
end

--- The share of a CPU that recording cost while the program ran; nil when it is not known.
function M.running_share(summary)
  local running = summary.costs.running
  return running.wall_ns > 0 and running.cpu_ns / running.wall_ns or nil
end

--- The budget as a share of a CPU; nil when there was none.
function M.budget_share(summary)
  local percent = tonumber((summary.settings.budget or ""):match("^([%d.]+) %%$"))
  return percent and percent > 0 and percent / 100 or nil
end

local function heaviest_first(tree, nodes)
  table.sort(nodes, function(a, b)
    if tree.total[a] ~= tree.total[b] then return tree.total[a] > tree.total[b] end
    return a < b
  end)
  return nodes
end

-- Children of a node that weigh at least `least`, most first.
local function children_of(tree, first, next_one, node, least)
  local out, hidden = {}, 0
  local child = first[node]
  while child ~= tree_query.NONE do
    if tree.total[child] >= least then out[#out + 1] = child else hidden = hidden + 1 end
    child = next_one[child]
  end
  return heaviest_first(tree, out), hidden
end

-- What stands at the tree's top: the roots of stacks that end short, and what whole stacks
-- begin with.
local function tops(profile, first, next_one, least)
  local tree, out, hidden = profile.tree, {}, 0
  for _, entry in ipairs(profile.ends) do
    if entry.whole then
      local children, more = children_of(tree, first, next_one, entry.code, least)
      for _, child in ipairs(children) do out[#out + 1] = child end
      hidden = hidden + more
    elseif entry.weight >= least then
      out[#out + 1] = entry.code
    else
      hidden = hidden + 1
    end
  end
  return heaviest_first(tree, out), hidden
end

--- Walk the tree from the top, most first, without recursion (stacks are as deep as programs
-- make them): enter(node, depth, index) and leave(node, depth) are called for each node whose
-- total is at least `least`.  Gives how many nodes were left out, theirs below not counted.
function M.walk(profile, least, enter, leave)
  local tree = profile.tree
  local first, next_one = tree_query.children(tree)
  local list, hidden = tops(profile, first, next_one, least)
  local path = { { nodes = list, at = 0 } }
  while #path > 0 do
    local level, depth = path[#path], #path - 1
    if level.at > 0 then leave(level.nodes[level.at], depth) end
    level.at = level.at + 1
    local node = level.nodes[level.at]
    if node then
      enter(node, depth, level.at)
      local children, more = children_of(tree, first, next_one, node, least)
      hidden = hidden + more
      path[#path + 1] = { nodes = children, at = 0 }
    else
      path[#path] = nil
    end
  end
  return hidden
end

--- What a node of the tree is called: as keys.describe, a root by its end.
function M.describe_node(cap, profile, node)
  if node < tree_query.ROOTS then
    return { name = "[" .. ends_query.reason(node) .. "]", module = "" }
  end
  return keys_query.describe(cap, profile.keys, profile.tree.key[node])
end

return M
