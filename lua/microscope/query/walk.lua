--- walk.lua - go through a tree from the top, most first, without recursion: stacks are as deep
-- as programs make them.

local ends_query = require("microscope.query.ends")
local keys_query = require("microscope.query.keys")
local tree_query = require("microscope.query.tree")

local M = {}

local NONE, ROOTS = tree_query.NONE, tree_query.ROOTS

local function sorted(nodes, before)
  table.sort(nodes, before)
  return nodes
end

-- Children of a node that are to be seen.
local function children_of(first, next_one, node, options)
  local out, hidden = {}, 0
  local child = first[node]
  while child ~= NONE do
    local weight = options.weight(child)
    if weight > 0 then
      if weight >= options.least then out[#out + 1] = child else hidden = hidden + 1 end
    end
    child = next_one[child]
  end
  return sorted(out, options.before), hidden
end

-- What stands at the tree's top: the roots of stacks that end short, and what whole stacks, and
-- those whose end is not stated, begin with.  Where these have no frames (left), their root stands
-- for them.
local function tops(first, next_one, options)
  local out, hidden = {}, 0
  local function take(node, weight)
    if weight <= 0 then return end
    if weight >= options.least then out[#out + 1] = node else hidden = hidden + 1 end
  end
  for root = 0, ROOTS - 1 do
    if ends_query.is_silent(root) then
      local children, more = children_of(first, next_one, root, options)
      for _, child in ipairs(children) do out[#out + 1] = child end
      hidden = hidden + more
      take(root, options.self(root))
    else
      take(root, options.weight(root))
    end
  end
  return sorted(out, options.before), hidden
end

--- What a node weighs with all that is shown below it: `total` (the tree's, or another array of
-- it), and for a root under which nothing is shown (of whole stacks), `self`.
function M.total(node, total, self)
  return node < ROOTS and ends_query.is_silent(node) and self[node] or total[node]
end

local function defaults(tree, options)
  local weight = options.weight or function(node)
    return M.total(node, tree.total, tree.self)
  end
  return {
    least = options.least or 0,
    weight = weight,
    self = options.self or function(node) return tree.self[node] end,
    before = options.before or function(a, b)
      local x, y = weight(a), weight(b)
      if x ~= y then return x > y end
      return a < b
    end,
  }
end

--- Walk a tree (tree.lua): enter(node, depth, index) and leave(node, depth) are called for each
-- node that weighs anything and at least options.least; enter may return true to stop.  Gives how
-- many nodes were left out for their weight, theirs below not counted; and whether it stopped.
-- options (all may be nil): least (0), weight(node) (the node's total), self(node) (its self),
-- before(a, b): the order of siblings (most weight first).
function M.tree(tree, options, enter, leave)
  options = defaults(tree, options)
  local first, next_one = tree_query.children(tree)
  local list, hidden = tops(first, next_one, options)
  local path = { { nodes = list, at = 0 } }
  while #path > 0 do
    local level, depth = path[#path], #path - 1
    if level.at > 0 then leave(level.nodes[level.at], depth) end
    level.at = level.at + 1
    local node = level.nodes[level.at]
    if node then
      if enter(node, depth, level.at) then return hidden, true end
      -- What is under a silent root has stood at the top.
      local children, more = {}, 0
      if node >= ROOTS or not ends_query.is_silent(node) then
        children, more = children_of(first, next_one, node, options)
      end
      hidden = hidden + more
      path[#path + 1] = { nodes = children, at = 0 }
    else
      path[#path] = nil
    end
  end
  return hidden, false
end

--- What a node of a tree is called: as keys.describe, a root by its end.
function M.describe(cap, keys, tree, node)
  if node < ROOTS then return keys_query.describe(cap, keys, keys.count + node) end
  return keys_query.describe(cap, keys, tree.key[node])
end

return M
