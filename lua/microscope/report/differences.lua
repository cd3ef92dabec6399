--- differences.lua - what all forms of a report of differences ask: which rows are more and less
-- than in the base, and in what order a tree of differences is walked.
--
-- d is what views_text.diff takes.

local diff_query = require("microscope.query.diff")
local walk = require("microscope.query.walk")

local M = {}

--- The rows of a diff that are more, and those that are less, than in the base: at least
-- options.min_percent of the larger side, by name where options.sort says so.
function M.split(d, options)
  local more, less = {}, {}
  local all = d.diff.by == "share" and 1 or math.max(d.diff.base.weight, d.diff.other.weight)
  local least = all * (options.min_percent or 0) / 100
  for _, row in ipairs(d.diff.rows) do
    if math.abs(row.difference) >= least then
      table.insert(row.difference > 0 and more or less, row)
    end
  end
  if options.sort == "name" then
    local function by_name(a, b)
      local x, y = d.describe(a.class).name, d.describe(b.class).name
      if x ~= y then return x < y end
      return a.class < b.class
    end
    table.sort(more, by_name)
    table.sort(less, by_name)
  end
  return more, less
end

--- The differences of a node of a diff's tree, as a row of diff.lua.
function M.of_node(d, node)
  local tree = d.tree
  return diff_query.difference(d.diff.by, walk.total(node, tree.base_total, tree.base_self),
    walk.total(node, tree.total, tree.self), d.diff.base, d.diff.other)
end

--- How a diff's tree is walked: by the greater of both weights, the largest difference first.
function M.walk(d, options)
  local tree = d.tree
  local function weight(node)
    return math.max(walk.total(node, tree.total, tree.self),
      walk.total(node, tree.base_total, tree.base_self))
  end
  local function size(node)
    return math.abs(M.of_node(d, node).difference)
  end
  return {
    least = math.max(tree.weight, tree.base_weight) * (options.min_percent or 0) / 100,
    weight = weight,
    self = function(node) return math.max(tree.self[node], tree.base_self[node]) end,
    before = function(a, b)
      local x, y = size(a), size(b)
      if x ~= y then return x > y end
      x, y = weight(a), weight(b)
      if x ~= y then return x > y end
      return a < b
    end,
  }
end

return M
