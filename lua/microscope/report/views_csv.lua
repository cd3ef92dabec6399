--- views_csv.lua - every report as comma-separated values: docs/report-csv.md lists the columns.
--
-- Columns are always the same for a kind of report; what is not known is empty.  Weights are in
-- the unit that the column `unit` names.

local csv = require("microscope.report.csv")
local differences = require("microscope.report.differences")
local keys_query = require("microscope.query.keys")
local numbers = require("microscope.report.numbers")
local profile_query = require("microscope.query.profile")
local walk = require("microscope.query.walk")

local M = {}

local function unit_of(profile)
  local source = profile.source
  return source and (source.unit_name or source.unit) or nil
end

-- Cells put one after the other; nil ones keep their place.
local function concat(...)
  local out, n = {}, 0
  for _, list in ipairs { ... } do
    local count = list.n or #list
    for i = 1, count do out[n + i] = list[i] end
    n = n + count
  end
  out.n = n
  return out
end

local function cells(...) return { n = select("#", ...), ... } end

local NAME = { "name", "module", "file", "line" }
local COST = { "unit", "self", "total", "self_samples", "total_samples", "self_low", "self_high",
  "total_low", "total_high" }

local function name_cells(what) return cells(what.name, what.module, what.file, what.line) end

local function bounds(profile, weight)
  local low, high = numbers.bounds(profile, weight)
  if not low then return nil, nil end
  local all = profile.tree.weight
  return math.floor(low * all + 0.5), math.floor(high * all + 0.5)
end

local function cost_cells(profile, self, total)
  local self_low, self_high = bounds(profile, self)
  local total_low, total_high = bounds(profile, total)
  return cells(unit_of(profile), self, total, profile_query.samples(profile, self),
    profile_query.samples(profile, total), self_low, self_high, total_low, total_high)
end

--- The function table.
function M.functions(cap, profile, options, out)
  csv.row(concat(NAME, COST), out)
  local count, least = 0, profile.tree.weight * (options.min_percent or 0) / 100
  for _, key in ipairs(profile.ranked) do
    if options.limit and count >= options.limit then break end
    local self, total = profile.costs.self[key], profile.costs.total[key]
    if total >= least then
      count = count + 1
      csv.row(concat(name_cells(keys_query.describe(cap, profile.keys, key)),
        cost_cells(profile, self, total)), out)
    end
  end
end

-- Nodes of a tree, a node's parent before it: its number, its parent's, its depth, and cells.
local function write_nodes(tree, options, row, out)
  local count, path = 0, {}
  walk.tree(tree, options, function(node, depth)
    if count == options.tree_limit then return true end
    count = count + 1
    path[depth] = count
    csv.row(concat(cells(count, depth > 0 and path[depth - 1] or nil, depth), row(node)), out)
  end, function() end)
end

--- A tree: a row a node, callers before what they call; `parent` is a row's `node`.
function M.tree(cap, profile, tree, options, out)
  csv.row(concat({ "node", "parent", "depth" }, NAME, { "unit", "self", "total", "samples" }), out)
  write_nodes(tree, { least = tree.weight * (options.min_percent or 0) / 100,
    before = options.before, tree_limit = options.tree_limit }, function(node)
    local total = walk.total(node, tree.total, tree.self)
    return concat(name_cells(walk.describe(cap, profile.keys, tree, node)),
      cells(unit_of(profile), tree.self[node], total, profile_query.samples(profile, total)))
  end, out)
end

--- A function, its callers and its callees; `role` says which a row is.
function M.focus(cap, profile, focus, options, out)
  csv.row(concat({ "role" }, NAME, { "unit", "weight", "samples", "share" }), out)
  local function write(role, key, weight)
    csv.row(concat({ role }, name_cells(keys_query.describe(cap, profile.keys, key)),
      cells(unit_of(profile), weight, profile_query.samples(profile, weight),
        focus.total > 0 and weight / focus.total or 0)), out)
  end
  write("total", focus.key, focus.total)
  write("self", focus.key, focus.self)
  for _, role in ipairs { "caller", "callee" } do
    for i, row in ipairs(focus[role .. "s"]) do
      if options.limit and i > options.limit then break end
      write(role, row.key, row.weight)
    end
  end
end

-- The columns of what things are called, and a value's cells.
local THINGS = {
  thread = { "name", "pid", "tid" }, process = { "name", "pid" }, cpu = { "cpu" },
  ["function"] = { "name", "module" }, module = { "name", "path", "build_id" },
  file = { "file" }, line = { "file", "line" },
}

--- Costs by things: a thing's columns are named THING_FIELD.
function M.groups(_, profile, groups, options, out)
  local head = {}
  for _, name in ipairs(groups.by) do
    for _, field in ipairs(THINGS[name]) do
      head[#head + 1] = field == name and name or name .. "_" .. field
    end
  end
  csv.row(concat(head, COST), out)
  local count, least = 0, profile.tree.weight * (options.min_percent or 0) / 100
  for _, row in ipairs(groups.rows) do
    if options.limit and count >= options.limit then break end
    if row.total >= least then
      count = count + 1
      local values = { n = 0 }
      for i, name in ipairs(groups.by) do
        for _, field in ipairs(THINGS[name]) do
          values.n = values.n + 1
          values[values.n] = row.values[i][field]
        end
      end
      csv.row(concat(values, cost_cells(profile, row.self, row.total)), out)
    end
  end
end

local CHANGE = { "unit", "base", "other", "difference", "low", "high", "noise" }

local function change_cells(d, row)
  return cells(d.diff.by == "share" and "share" or unit_of(d.profile), row.base, row.other,
    row.difference, row.low, row.high, row.noise)
end

--- Differences: those of functions, or of the nodes of a tree.
function M.diff(_, d, options, out)
  if d.tree then
    csv.row(concat({ "node", "parent", "depth" }, NAME, CHANGE), out)
    local walk_options = differences.walk(d, options)
    walk_options.tree_limit = options.tree_limit
    return write_nodes(d.tree, walk_options, function(node)
      return concat(name_cells(d.describe_node(node)),
        change_cells(d, differences.of_node(d, node)))
    end, out)
  end
  csv.row(concat(NAME, { "in_base", "in_other" }, CHANGE), out)
  for _, rows in ipairs { differences.split(d, options) } do
    for i, row in ipairs(rows) do
      if options.limit and i > options.limit then break end
      csv.row(concat(name_cells(d.describe(row.class)),
        cells(d.diff.pairs.base_key[row.class] ~= nil, d.diff.pairs.other_key[row.class] ~= nil),
        change_cells(d, row)), out)
    end
  end
end

return M
