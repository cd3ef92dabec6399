--- report: what a capture says, in a terminal or as JSON.

local cli = require("microscope.cli")
local profile_query = require("microscope.query.profile")
local profile_json = require("microscope.report.profile_json")
local profile_text = require("microscope.report.profile_text")
local text = require("microscope.report.text")

local M = {
  name = "report",
  summary = "Report where a recorded program's time went.",
  examples = {
    { "microscope report", "the most expensive functions of ./microscope.usprof" },
    { "microscope report server.usprof --tree --min-percent 5", "its call tree" },
    { "microscope report --lines --limit 10", "the ten most expensive lines" },
    { "microscope report --format json | jq .summary", "for programs" },
  },
}

local DEFAULT_LIMIT = 30
local DEFAULT_MIN_PERCENT = 1

local function whole(name, least)
  return function(word)
    local value = word:match("^%d+$") and tonumber(word)
    if not value or value < least then
      return nil, ("%s must be a whole number of at least %d, not '%s'"):format(name, least, word)
    end
    return value
  end
end

local function percent(word)
  local value = word:match("^%d+%.?%d*$") and tonumber(word)
  if not value or value > 100 then
    return nil, ("min-percent must be a percentage, not '%s'"):format(word)
  end
  return value
end

function M.options(parser)
  parser:argument("file"):args("?"):description("The capture (./microscope.usprof).")
  parser:flag("--tree"):description("A call tree instead of the function table.")
  parser:option("--limit"):argname("N"):convert(whole("limit", 1))
    :description(("Show the N most expensive functions (%d)."):format(DEFAULT_LIMIT))
  parser:option("--min-percent"):argname("PERCENT"):convert(percent)
    :description(("Leave out tree nodes under this share (%d)."):format(DEFAULT_MIN_PERCENT))
  parser:flag("--lines"):description("Tell functions apart by source line.")
  parser:option("--format"):argname("FORMAT"):choices { "text", "json" }:default("text")
    :show_default(false)
    :description("text (the default) or json.")
end

local function write(...)
  local ok, err = io.stdout:write(...)
  if not ok then cli.fail("cannot write the report: %s", err) end
end

function M.run(args)
  local capture = require("microscope.capture")
  local path = args.file or "microscope.usprof"
  local cap, err = capture.open(path)
  if not cap then
    local problem = tostring(err)
    cli.fail("%s", problem:find(path, 1, true) and problem or path .. ": " .. problem)
  end
  local profile, why = profile_query.of(cap, { lines = args.lines })
  if not profile then cli.fail("%s: %s", path, why) end
  local json = args.format == "json"
  local options = {
    tree = args.tree,
    limit = args.limit or not json and DEFAULT_LIMIT or nil,
    min_percent = args.min_percent or not json and DEFAULT_MIN_PERCENT or nil,
    columns = text.columns(),
  }
  local writer = json and profile_json or profile_text
  writer.write(cap, profile, options, write)
  cap:close()
  return 0
end

return M
