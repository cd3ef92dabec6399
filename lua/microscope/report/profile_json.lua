--- profile_json.lua - a profile for programs: docs/report-json.md is its specification.

local json = require("microscope.report.json")
local keys_query = require("microscope.query.keys")
local numbers = require("microscope.report.numbers")
local profile_query = require("microscope.query.profile")
local walk = require("microscope.query.walk")

local or_null = json.or_null

local M = {}

-- A new field is no new version; a changed meaning is.
M.VERSION = 1

local function texts(map)
  local names, out = {}, {}
  for name in pairs(map) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    out[#out + 1] = name
    out[#out + 1] = map[name]
  end
  return json.object(out)
end

local function recorder(s)
  return json.object {
    "startup_cpu_ns", s.costs.startup.cpu_ns,
    "running_cpu_ns", s.costs.running.cpu_ns,
    "running_wall_ns", s.costs.running.wall_ns,
    "finishing_cpu_ns", s.costs.finishing.cpu_ns,
    "running_share", or_null(profile_query.running_share(s)),
    "budget_share", or_null(profile_query.budget_share(s)),
  }
end

local function off(s)
  return json.object {
    "queue_ns", s.off.queue_ns,
    "budget_ns", s.off.budget_ns,
    "throttle_ns", s.off.throttle_ns,
    "one_cpu_ns", s.off.one_cpu_ns,
  }
end

local function one_source(of)
  if not of then return json.null end
  return json.object {
    "name", of.name,
    "unit", of.unit,
    "unit_name", or_null(of.unit_name),
    "period", of.period,
  }
end

local function sources(profile)
  local out = {}
  for i, of in ipairs(profile.sources) do out[i] = one_source(of) end
  return json.array(out)
end

--- The name of a field that holds an amount of the source's unit: "self_ns" where that is ns, else
-- "self_value", whose unit the summary's source tells.
function M.amount_field(profile, name)
  local other = profile.source ~= nil and profile.source.unit ~= "ns"
  return name .. (other and "_value" or "_ns")
end

local field = M.amount_field

-- What was done before the report: filters and transforms, and what each took out or moved.
local function steps(profile)
  local out = {}
  for i, step in ipairs(profile.steps) do
    out[i] = json.object {
      "what", step.what,
      "text", or_null(step.text),
      "functions", step.functions,
      "removed", step.removed,
      field(profile, "weight"), step.weight,
    }
  end
  return json.array(out)
end

local function summary(profile)
  local s = profile.summary
  local problems = {}
  for _, problem in ipairs(s.problems) do
    problems[#problems + 1] = json.object { "text", problem.text, "count", problem.count }
  end
  return json.object {
    "program", s.meta.command or s.program,
    "host", or_null(s.meta.host),
    "samples", or_null(profile_query.samples(profile, profile.tree.weight)),
    "duration_ns", s.duration_ns,
    field(profile, "sampled"), profile.tree.weight,
    field(profile, "recorded"), profile.recorded,
    "source", one_source(profile.source),
    "sources", sources(profile),
    "steps", steps(profile),
    "processes", s.processes,
    "threads", s.threads,
    "lost_samples", s.lost_samples,
    "lost_records", s.lost_records,
    "off_ns", s.off.total_ns,
    "off", off(s),
    "recorder", recorder(s),
    "frame_pointer_samples", or_null(profile_query.samples(profile,
      profile.frame_pointer_weight)),
    "program_user_ns", s.program_user_ns or json.null,
    "too_short", profile.source == nil or profile_query.too_short(profile) ~= nil,
    "names_later", s.names_later,
    "settings", texts(s.settings),
    "meta", texts(s.meta),
    "problems", json.array(problems),
  }
end

local function ends(profile)
  local out = {}
  for _, entry in ipairs(profile.ends) do
    out[#out + 1] = json.object {
      "reason", entry.reason,
      "whole", entry.whole,
      "samples", or_null(profile_query.samples(profile, entry.weight)),
      field(profile, "weight"), entry.weight,
    }
  end
  return json.array(out)
end

--- [low, high] of a weight's 95 % interval, null where there is none.
function M.bounds(profile, weight)
  local low, high = numbers.bounds(profile, weight)
  if not low then return json.null end
  local all = profile.tree.weight
  return json.array { math.floor(low * all + 0.5), math.floor(high * all + 0.5) }
end

--- The fields of what something is called (keys.describe).
function M.name_fields(what)
  return { "name", what.name, "module", what.module, "file", or_null(what.file),
    "line", or_null(what.line) }
end

local function one_function(cap, profile, key)
  local costs, bounds = profile.costs, M.bounds
  local fields = M.name_fields(keys_query.describe(cap, profile.keys, key))
  for _, value in ipairs {
    field(profile, "self"), costs.self[key],
    field(profile, "total"), costs.total[key],
    "self_samples", or_null(profile_query.samples(profile, costs.self[key])),
    "total_samples", or_null(profile_query.samples(profile, costs.total[key])),
    field(profile, "self_ci"), bounds(profile, costs.self[key]),
    field(profile, "total_ci"), bounds(profile, costs.total[key]),
  } do
    fields[#fields + 1] = value
  end
  return json.object(fields)
end

-- The functions, one a line, so that a diff of two reports is read by lines.
local function write_functions(cap, profile, options, out)
  out('"functions":[')
  local count, least = 0, profile.tree.weight * (options.min_percent or 0) / 100
  for _, key in ipairs(profile.ranked) do
    if options.limit and count >= options.limit then break end
    if profile.costs.total[key] >= least then
      count = count + 1
      out(count > 1 and ",\n" or "\n")
      json.write(one_function(cap, profile, key), out)
    end
  end
  out("]")
end

--- Write an array of a tree's nodes as it is walked: nodes nest as deep as stacks do, which
-- recursion could not.  fields(node) gives a node's pairs; options are walk.tree's, and
-- tree_limit the most nodes.
function M.write_nodes(tree, options, fields, out)
  local written, depth = 0, 0
  out("[")
  local _, stopped = walk.tree(tree, options, function(node, at, index)
    if written == options.tree_limit then return true end
    written, depth = written + 1, at + 1
    out(index > 1 and ",\n" or "\n", (json.encode(json.object(fields(node))):sub(1, -2)),
      ',"children":[')
  end, function(_, at)
    depth = at
    out("]}")
  end)
  if stopped then out(("]}"):rep(depth)) end
  out("]")
end

--- Write the call tree, or another tree of a profile's keys.
function M.write_tree(cap, profile, tree, options, out)
  local self_name, total_name = field(profile, "self"), field(profile, "total")
  out('"tree":')
  M.write_nodes(tree, { least = tree.weight * (options.min_percent or 0) / 100,
    before = options.before, tree_limit = options.tree_limit }, function(node)
    local out_fields = M.name_fields(walk.describe(cap, profile.keys, tree, node))
    local total = walk.total(node, tree.total, tree.self)
    for _, value in ipairs { self_name, tree.self[node], total_name, total, "samples",
      or_null(profile_query.samples(profile, total)) } do
      out_fields[#out_fields + 1] = value
    end
    return out_fields
  end, out)
end

--- Write what all reports begin with: version, summary and ends.
function M.write_head(profile, out)
  out('{"version":', tostring(M.VERSION), ',\n"summary":')
  json.write(summary(profile), out)
  out(',\n"ends":')
  json.write(ends(profile), out)
  out(",\n")
end

--- Write the report; options: tree (true, or a tree), limit (nil: all), tree_limit, min_percent
-- (nil: all), before.
function M.write(cap, profile, options, out)
  M.write_head(profile, out)
  write_functions(cap, profile, options, out)
  out(",\n")
  if options.tree then
    M.write_tree(cap, profile, options.tree ~= true and options.tree or profile.tree, options, out)
  else
    out('"tree":null')
  end
  out("}\n")
end

M.one_source = one_source
return M
