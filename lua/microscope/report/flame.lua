--- flame.lua - a call tree as a flame graph: one HTML file that needs nothing else.
--
-- The page holds the tree as JSON and the script of flame_page.lua; it asks no network, and a
-- policy in it forbids the browser to.  Names are bytes from outside: they are escaped as for a
-- terminal, then as JSON in which no character ends the element that holds it, and the script
-- shows them as text only.

local ends_query = require("microscope.query.ends")
local json = require("microscope.report.json")
local keys_query = require("microscope.query.keys")
local page = require("microscope.report.flame_page")
local text = require("microscope.report.text")
local tree_query = require("microscope.query.tree")

local M = {}

local NONE, ROOTS = tree_query.NONE, tree_query.ROOTS

-- Nodes under this share of all are left out: less than a tenth of a pixel on a wide screen.
M.MIN_SHARE = 0.00005

local HTML = { ["<"] = "&lt;", [">"] = "&gt;", ["&"] = "&amp;", ['"'] = "&quot;" }

local function html(value) return (text.escape(value):gsub('[<>&"]', HTML)) end

-- Names and modules, each once: an index by what stands there.
local function namer(cap, keys)
  local names, by_text, by_key = {}, {}, {}
  local function index_of(name, module)
    local full = name .. "\0" .. module
    if not by_text[full] then
      names[#names + 1] = json.array { name, module }
      by_text[full] = #names - 1
    end
    return by_text[full]
  end
  local function of_key(key)
    if not by_key[key] then
      local what = keys_query.describe(cap, keys, key)
      local name = text.escape(what.name)
      if what.file then
        name = name .. " " .. text.escape(text.last_part(what.file)) .. ":" .. (what.line or "?")
      end
      by_key[key] = index_of(name, text.escape(what.module))
    end
    return by_key[key]
  end
  return names, of_key, function(end_code)
    return index_of("[" .. ends_query.reason(end_code) .. "]", "")
  end
end

local function by_weight(tree)
  return function(a, b)
    if tree.total[a] ~= tree.total[b] then return tree.total[a] > tree.total[b] end
    return a < b
  end
end

-- The children of a node that are large enough, the heaviest last, as they are taken from the
-- end; and how many were left out.
local function children_of(tree, first, next_one, node, least)
  local out, hidden, child = {}, 0, first[node]
  while child ~= NONE do
    if tree.total[child] >= least then out[#out + 1] = child else hidden = hidden + 1 end
    child = next_one[child]
  end
  return out, hidden
end

-- What stands at the top: what whole stacks, and those whose end is not stated, begin with, and the
-- roots of those that end short.
local function tops(tree, first, next_one, least)
  local out, hidden = {}, 0
  for code = 0, ROOTS - 1 do
    if tree.total[code] > 0 and ends_query.is_silent(code) then
      local children, more = children_of(tree, first, next_one, code, least)
      for _, child in ipairs(children) do out[#out + 1] = child end
      hidden = hidden + more
    elseif tree.total[code] > 0 then
      out[#out + 1] = code
    end
  end
  return out, hidden
end

-- The tree in the order in which it is drawn: {name, parent's place, total, self} a node.  An
-- explicit stack, as stacks are as deep as programs make them.
local function flatten(tree, of_key, of_end, least)
  local first, next_one = tree_query.children(tree)
  local out, order = {}, by_weight(tree)
  local todo, hidden = tops(tree, first, next_one, least)
  table.sort(todo, function(a, b) return order(b, a) end)
  for i, node in ipairs(todo) do todo[i] = { node, 0 } end
  while #todo > 0 do
    local node, parent = unpack(table.remove(todo))
    local name = node < ROOTS and of_end(node) or of_key(tree.key[node])
    out[#out + 1] = { name, parent, tree.total[node], tree.self[node] }
    local place = #out
    local children, more = children_of(tree, first, next_one, node, least)
    hidden = hidden + more
    table.sort(children, order)
    for i = #children, 1, -1 do todo[#todo + 1] = { children[i], place } end
  end
  return out, hidden
end

-- JSON within an element of HTML.
local function embed(value)
  return (json.encode(value):gsub("[<>&]", function(c) return ("\\u%04x"):format(c:byte()) end))
end

local function write_nodes(nodes, out)
  out('"nodes":[')
  for i, node in ipairs(nodes) do
    out(i > 1 and ",\n" or "\n", ("%d,%d,%.17g,%.17g"):format(unpack(node)))
  end
  out("]")
end

--- Write the page through out(...).  options: title, subtitle, unit ("ns", "cycles", "bytes",
-- "count") and min_share (M.MIN_SHARE).
function M.write(cap, keys, tree, options, out)
  local names, of_key, of_end = namer(cap, keys)
  local least = tree.weight * (options.min_share or M.MIN_SHARE)
  local nodes, hidden = flatten(tree, of_key, of_end, least)
  local title = options.title or "flame graph"
  out(page.HEAD_BEFORE_TITLE, html(title), page.HEAD_AFTER_TITLE, html(title), page.BEFORE_SUBTITLE,
    html(options.subtitle or ""), page.BEFORE_DATA)
  out('{"unit":', embed(options.unit or "ns"), ',"total":', ("%.17g"):format(tree.weight),
    ',"hidden":', ("%d"):format(hidden), ',"names":', embed(json.array(names)), ",\n")
  write_nodes(nodes, out)
  out("}", page.AFTER_DATA)
end

return M
