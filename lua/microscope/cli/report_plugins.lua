--- report_plugins.lua - `report --flame` and `report --plugin`: other forms of a report's profile.

local cli = require("microscope.cli")
local manifest = require("microscope.manifest")
local plugins = require("microscope.plugins")
local runner = require("microscope.runner")
local text = require("microscope.report.text")

local M = {}

--- Write a profile's tree as a flame graph to args.flame.
function M.flame(cap, profile, args)
  local summary, source = profile.summary, profile.source
  local samples = profile.looks(profile.tree.weight)
  local parts = { samples and text.plural(math.floor(samples + 0.5), "sample") or nil }
  if source then parts[#parts + 1] = "of " .. source.name end
  local ok, err = require("microscope.output").with(args.flame, nil, function(file)
    require("microscope.report.flame").write(cap, profile.keys, profile.tree, {
      title = summary.meta.command or summary.program,
      subtitle = table.concat(parts, " "),
      unit = source and source.unit or "count",
      min_share = args.min_percent and args.min_percent / 100,
    }, function(...) file:write(...) end)
  end)
  if not ok then cli.fail("%s", tostring(err)) end
end

local function load_report(name)
  local plugin, why = plugins.code("reports", name)
  if not plugin then cli.fail("%s", why) end
  return plugin
end

local function parser_of(plugin)
  local parser = cli.own_parser("microscope report --plugin " .. plugin.name .. " --",
    plugin.description or plugin.summary)
  manifest.add_options(parser, plugin, true)
  parser.error = function(_, message) cli.misuse("%s: %s", plugin.name, message) end
  return cli.finish_parser(parser, plugin.examples)
end

--- The names that --plugin has in a command line.
function M.named(words)
  local out = {}
  for i, word in ipairs(words) do
    if word == "--plugin" then out[#out + 1] = words[i + 1] end
    out[#out + 1] = word:match("^%-%-plugin=(.+)$")
  end
  return out
end

--- The help of the plugin that a command line names; nil when it names none.
function M.help(words)
  local name = M.named(words)[1]
  return name and parser_of(load_report(name)):get_help()
end

local function run_one(name, cap, profile, args, write)
  local plugin = load_report(name)
  local own, why = manifest.collect(plugin, { parser_of(plugin):parse(args.rest or {}) })
  if not own then cli.misuse("%s", why) end
  if args.format ~= "text" and plugin.writes then
    cli.misuse("%s writes %s: --format does not go with it", plugin.name, plugin.writes)
  end
  local ok, err = runner.run(plugin, { cap }, { args = own, out = write, format = args.format,
    width = text.columns(), extra = { profile = profile, limit = args.limit,
      min_percent = args.min_percent } })
  if not ok then cli.fail("%s", err) end
end

--- Run the plugins that args.plugin names over a profile, each after the other.  One that fails is
-- said on stderr, and the others go on; gives the exit status.
function M.run(cap, profile, args, write)
  local status = 0
  for _, name in ipairs(args.plugin) do
    local ok, err = pcall(run_one, name, cap, profile, args, write)
    if not ok then
      if #args.plugin == 1 then error(err, 0) end
      status = math.max(status, cli.say_stop("report", err))
    end
  end
  return status
end

return M
