--- profile.lua - all that a report says of a capture, as data.
--
-- profile = {
--   summary   (summary.lua), source  (summary.lua; nil when nothing was measured)
--   sources   = all sources (summary.lua): weights of different ones never mix
--   lines, fold = as asked for
--   keys      (keys.lua), weights (samples.lua), tree (tree.lua: after all transforms)
--   costs     (costs.lua), ranked = keys by cost: both made when first asked for
--   ends      (ends.lua)
--   steps     = what was done to get there: list of
--               {what="where"|"collapse-recursion"|"collapse"|"merge"|"drop", text=, weight=,
--                removed=true or false, functions= (how many a symbol meant)}
--   recorded  = weight of all samples of the source: tree.weight and what steps removed
--   looks(weight) = how many samples stand behind a weight; nil where the source has no period
--   frame_pointer_weight = of samples with frames that only frame pointers tell of
--   frameless_weight = of samples whose stack has no frame, of which no function can tell
--   source_id, filter, dropped = how rows of samples were chosen (for groups.lua)
-- }
-- All weights are in the source's unit.

local costs_query = require("microscope.query.costs")
local ends_query = require("microscope.query.ends")
local keys_query = require("microscope.query.keys")
local samples_query = require("microscope.query.samples")
local summary_query = require("microscope.query.summary")
local symbols = require("microscope.query.symbols")
local transform = require("microscope.query.transform")
local tree_query = require("microscope.query.tree")
local walk = require("microscope.query.walk")

local M = {}

-- Under these a recording says too little (shares of 20 samples are 40 % wide).
M.FEW_SAMPLES = 20
M.LITTLE_CPU_NS = 50e6

local function frameless(tree)
  local weight = 0
  for root = 0, tree_query.ROOTS - 1 do weight = weight + tree.self[root] end
  return weight
end

-- Sources are u8 in the schema and a capture may have none: no sample has this one.
local NO_SOURCE = 256

local function names_of(sources)
  local out = {}
  for i, source in ipairs(sources) do out[i] = source.name end
  return table.concat(out, ", ")
end

-- The source of a name; without one the first of CPU time, else the first.
local function choose_source(cap, name)
  if not name then return summary_query.cpu_source(cap) end
  local sources = summary_query.sources(cap)
  for _, source in ipairs(sources) do
    if source.name == name or source.id == name then return source end
  end
  return nil, ("no source '%s'; %s"):format(name, #sources > 0 and "it has " .. names_of(sources)
    or "nothing was measured")
end

local function bind(cap, options)
  if not options.where then return { filter = options.filter } end
  local where = require("microscope.query.where")
  local ast, err = where.parse(options.where)
  local bound
  if ast then bound, err = where.bind(cap, ast, { lenient = options.lenient }) end
  if not bound then return nil, where.explain(options.where, err) end
  return bound
end

-- One transform: the new tree and the step that says what it did; or nil and why.
local function transform_once(cap, tree, keys, step, lenient)
  local found, why
  if step.symbol then
    found, why = symbols.match(cap, keys, step.symbol)
    if not found and not lenient then return nil, ("--%s: %s"):format(step.kind, why) end
  end
  local done = { what = step.kind, text = step.symbol, functions = found and found.count or 0,
    removed = step.kind == "drop", weight = 0 }
  if step.symbol and not found then return tree, done end
  local apply = step.kind == "merge" and transform.merge or step.kind == "drop" and transform.drop
    or transform.collapse
  local out
  out, done.weight = apply(tree, keys, found and found.mask, cap:rows("stacks"))
  return out, done
end

