--- profile_json.lua - a profile for programs: docs/report-json.md is its specification.

local interval = require("microscope.query.interval")
local json = require("microscope.report.json")
local keys_query = require("microscope.query.keys")
local profile_query = require("microscope.query.profile")

local M = {}

-- A new field is no new version; a changed meaning is.
M.VERSION = 1

local function or_null(value)
  if value == nil then return json.null end
  return value
end

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

local function source(profile)
  if not profile.source then return json.null end
  return json.object {
    "name", profile.source.name,
    "unit", profile.source.unit,
    "period", profile.source.period,
  }
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
    "samples", profile.tree.samples,
    "duration_ns", s.duration_ns,
    "sampled_ns", profile.tree.weight,
    "source", source(profile),
    "processes", s.processes,
    "threads", s.threads,
    "lost_samples", s.lost_samples,
    "lost_records", s.lost_records,
    "off_ns", s.off.total_ns,
    "off", off(s),
    "recorder", recorder(s),
    "frame_pointer_samples", profile.frame_pointer_samples,
    "program_user_ns", s.program_user_ns or json.null,
    "too_short", profile.source == nil or profile_query.too_short(profile) ~= nil,
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
      "samples", entry.samples,
    }
  end
  return json.array(out)
end

local function bounds(count, profile)
  local low, high = interval.of_total(count, profile.tree.samples, profile.tree.weight)
  return json.array { math.floor(low + 0.5), math.floor(high + 0.5) }
end

local function one_function(cap, profile, key)
  local costs = profile.costs
  local what = keys_query.describe(cap, profile.keys, key)
  return json.object {
    "name", what.name,
    "module", what.module,
    "file", or_null(what.file),
    "line", or_null(what.line),
    "self_ns", costs.self[key],
    "total_ns", costs.total[key],
    "self_samples", costs.self_count[key],
    "total_samples", costs.total_count[key],
    "self_ci_ns", bounds(costs.self_count[key], profile),
    "total_ci_ns", bounds(costs.total_count[key], profile),
  }
end

-- The functions, one a line, so that a diff of two reports is read by lines.
local function write_functions(cap, profile, limit, out)
  out('"functions":[')
  for i, key in ipairs(profile.ranked) do
    if limit and i > limit then break end
    out(i > 1 and ",\n" or "\n")
    json.write(one_function(cap, profile, key), out)
  end
  out("]")
end

-- The tree as it is walked: nodes nest as deep as stacks do, which recursion could not.
local function write_tree(cap, profile, min_percent, out)
  local tree = profile.tree
  out('"tree":[')
  profile_query.walk(profile, tree.weight * min_percent / 100, function(node, _, index)
    local what = profile_query.describe_node(cap, profile, node)
    out(index > 1 and ",\n" or "\n")
    local text = json.encode(json.object {
      "name", what.name,
      "module", what.module,
      "file", or_null(what.file),
      "line", or_null(what.line),
      "self_ns", tree.self[node],
      "total_ns", tree.total[node],
      "samples", tree.total_count[node],
    })
    out(text:sub(1, -2), ',"children":[')
  end, function() out("]}") end)
  out("]")
end

--- Write the report; options: tree, limit (nil: all), min_percent (nil: all).
function M.write(cap, profile, options, out)
  out('{"version":', tostring(M.VERSION), ',\n"summary":')
  json.write(summary(profile), out)
  out(',\n"ends":')
  json.write(ends(profile), out)
  out(",\n")
  write_functions(cap, profile, options.limit, out)
  out(",\n")
  if options.tree then
    write_tree(cap, profile, options.min_percent or 0, out)
  else
    out('"tree":null')
  end
  out("}\n")
end

return M
