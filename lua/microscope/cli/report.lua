--- report: what a capture says, in a terminal, as JSON or as CSV.

local cli = require("microscope.cli")
local options_of = require("microscope.cli.report_options")
local text = require("microscope.report.text")

local M = {
  name = "report",
  summary = "Report where a recorded program's time went.",
  examples = {
    { "microscope report", "the most expensive functions of ./microscope.usprof" },
    { "microscope report server.usprof --tree --min-percent 5", "its call tree" },
    { "microscope report --tree --invert", "what runs, and who calls it" },
    { "microscope report --lines --limit 10", "the ten most expensive lines" },
    { "microscope report --focus 'lookup*'", "one function: who calls it, what it calls" },
    { "microscope report --collapse-recursion --drop main --tree", "other ways to see stacks" },
    { "microscope report --where 'thread ~ worker and time > 100ms'", "some of the samples" },
    { "microscope report --by thread,function", "what each thread runs" },
    { "microscope report new.usprof --base old.usprof", "what is slower, and what is noise" },
    { "microscope report --annotate 'hash*'", "source and code with the cost of each line" },
    { "microscope report --samples --limit 3", "samples with their stacks" },
    { "microscope report --flame flame.html", "a flame graph for the browser" },
    { "microscope report --format json | jq .summary", "for programs" },
  },
}

M.options = options_of.add
M.takes_rest = true

--- `report --plugin NAME --help`: the plugin's help; nil for the command's own.
function M.help(words) return require("microscope.cli.report_plugins").help(words) end

local function write(...)
  local ok, err = io.stdout:write(...)
  if not ok then cli.fail("cannot write the report: %s", err) end
end

local function open(path)
  local cap, err = require("microscope.capture").open(path)
  if cap then return cap end
  local problem = tostring(err)
  cli.fail("%s", problem:find(path, 1, true) and problem or path .. ": " .. problem)
end

-- An expression that is none is misuse whatever the capture holds.
local function check_where(args)
  if not args.where then return end
  local where = require("microscope.query.where")
  local ast, err = where.parse(args.where)
  if not ast then cli.misuse("--where: %s", where.explain(args.where, err)) end
end

local function profile_of(cap, path, args, lenient)
  local profile, why = require("microscope.query.profile").of(cap, {
    source = args.source,
    lines = args.lines or args.by and require("microscope.query.groups").needs_lines(args.by),
    fold = args.fold_inlines,
    where = args.where,
    transforms = args.transforms,
    sort = args.sort,
    lenient = lenient,
  })
  if not profile then cli.fail("%s: %s", path, why) end
  return profile
end

-- Siblings in the order asked for; nil: most of all first.
local function order_of(cap, profile, tree, sort)
  local walk = require("microscope.query.walk")
  if sort == "self" then
    return function(a, b)
      if tree.self[a] ~= tree.self[b] then return tree.self[a] > tree.self[b] end
      return a < b
    end
  elseif sort == "name" then
    local names = {}
    local function name(node)
      names[node] = names[node] or walk.describe(cap, profile.keys, tree, node).name
      return names[node]
    end
    return function(a, b)
      if name(a) ~= name(b) then return name(a) < name(b) end
      return a < b
    end
  end
end

-- How to present: in text lists are short where nothing is said, for programs all is there.
local function presentation(args)
  local is_text = args.format == "text"
  return {
    limit = args.limit or is_text and options_of.LIMIT or nil,
    tree_limit = args.limit,
    min_percent = args.min_percent,
    sort = args.sort,
    columns = text.columns(),
    bars = text.shows_bars(),
  }
end

-- The same for what is a tree.
local function tree_presentation(args)
  local options = presentation(args)
  options.min_percent = args.min_percent or args.format == "text" and options_of.MIN_PERCENT or 0
  return options
end

local function too_large(path)
  cli.fail("%s: its tree of callers would be larger than a report can hold: --min-percent leaves"
    .. " out what is small", path)
end

