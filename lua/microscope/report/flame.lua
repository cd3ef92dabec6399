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
local walk = require("microscope.query.walk")

local M = {}

local ROOTS = tree_query.ROOTS

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

-- The tree in the order in which it is drawn: {name, parent's place, total, self} a node; and how
-- many were left out.
local function flatten(tree, of_key, of_end, least)
  local out, place = {}, {}
  local hidden = walk.tree(tree, { least = least }, function(node, depth)
    local name = node < ROOTS and of_end(node) or of_key(tree.key[node])
    out[#out + 1] = { name, depth > 0 and place[depth - 1] or 0,
      walk.total(node, tree.total, tree.self), tree.self[node] }
    place[depth] = #out
  end, function() end)
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
