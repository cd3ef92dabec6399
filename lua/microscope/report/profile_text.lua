--- profile_text.lua - a profile for a person: header, function table, call tree.

local header_text = require("microscope.report.header_text")
local keys_query = require("microscope.query.keys")
local numbers = require("microscope.report.numbers")
local text = require("microscope.report.text")
local zones_text = require("microscope.report.zones_text")
local walk = require("microscope.query.walk")

local M = {}

-- From this width on the table has columns of absolute amounts too.
local WIDE = 120
-- From this width on there is room for bars.
local BARS = 100
-- Where lines may be of any width: a stack can have tens of thousands of frames, and to indent
-- each by its depth would take gigabytes.
local INDENT_MOST = 200

--- The lines above the tables.
M.header = header_text.write

--- Whether lines are so wide that amounts stand beside shares.
function M.is_wide(columns) return not columns or columns >= WIDE end

--- Whether bars are drawn: the terminal shows them, and has room.
function M.has_bars(options)
  return options.bars and options.columns and options.columns >= BARS or false
end

local function group_cells(profile, weight, wide, row)
  row[#row + 1], row[#row + 2] = numbers.share_cells(profile, weight)
  if wide then row[#row + 1] = numbers.amount(profile.source, weight) end
end

local function amount_heading(profile)
  return profile.source and profile.source.unit == "ns" and "TIME" or "AMOUNT"
end

local function headings_of(profile, names, wide)
  local out, amount = {}, amount_heading(profile)
  for _, name in ipairs(names) do
    out[#out + 1] = name
    out[#out + 1] = profile.looks(0) and "95 %, in %" or ""
    if wide then out[#out + 1] = amount end
  end
  return out
end

--- A table of rows {self=, total=, label=function(room)}: shares of a profile with intervals, the
-- ones named ("SELF" and "TOTAL", or one name for self alone); `title` stands over the labels.
function M.shares(profile, names, rows, title, options, out)
  local wide, bars = M.is_wide(options.columns), M.has_bars(options)
  local headings, cells = headings_of(profile, names, wide), {}
  if bars then headings[#headings + 1] = "" end
  headings[#headings + 1] = title
  for i, row in ipairs(rows) do
    local line = {}
    group_cells(profile, row.self, wide, line)
    if #names > 1 then group_cells(profile, row.total, wide, line) end
    if bars then
      line[#line + 1] = numbers.bar(numbers.share(profile, row[options.sort] or row.self))
    end
    line[#line + 1] = row.label
    cells[i] = line
  end
  out("\n")
  numbers.table(headings, cells, options.columns, out, { [#headings - 1] = bars or nil })
end

--- The keys to show: sorted, at least options.min_percent of all, at most options.limit.  Gives
-- how many there are in all.
function M.shown(profile, ranked, weight_of, options)
  local out, least = {}, profile.tree.weight * (options.min_percent or 0) / 100
  for _, item in ipairs(ranked) do
    if #out >= options.limit then break end
    if weight_of(item) >= least then out[#out + 1] = item end
  end
  return out
end

--- Say how many rows are not shown.
function M.say_more(count, noun, options, out)
  if count <= 0 then return end
  out(("  and %s more %s%s (--limit%s)\n"):format(text.count(count), noun, count == 1 and "" or "s",
    (options.min_percent or 0) > 0 and ", --min-percent" or ""))
end

--- The function table: self and total of each, with 95 % intervals.
function M.functions(cap, profile, options, out)
  local costs, rows = profile.costs, {}
  local shown = M.shown(profile, profile.ranked, function(key) return costs.total[key] end, options)
  for i, key in ipairs(shown) do
    local what = keys_query.describe(cap, profile.keys, key)
    rows[i] = { self = costs.self[key], total = costs.total[key],
      label = function(room) return numbers.label(what, room) end }
  end
  M.shares(profile, { "SELF", "TOTAL" }, rows, "FUNCTION", options, out)
  M.say_more(#profile.ranked - #shown, "function", options, out)
end

--- How a node's depth is written before its name: past half of the line as a number, so that a
-- name has room.
function M.indent(depth, columns)
  local most = columns and math.floor(columns / 2) or INDENT_MOST
  if depth * 2 <= most then return (" "):rep(depth * 2) end
  local mark = ("(%d) "):format(depth)
  return (" "):rep(most - #mark) .. mark
end

--- Say what of a tree was left out.  One that stopped at the limit was not looked at to its end:
-- how many nodes are too small is not known.
function M.say_hidden(hidden, stopped, options, out)
  if stopped then
    out(("  and more (--limit%s)\n"):format(hidden > 0 and ", --min-percent" or ""))
  elseif hidden > 0 then
    out(("  %s under %s not shown (--min-percent)\n"):format(text.plural(hidden, "node"),
      ("%g %%"):format(options.min_percent)))
  end
end

--- The call tree, nodes of at least options.min_percent of all; at most options.tree_limit lines.
-- options.before (or nil) orders siblings (walk.lua); title stands over the names.
function M.tree(cap, profile, options, out, tree, title)
  tree = tree or profile.tree
  local columns, all = options.columns, tree.weight
  local wide, bars = M.is_wide(columns), M.has_bars(options)
  local function share(weight) return text.percent(all > 0 and weight / all or 0) end
  out("\n", text.right("TOTAL", 8), text.right("SELF", 8),
    wide and text.right(amount_heading(profile), 10) or "", bars and (" "):rep(12) or "", "  ",
    title or "CALL TREE", "\n")
  local lines = 0
  local hidden, stopped = walk.tree(tree, { least = all * options.min_percent / 100,
    before = options.before }, function(node, depth)
    if lines == options.tree_limit then return true end
    lines = lines + 1
    local total = walk.total(node, tree.total, tree.self)
    local figures = text.right(share(total), 8) .. text.right(share(tree.self[node]), 8)
      .. (wide and text.right(numbers.amount(profile.source, total), 10) or "")
      .. (bars and "  " .. text.left(numbers.bar(total / all), 10) or "") .. "  "
    local indent = M.indent(depth, columns)
    local room = columns and columns - text.width(figures) - #indent
    out(figures, indent, numbers.label(walk.describe(cap, profile.keys, tree, node), room), "\n")
  end, function() end)
  M.say_hidden(hidden, stopped, options, out)
end

--- The whole report: out(...) gets pieces of text.  options: tree (a tree to show instead of the
-- function table: true, or one of tree.lua's shape), title, limit, tree_limit, min_percent,
-- columns, bars.
function M.write(cap, profile, options, out)
  M.header(profile, options.columns, out)
  if not options.tree and profile.tree.weight == 0 then zones_text.write(cap, options, out) end
  if profile.tree.weight == 0 then return end
  if options.tree then
    M.tree(cap, profile, options, out, options.tree ~= true and options.tree or nil, options.title)
  else
    M.functions(cap, profile, options, out)
    zones_text.write(cap, options, out)
  end
end

return M