local function symbol_of(cap, path, profile, args)
  local found, why = require("microscope.query.symbols").match(cap, profile.keys, args.focus,
    { one = true })
  if not found then cli.fail("%s: --focus: %s", path, why) end
  return found
end

-- Does a tree of callers end at what a report shows?
local function least_of(tree, options) return tree.weight * options.min_percent / 100 end

local function inverted(cap, path, profile, args, options)
  local invert, tree, weight = require("microscope.query.invert"), profile.tree, nil
  local least = least_of(tree, options)
  if args.focus then
    local found = symbol_of(cap, path, profile, args)
    weight = require("microscope.query.focus").calls(tree, profile.keys, found.mask)
  end
  -- Whatever is shown is found; where it is sorted otherwise, too.
  return invert.build(tree, profile.keys, least, weight) or too_large(path)
end

local function write_tree(cap, profile, args, options, tree, title)
  options.before = order_of(cap, profile, tree, args.sort)
  options.tree, options.title = tree, title
  if args.format == "csv" then
    require("microscope.report.views_csv").tree(cap, profile, tree, options, write)
  elseif args.format == "json" then
    options.limit = args.limit
    require("microscope.report.profile_json").write(cap, profile, options, write)
  else
    require("microscope.report.profile_text").write(cap, profile, options, write)
  end
end

local function report_tree(cap, path, profile, args)
  local options = tree_presentation(args)
  if args.invert then
    return write_tree(cap, profile, args, options, inverted(cap, path, profile, args, options),
      "FUNCTIONS, AND THEIR CALLERS")
  end
  local tree = profile.tree
  if args.focus then
    local found = symbol_of(cap, path, profile, args)
    tree = require("microscope.query.focus").subtree(tree, profile.keys, found.mask,
      cap:rows("stacks"))
  end
  write_tree(cap, profile, args, options, tree,
    args.focus and "CALL TREE (THE FUNCTION'S TOTAL IS 100 %)")
end

local function report_functions(cap, profile, args)
  local options = presentation(args)
  if args.format == "csv" then
    require("microscope.report.views_csv").functions(cap, profile, options, write)
  elseif args.format == "json" then
    require("microscope.report.profile_json").write(cap, profile, options, write)
  else
    require("microscope.report.profile_text").write(cap, profile, options, write)
  end
end

local VIEWS = { text = "microscope.report.views_text", json = "microscope.report.views_json",
  csv = "microscope.report.views_csv" }

local function views(format) return require(VIEWS[format]) end

local function report_focus(cap, path, profile, args)
  local focus_query = require("microscope.query.focus")
  local found = symbol_of(cap, path, profile, args)
  local focus = focus_query.of(profile.tree, profile.keys, found.mask)
  focus.key = found.keys[1]
  focus.subtree = focus_query.subtree(profile.tree, profile.keys, found.mask, cap:rows("stacks"))
  local options = tree_presentation(args)
  options.before = order_of(cap, profile, focus.subtree, args.sort)
  views(args.format).focus(cap, profile, focus, options, write)
end

local function by_name(groups, profile_text)
  local names = {}
  local function name(row)
    if not names[row] then
      local parts = {}
      for i, thing in ipairs(groups.by) do
        parts[i] = profile_text.thing_label(thing, row.values[i])
      end
      names[row] = table.concat(parts, "\0")
    end
    return names[row]
  end
  table.sort(groups.rows, function(a, b) return name(a) < name(b) end)
end

local function report_groups(cap, path, profile, args)
  local groups, why = require("microscope.query.groups").of(cap, profile, args.by,
    { sort = args.sort })
  if not groups then cli.fail("%s: %s", path, why) end
  if args.sort == "name" then by_name(groups, views("text")) end
  views(args.format).groups(cap, profile, groups, presentation(args), write)
end

-- What a symbol means may be in one of the two captures only, but not in none.
local function check_steps(base, other)
  for i, step in ipairs(other.steps) do
    if step.text and step.what ~= "where" and step.functions + base.steps[i].functions == 0 then
      cli.fail("--%s: no function '%s' in either capture", step.what, step.text)
    end
  end
