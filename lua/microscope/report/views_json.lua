--- views_json.lua - a function's callers and callees, groups, and differences, for programs:
-- docs/report-json.md is their specification.

local differences = require("microscope.report.differences")
local json = require("microscope.report.json")
local keys_query = require("microscope.query.keys")
local profile_json = require("microscope.report.profile_json")
local profile_query = require("microscope.query.profile")

local M = {}

local or_null, field = json.or_null, profile_json.amount_field

local function append(fields, more)
  for _, value in ipairs(more) do fields[#fields + 1] = value end
  return fields
end

local function whole(profile, weight) return or_null(profile_query.samples(profile, weight)) end

local function write_list(name, rows, object, options, out)
  out('"', name, '":[')
  for i, row in ipairs(rows) do
    if options.limit and i > options.limit then break end
    out(i > 1 and ",\n" or "\n")
    json.write(json.object(object(row)), out)
  end
  out("]")
end

--- A function's callers and callees, and the tree below it (views_text.focus).
function M.focus(cap, profile, focus, options, out)
  profile_json.write_head(profile, out)
  local function call(row)
    return append(profile_json.name_fields(keys_query.describe(cap, profile.keys, row.key)),
      { field(profile, "weight"), row.weight, "samples", whole(profile, row.weight) })
  end
  local fields = profile_json.name_fields(keys_query.describe(cap, profile.keys, focus.key))
  append(fields, { field(profile, "self"), focus.self, field(profile, "total"), focus.total,
    "self_samples", whole(profile, focus.self), "total_samples", whole(profile, focus.total),
    field(profile, "self_ci"), profile_json.bounds(profile, focus.self),
    field(profile, "total_ci"), profile_json.bounds(profile, focus.total) })
  out('"focus":')
  json.write(json.object(fields), out)
  out(",\n")
  write_list("callers", focus.callers, call, options, out)
  out(",\n")
  write_list("callees", focus.callees, call, options, out)
  out(",\n")
  profile_json.write_tree(cap, profile, focus.subtree, options, out)
  out("}\n")
end

local FIELDS = { "name", "module", "path", "build_id", "file", "line", "pid", "tid", "cpu" }

-- A thing of a group: the fields it has.
local function thing(value)
  local fields = {}
  for _, name in ipairs(FIELDS) do
    if value[name] ~= nil then append(fields, { name, value[name] }) end
  end
  return json.object(fields)
end

--- Costs by things (groups.lua).
function M.groups(_, profile, groups, options, out)
  profile_json.write_head(profile, out)
  local by, rows, least = {}, {}, profile.tree.weight * (options.min_percent or 0) / 100
  for i, name in ipairs(groups.by) do by[i] = name end
  for _, row in ipairs(groups.rows) do
    if row.total >= least then rows[#rows + 1] = row end
  end
  out('"by":')
  json.write(json.array(by), out)
  out(",\n")
  write_list("groups", rows, function(row)
    local values, fields = row.values, {}
    for i, name in ipairs(groups.by) do append(fields, { name, thing(values[i]) }) end
    return append(fields, { field(profile, "self"), row.self, field(profile, "total"), row.total,
      "self_samples", whole(profile, row.self), "total_samples", whole(profile, row.total),
      field(profile, "self_ci"), profile_json.bounds(profile, row.self),
      field(profile, "total_ci"), profile_json.bounds(profile, row.total) })
  end, options, out)
  out("}\n")
end

local function difference_fields(row)
  return { "base", row.base, "other", row.other, "difference", row.difference,
    "low", or_null(row.low), "high", or_null(row.high), "noise", row.noise }
end

local function side(profile)
  return json.object { field(profile, "weight"), profile.tree.weight,
    field(profile, "recorded"), profile.recorded,
    "samples", whole(profile, profile.tree.weight) }
end

--- What differs from another capture (views_text.diff).
function M.diff(_, d, options, out)
  profile_json.write_head(d.profile, out)
  out('"diff":')
  json.write(json.object { "by", d.diff.by, "measure", d.diff.measure,
    "base", side(d.base), "other", side(d.profile), "same", d.diff.same }, out)
  out(",\n")
  local more, less = differences.split(d, options)
  local function entry(row)
    local fields = profile_json.name_fields(d.describe(row.class))
    append(fields, { "in_base", d.diff.pairs.base_key[row.class] ~= nil,
      "in_other", d.diff.pairs.other_key[row.class] ~= nil })
    return append(fields, difference_fields(row))
  end
  write_list("more", more, entry, options, out)
  out(",\n")
  write_list("less", less, entry, options, out)
  out(',\n"tree":')
  if d.tree then
    local walk_options = differences.walk(d, options)
    walk_options.tree_limit = options.tree_limit
    profile_json.write_nodes(d.tree, walk_options, function(node)
      return append(profile_json.name_fields(d.describe_node(node)),
        difference_fields(differences.of_node(d, node)))
    end, out)
  else
    out("null")
  end
  out("}\n")
end

return M