local function transform_all(cap, p, options)
  for _, step in ipairs(options.transforms or {}) do
    local tree, done = transform_once(cap, p.tree, p.keys, step, options.lenient)
    if not tree then return nil, done end
    p.tree = tree
    p.steps[#p.steps + 1] = done
    p.dropped = p.dropped or done.removed and done.weight > 0
  end
  return p
end

local function too_large()
  return ("its stacks have more than %d frames, counting inlined ones: more than a report"
    .. " can hold"):format(tree_query.MOST)
end

-- The profile up to its tree.
local function build(cap, options, source, bound)
  local p = {
    summary = summary_query.of(cap),
    lines = options.lines or false,
    fold = options.fold or false,
    source = source,
    sources = summary_query.sources(cap),
    source_id = source and source.id or NO_SOURCE,
    filter = bound.filter,
    keys = keys_query.build(cap, options),
    steps = {},
  }
  p.weights = samples_query.weights(cap, p.source_id, p.filter)
  p.recorded = p.weights.total + p.weights.left_out.weight
  if options.where then
    p.steps[1] = { what = "where", text = options.where, removed = true,
      weight = p.weights.left_out.weight, functions = 0 }
  end
  p.tree = tree_query.build(cap, p.keys, p.weights)
  return p
end

-- Keys that cost anything, in the order asked for.
local function rank(cap, p, sort)
  local ranked = costs_query.ranked(p.costs, p.keys.count, sort)
  if sort ~= "name" then return ranked end
  local names = {}
  for _, key in ipairs(ranked) do names[key] = keys_query.describe(cap, p.keys, key).name end
  table.sort(ranked, function(a, b)
    if names[a] ~= names[b] then return names[a] < names[b] end
    return a < b
  end)
  return ranked
end

--- What rows of samples are asked for, without a profile: the source (nil when nothing was
-- measured) and the filter (where.bind; nil: all), or nil, nil and why there is none.  options as
-- for `of`: source and where.
function M.chosen(cap, options)
  local source, why = choose_source(cap, options.source)
  if why then return nil, nil, why end
  local bound
  bound, why = bind(cap, options)
  if not bound then return nil, nil, why end
  return source, bound.filter
end

--- The profile of a capture, or nil and why there is none.  options (all may be nil):
--   source      a source's name or id (the first of CPU time, else the first)
--   lines       true: tell functions apart by line
--   fold        true: count inlined functions as part of those they were inlined into
--   where       an expression (where_grammar.lua): samples it does not choose are left out
--   filter      instead of where: a filter as samples.weights takes it
--   transforms  list of {kind="collapse-recursion"|"collapse"|"merge"|"drop", symbol=}, in order
--   sort        "self" (the default), "total" or "name": the order of ranked
--   lenient     true: functions and labels that the capture does not have match nothing
function M.of(cap, options)
  local source, why = choose_source(cap, options.source)
  if why then return nil, why end
  local bound
  bound, why = bind(cap, options)
  if not bound then return nil, why end
  local p = build(cap, options, source, bound)
  if not p.tree then return nil, too_large() end
  local done
  done, why = transform_all(cap, p, options)
  if not done then return nil, why end
  local period = source and source.period or 0
  function p.looks(weight) return period > 0 and weight / period or nil end
  p.ends = ends_query.of(p.tree)
  p.frame_pointer_weight = ends_query.by_frame_pointer(cap, p.weights, p.tree.node_of)
  p.frameless_weight = frameless(p.tree)
  return setmetatable(p, { __index = function(_, field)
    -- Trees and differences do without the table: it is made when it is asked for.
    if field == "costs" then
      p.costs = costs_query.flat(p.tree, p.keys)
    elseif field == "ranked" then
      p.ranked = rank(cap, p, options.sort)
    end
    return rawget(p, field)
  end })
end

--- How many samples a weight stands for, a whole number; nil where the source has no period.
function M.samples(p, weight)
  local looks = p.looks(weight)
  return looks and math.floor(looks + 0.5)
end

--- Whether a profile is too short to judge, in a few words; nil when it is not.
function M.too_short(p)
  local samples = p.looks(p.tree.weight)
  if not samples then return nil end
  if samples < M.FEW_SAMPLES then return ("fewer than %d samples"):format(M.FEW_SAMPLES) end
  if p.source.unit == "ns" and p.tree.weight < M.LITTLE_CPU_NS then
    return ("under %d ms of CPU time"):format(M.LITTLE_CPU_NS / 1e6)
  end
end

--- Walk a profile's call tree from the top, most first (walk.lua): enter(node, depth, index) and
-- leave(node, depth) for each node whose total is at least `least`.  Gives how many were left out.
function M.walk(p, least, enter, leave)
  return (walk.tree(p.tree, { least = least }, enter, leave))
end

--- What a node of a profile's tree is called: as keys.describe, a root by its end.
function M.describe_node(cap, p, node) return walk.describe(cap, p.keys, p.tree, node) end

--- The share of a CPU that recording cost while the program ran; nil when it is not known.
function M.running_share(summary)
  local running = summary.costs.running
  return running.wall_ns > 0 and running.cpu_ns / running.wall_ns or nil
end

--- The budget as a share of a CPU; nil when there was none.
function M.budget_share(summary)
  local percent = tonumber((summary.settings.budget or ""):match("^([%d.]+) %%$"))
  return percent and percent > 0 and percent / 100 or nil
end

return M