end

local function narrow(cap, profile, args)
  local found = require("microscope.query.symbols").match(cap, profile.keys, args.focus,
    { one = true })
  if not found then return false end
  profile.tree = require("microscope.query.focus").subtree(profile.tree, profile.keys, found.mask,
    cap:rows("stacks"))
  return true
end

local function check_sources(base, other, args)
  local a, b = base.source, other.source
  if not a or not b then cli.fail("%s: nothing was measured", a and args.file or args.base) end
  if not require("microscope.query.diff").compares(a, b) then
    cli.fail("%s measured '%s' and %s '%s': their units do not compare (--source chooses)",
      args.base, a.name, args.file or "microscope.usprof", b.name)
  end
end

local function report_diff(cap, path, args)
  local diff_query = require("microscope.query.diff")
  local base_cap = open(args.base)
  local profile = profile_of(cap, path, args, true)
  local base = profile_of(base_cap, args.base, args, true)
  check_sources(base, profile, args)
  check_steps(base, profile)
  -- Tables for building both trees are large and no longer needed.
  collectgarbage()
  if args.focus then
    local in_base, in_other = narrow(base_cap, base, args), narrow(cap, profile, args)
    if not in_base or not in_other then
      symbol_of(in_other and base_cap or cap, in_other and args.base or path,
        in_other and base or profile, args)
    end
  end
  local diff = diff_query.of(base_cap, base, cap, profile, { share = args.share,
    measure = args.sort == "total" and "total" or "self" })
  local d = { diff = diff, base = base, profile = profile, source = profile.source,
    base_path = args.base }
  function d.describe(class)
    return diff_query.describe(base_cap, base, cap, profile, diff.pairs, class)
  end
  local options = args.tree and tree_presentation(args) or presentation(args)
  if args.tree then
    d.tree = diff_query.tree(base, profile, diff.pairs)
    function d.describe_node(node)
      return d.describe(node < 256 and diff.pairs.count + node or d.tree.key[node])
    end
  end
  views(args.format).diff(cap, d, options, write)
  base_cap:close()
end

-- In other forms: of the whole profile, or of what a focus leaves.
local function report_otherwise(cap, path, profile, args)
  if args.focus and not narrow(cap, profile, args) then symbol_of(cap, path, profile, args) end
  local forms = require("microscope.cli.report_plugins")
  if args.flame then forms.flame(cap, profile, args) end
  return args.flame and 0 or forms.run(cap, profile, args, write)
end

local function report_samples(cap, path, args)
  local summary = require("microscope.query.summary")
  local profile_query, list_query = require("microscope.query.profile"),
    require("microscope.query.sample_list")
  local source, filter, why = profile_query.chosen(cap, { source = args.source,
    where = args.where })
  if why then cli.fail("%s: %s", path, why) end
  source = source or { id = #summary.sources(cap), name = "", unit = "other", period = 0 }
  require("microscope.report.samples_report").write(cap, list_query.of(cap, source, filter),
    args.format, { lines = args.lines, limit = args.limit }, write)
end

function M.run(args)
  options_of.check(args)
  check_where(args)
  local path = args.file or "microscope.usprof"
  local cap = open(path)
  if args.samples then
    report_samples(cap, path, args)
  elseif args.base then
    report_diff(cap, path, args)
  else
    local profile = profile_of(cap, path, args)
    if args.annotate then
      require("microscope.cli.annotate").run(cap, profile, args, text.columns(), write)
    elseif args.flame or #args.plugin > 0 then
      local status = report_otherwise(cap, path, profile, args)
      cap:close()
      return status
    elseif args.by then
      report_groups(cap, path, profile, args)
    elseif args.tree then
      report_tree(cap, path, profile, args)
    elseif args.focus then
      report_focus(cap, path, profile, args)
    else
      report_functions(cap, profile, args)
    end
  end
  cap:close()
  return 0
end

return M
