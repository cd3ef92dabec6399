--- report_options.lua - the options of `microscope report`, and which of them go together.

local annotate = require("microscope.cli.annotate")
local cli = require("microscope.cli")
local groups = require("microscope.query.groups")

local M = {}

M.LIMIT, M.MIN_PERCENT = 30, 1

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

local THINGS = { "function", "module", "file", "line", "thread", "process", "cpu" }

local function is_thing(word) return groups.OF_SAMPLES[word] or groups.OF_FRAMES[word] end

local function by(word)
  local out = {}
  for name in (word .. ","):gmatch("([^,]*),") do
    if not is_thing(name) then
      return nil, ("by must be one or two of %s, not '%s'"):format(table.concat(THINGS, ", "), word)
    end
    out[#out + 1] = name
  end
  if #out > 2 or out[1] == out[2] then
    return nil, ("by must be one thing, or two different ones, not '%s'"):format(word)
  end
  return out
end

-- A transform: all of them in the order of the command line.
local function transform(kind)
  return function(args, _, symbol)
    args.transforms = args.transforms or {}
    table.insert(args.transforms, { kind = kind,
      symbol = type(symbol) == "string" and symbol or nil })
  end
end

local function add_views(parser)
  parser:flag("--tree"):description("A call tree instead of the function table.")
  parser:flag("--invert"):description("With --tree: each function that ran, its callers under it.")
  parser:option("--focus"):argname("SYMBOL")
    :description("One function: its callers, its callees and all below it.")
  parser:option("--by"):argname("THINGS"):convert(by)
    :description("Costs by " .. table.concat(THINGS, ", ") .. ", or by two of them: THING,THING.")
  parser:option("--base"):argname("OTHER")
    :description("Compare with another capture: what is slower, what is faster, what is noise.")
  parser:flag("--share"):description("With --base: compare shares, not times.")
  parser:flag("--samples"):description("List samples with their stacks.")
  parser:option("--flame"):argname("FILE.html")
    :description("Write the call tree as a flame graph, a page for the browser.")
  parser:option("--plugin"):argname("NAME|PATH"):count("*")
    :description("A report of yours instead; what follows -- is for it.")
end

local function add_chooses(parser)
  parser:option("--where"):argname("EXPR")
    :description("Only samples for which it holds, as 'thread ~ worker and time > 2s'.")
  parser:option("--source"):argname("NAME")
    :description("What was measured, where it was more than one thing.")
  parser:flag("--native"):description("The stacks that native threads ran.")
  parser:flag("--lines"):description("Tell functions apart by source line.")
  parser:flag("--fold-inlines")
    :description("Count inlined functions as part of those they were inlined into.")
end

local function add_transforms(parser)
  parser:flag("--collapse-recursion"):count("*"):action(transform("collapse-recursion"))
    :description("Cut stacks back to the first call of any function they call again.")
  for _, it in ipairs {
    { "collapse", "The same for one function." },
    { "merge", "Hide a function; its cost goes to its caller." },
    { "drop", "Remove every sample through a function." },
  } do
    parser:option("--" .. it[1]):argname("SYMBOL"):count("*"):action(transform(it[1]))
      :description(it[2])
  end
end

local function add_presentation(parser)
  parser:option("--sort"):argname("KEY"):choices { "self", "total", "name" }
    :description("By self (the default; in trees total), total or name.")
  parser:option("--limit"):argname("N"):convert(whole("limit", 1))
    :description(("Show N rows at most (%d; trees and --samples: all)."):format(M.LIMIT))
  parser:option("--min-percent"):argname("PERCENT"):convert(percent)
    :description(("Leave out what is under this share (trees: %d)."):format(M.MIN_PERCENT))
  parser:option("--format"):argname("FORMAT"):choices { "text", "json", "csv" }:default("text")
    :show_default(false)
    :description("text (the default), json or csv.")
end

--- Add the options to a parser (lua-argparse).
function M.add(parser)
  parser:argument("file"):args("?"):description("The capture (./microscope.usprof).")
  add_views(parser)
  add_chooses(parser)
  add_transforms(parser)
  add_presentation(parser)
  annotate.options(parser)
end

-- Options that do not go together, and why.
local REFUSED = {
  { "invert", "base", "differences are of calls, not of callers" },
  { "fold_inlines", "lines", "an inlined function's lines are its own" },
  { "flame", "limit", "--min-percent leaves out small nodes" },
  { "flame", "sort", "a flame graph has the heaviest first" },
  { "flame", "by", "a flame graph is of a call tree" },
  { "flame", "base", "a flame graph is of one capture" },
  { "flame", "samples", "a flame graph is of a call tree" },
  { "flame", "invert", "a flame graph is of calls" },
  { "flame", "plugin", "each is a report of its own" },
  { "flame", "annotate", "each is a report of its own" },
  { "plugin", "annotate", "each is a report of its own" },
  { "plugin", "by", "each is a report of its own" },
  { "plugin", "base", "each is a report of its own" },
  { "plugin", "samples", "each is a report of its own" },
  { "plugin", "tree", "each is a report of its own" },
  { "focus", "by", "each is a report of its own" },
  { "focus", "samples", "each is a report of its own" },
  { "by", "tree", "each is a report of its own" },
  { "by", "base", "groups are of one capture" },
  { "by", "lines", "--by line is the report by lines" },
  { "by", "samples", "each is a report of its own" },
  { "annotate", "tree", "each is a report of its own" },
  { "annotate", "focus", "each is a report of its own" },
  { "annotate", "by", "each is a report of its own" },
  { "annotate", "base", "annotations are of one capture" },
  { "annotate", "samples", "each is a report of its own" },
  { "annotate", "transforms", "code is shown as it was sampled" },
  { "annotate", "lines", "annotations have lines" },
  { "annotate", "fold_inlines", "annotations show inlined code where it is" },
  { "annotate", "sort", "code is in order of address" },
  { "annotate", "limit", "a function is shown whole" },
  { "annotate", "min_percent", "a function is shown whole" },
  { "samples", "tree", "each is a report of its own" },
  { "samples", "base", "samples do not pair" },
  { "samples", "transforms", "samples are listed as they were recorded" },
  { "samples", "fold_inlines", "samples are listed as they were recorded" },
  { "samples", "sort", "samples are in order of time" },
  { "samples", "min_percent", "samples have no share" },
}

local function word_of(name) return "--" .. name:gsub("_", "-") end

local function given(args, name)
  if name == "transforms" then return args.transforms and "--" .. args.transforms[1].kind end
  if name == "plugin" then return #(args.plugin or {}) > 0 and "--plugin" end
  return args[name] and word_of(name)
end

--- Refuse what makes no sense together (status 2).
function M.check(args)
  annotate.check(args)
  if args.annotate and args.format == "csv" then
    cli.misuse("--annotate is text or json, not csv")
  end
  if args.flame and args.format ~= "text" then
    cli.misuse("--format does not go with --flame: a flame graph is a page of HTML")
  end
  for _, pair in ipairs(REFUSED) do
    local a, b = given(args, pair[1]), given(args, pair[2])
    if a and b then cli.misuse("%s does not go with %s: %s", a, b, pair[3]) end
  end
  if args.rest and not given(args, "plugin") then
    cli.misuse("what follows -- is for --plugin, which is not given")
  end
  if args.invert and not args.tree then cli.misuse("--invert needs --tree") end
  if args.share and not args.base then cli.misuse("--share needs --base") end
  local table_of_samples = args.by and not M.of_frames(args.by)
  if table_of_samples and args.sort == "total" then
    cli.misuse("--sort total does not go with --by %s: it has no totals",
      table.concat(args.by, ","))
  end
end

--- Whether a list of things has one of frames.
function M.of_frames(things)
  for _, name in ipairs(things) do
    if groups.OF_FRAMES[name] then return true end
  end
  return false
end

return M
