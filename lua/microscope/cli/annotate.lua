--- annotate.lua - `report --annotate SYMBOL`: its options, and how it is run.

local cli = require("microscope.cli")
local keys_query = require("microscope.query.keys")
local pattern = require("microscope.query.pattern")
local symbols_query = require("microscope.query.symbols")

local M = {}

-- Options that say something of annotations only.
local OWN = { "source_dir", "debug_dir", "syntax" }

--- Adds the options to the parser of report.
function M.options(parser)
  parser:option("--annotate"):argname("SYMBOL")
    :description("Source and code of a function with the cost of each line and instruction.")
  parser:option("--source-dir"):argname("DIR"):count("*")
    :description("With --annotate: a folder to look for source files in.")
  parser:option("--debug-dir"):argname("DIR")
    :description("With --annotate: a folder with .build-id/ below (/usr/lib/debug).")
  parser:option("--syntax"):argname("SYNTAX"):choices { "att", "intel" }
    :description("With --annotate: att (the default) or intel.")
end

--- Refuse what makes no sense without --annotate.
function M.check(args)
  if args.annotate then return end
  for _, name in ipairs(OWN) do
    local value = args[name]
    if value and (type(value) ~= "table" or #value > 0) then
      cli.misuse("--%s needs --annotate", (name:gsub("_", "-")))
    end
  end
end

-- The functions' rows that a symbol means.
local function functions_of(cap, keys, symbol)
  local several = pattern.is_glob(symbol) or pattern.regex_of(symbol)
  local found, why = symbols_query.match(cap, keys, symbol, { one = not several })
  if not found then return nil, why end
  local out, any = {}, false
  for key = 0, keys.count - 1 do
    local fn = found.mask[key] == 1 and keys_query.function_of(cap, keys, key)
    if fn then
      out[fn] = true
      any = true
    end
  end
  if not any then return nil, ("'%s' is no function that is known by name"):format(symbol) end
  return out
end

--- Write the annotations that args (of the command line) ask for, through write(text).
function M.run(cap, profile, args, columns, write)
  if not profile.source then cli.fail("nothing was measured, so there is nothing to annotate") end
  local wanted, why = functions_of(cap, profile.keys, args.annotate)
  if not wanted then cli.fail("--annotate: %s", why) end
  local list, problem = require("microscope.report.annotation").of(cap, profile.weights, wanted, {
    folders = args.source_dir,
    debug_dir = args.debug_dir,
    intel = args.syntax == "intel",
  })
  if not list then cli.fail("%s", problem) end
  local writer = args.format == "json" and require("microscope.report.annotation_json")
    or require("microscope.report.annotation_text")
  writer.write(list, profile, { columns = columns }, write)
end

return M
