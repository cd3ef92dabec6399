--- views_text.lua - a function's callers and callees, groups, and differences, for a person.

local diff_query = require("microscope.query.diff")
local differences = require("microscope.report.differences")
local header_text = require("microscope.report.header_text")
local keys_query = require("microscope.query.keys")
local numbers = require("microscope.report.numbers")
local profile_text = require("microscope.report.profile_text")
local text = require("microscope.report.text")
local walk = require("microscope.query.walk")

local M = {}

local function calls_table(cap, profile, total, rows, title, options, out)
  local wide, cells = profile_text.is_wide(options.columns), {}
  local bars = profile_text.has_bars(options)
  local headings = { "SHARE", "OF ALL" }
  if wide then headings[#headings + 1] = "AMOUNT" end
  if bars then headings[#headings + 1] = "" end
  headings[#headings + 1] = title
  for i, row in ipairs(rows) do
    if i > options.limit then break end
    local what = keys_query.describe(cap, profile.keys, row.key)
    local line = { text.percent(total > 0 and row.weight / total or 0),
      text.percent(numbers.share(profile, row.weight)) }
    if wide then line[#line + 1] = numbers.amount(profile.source, row.weight) end
    if bars then line[#line + 1] = numbers.bar(total > 0 and row.weight / total or 0) end
    line[#line + 1] = function(room) return numbers.label(what, room) end
    cells[i] = line
  end
  out("\n")
  numbers.table(headings, cells, options.columns, out, { [#headings - 1] = bars or nil })
  profile_text.say_more(#rows - #cells, "function", { limit = options.limit }, out)
end

--- A function's callers and callees, and the tree below it: focus is focus.lua's, with
-- subtree= (a tree) and key= (one of its keys).
function M.focus(cap, profile, focus, options, out)
  header_text.write(profile, options.columns, out)
  local what = keys_query.describe(cap, profile.keys, focus.key)
  local function of(weight)
    local share, bounds = numbers.share_cells(profile, weight)
    return ("%s of all%s, %s"):format(share, bounds ~= "" and " (95 %: " .. bounds .. ")" or "",
      numbers.amount(profile.source, weight))
  end
  out("\n", numbers.label(what, options.columns), "\n")
  header_text.wrap("  itself " .. of(focus.self), options.columns, out)
  header_text.wrap("  in all " .. of(focus.total), options.columns, out)
  calls_table(cap, profile, focus.total, focus.callers, "CALLED BY", options, out)
  calls_table(cap, profile, focus.total, focus.callees, "CALLS", options, out)
  profile_text.tree(cap, profile, options, out, focus.subtree, "BELOW IT (ITS TOTAL IS 100 %)")
end

-- What a thing of a group is called.
local LABELS = {
  thread = function(v) return ("%s (%d/%d)"):format(text.escape(v.name), v.pid, v.tid) end,
  process = function(v) return ("%s (%d)"):format(text.escape(v.name), v.pid) end,
  cpu = function(v) return ("CPU %d"):format(v.cpu) end,
  module = function(v) return v.name and text.escape(v.name) or "[no module]" end,
  file = function(v) return v.file and text.escape(v.file) or "[no file known]" end,
  line = function(v)
    if not v.file then return "[no line known]" end
    return text.escape(v.file) .. ":" .. (v.line or "?")
  end,
}

local function thing_label(name, value, room)
  if name == "function" then return numbers.label(value, room) end
  local label = LABELS[name](value)
  if not room or text.width(label) <= room then return label end
  -- The end of a path tells more than its beginning.
  if name == "file" or name == "line" then
    while text.width(label) > room and label:find("/", 2, true) do
      label = label:sub((label:find("/", 2, true)))
    end
  end
  return text.fit(label, room)
end

local function group_label(groups, row)
  return function(room)
    if #groups.by == 1 then return thing_label(groups.by[1], row.values[1], room) end
    -- The first has half of the line, and more where the second can do with less.
    local half = room and math.floor((room - 2) / 2)
    if room then
      local second = text.width(thing_label(groups.by[2], row.values[2]))
      half = math.max(half, room - 2 - math.max(second, 16))
    end
    local first = thing_label(groups.by[1], row.values[1], half)
    return first .. "  "
      .. thing_label(groups.by[2], row.values[2], room and room - text.width(first) - 2)
  end
end

--- Costs by things (groups.lua).
function M.groups(_, profile, groups, options, out)
  header_text.write(profile, options.columns, out)
  if profile.tree.weight == 0 then return end
  local shown = profile_text.shown(profile, groups.rows, function(row) return row.total end,
    options)
  local rows = {}
  for i, row in ipairs(shown) do
    rows[i] = { self = row.self, total = row.total, label = group_label(groups, row) }
  end
  local names = groups.of_samples and { "SHARE" } or { "SELF", "TOTAL" }
  profile_text.shares(profile, names, rows, table.concat(groups.by, "  "):upper(), options, out)
  profile_text.say_more(#groups.rows - #shown, "row", options, out)
end

-- A value of a diff: an amount, or a share.
local function value_of(diff, source, value)
  if diff.by == "share" then return text.percent(value) end
  return numbers.amount(source, value)
end

local function change_of(diff, source, value)
  if diff.by == "share" then return ("%+.1f %%"):format(value * 100) end
  return numbers.change(source, value)
end

local function diff_cells(diff, source, row)
  return change_of(diff, source, row.difference),
    row.low and ("%s..%s"):format(change_of(diff, source, row.low),
      change_of(diff, source, row.high)) or "",
    value_of(diff, source, row.base), value_of(diff, source, row.other),
    row.noise and "~" or ""
end

local function diff_table(d, rows, title, options, out)
  local cells, shown = {}, math.min(#rows, options.limit)
  for i = 1, shown do
    local row = rows[i]
    local what = d.describe(row.class)
    local mark = not d.diff.pairs.base_key[row.class] and "new: "
      or not d.diff.pairs.other_key[row.class] and "gone: " or ""
    local line = { diff_cells(d.diff, d.source, row) }
    line[#line + 1] = function(room)
      return mark .. numbers.label(what, room and room - #mark)
    end
    cells[i] = line
  end
  out("\n")
  numbers.table({ title, d.profile.looks(0) and "95 %" or "", "BASE", "NOW", "",
    d.diff.measure == "self" and "FUNCTION ITSELF" or "FUNCTION AND WHAT IT CALLS" }, cells,
    options.columns, out)
  profile_text.say_more(#rows - shown, "function", { limit = options.limit }, out)
end

-- The totals, and what the marks mean.
local function diff_head(d, options, out)
  local source, diff = d.source, d.diff
  local whole = diff_query.difference("time", diff.base.weight, diff.other.weight, diff.base,
    diff.other)
  out("\n")
  header_text.wrap(("compared with %s: %s then, %s now (%s)"):format(text.escape(d.base_path),
    numbers.amount(source, diff.base.weight), numbers.amount(source, diff.other.weight),
    numbers.change(source, whole.difference)), options.columns, out)
  for _, step in ipairs(d.base.steps) do
    header_text.wrap(("  there --%s%s: %s"):format(step.what, step.text
      and " '" .. text.escape(step.text) .. "'" or "", numbers.amount(source, step.weight)),
      options.columns, out)
  end
  if diff.other.looks then
    header_text.wrap("~ marks what noise explains: its 95 % interval holds 0", options.columns,
      out)
  end
end

--- What is slower and what is faster than in another capture.  d = {diff= (diff.lua), base=,
-- profile= (profiles), source=, base_path=, describe=function(class), tree= (diff.tree or nil)}.
function M.diff(_, d, options, out)
  header_text.write(d.profile, options.columns, out)
  diff_head(d, options, out)
  if d.tree then return M.diff_tree(d, options, out) end
  local time = d.source and d.source.unit == "ns" and d.diff.by == "time"
  local more, less = differences.split(d, options)
  if #more > 0 then diff_table(d, more, time and "SLOWER" or "MORE", options, out) end
  if #less > 0 then diff_table(d, less, time and "FASTER" or "LESS", options, out) end
  out("\n")
  if #d.diff.rows == 0 then out("no difference\n") end
  if d.diff.same > 0 then
    out(("%s the same\n"):format(text.plural(d.diff.same, "function")))
  end
end

--- The call tree of differences.
function M.diff_tree(d, options, out)
  local lines, columns = 0, options.columns
  out("\n", text.right("CHANGE", 10), text.right("95 %", 22), text.right("BASE", 10),
    text.right("NOW", 10), "    CALL TREE\n")
  local hidden, stopped = walk.tree(d.tree, differences.walk(d, options), function(node, depth)
    if lines == options.tree_limit then return true end
    lines = lines + 1
    local change, bounds, base, now, mark = diff_cells(d.diff, d.source,
      differences.of_node(d, node))
    local figures = text.right(change, 10) .. text.right(bounds, 22) .. text.right(base, 10)
      .. text.right(now, 10) .. " " .. text.left(mark, 1) .. "  "
    local indent = profile_text.indent(depth, columns and math.max(columns - #figures, 8))
    out(figures, indent, numbers.label(d.describe_node(node), columns
      and math.max(columns - #figures - #indent, 8)), "\n")
  end, function() end)
  profile_text.say_hidden(hidden, stopped, options, out)
end

M.thing_label = thing_label
return M
