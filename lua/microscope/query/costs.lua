--- costs.lua - what each key, or each class of keys, costs: itself, and with all it called.
--
-- costs = { self=, total= }: FFI double[classes], in the source's unit.  A stack in which a
-- function stands several times (recursion) counts once in that function's total.
--
-- A class is what keys are put together by: a map is FFI u32[keys.count + keys.ENDS], the class
-- of each key.  Without one each key is a class of its own.

local ffi = require("ffi")

local keys_query = require("microscope.query.keys")
local tree_query = require("microscope.query.tree")

local M = {}

local ROOTS = tree_query.ROOTS

local u32, f64, u8 = ffi.typeof("uint32_t[?]"), ffi.typeof("double[?]"), ffi.typeof("uint8_t[?]")

local function add_self(key, map, self, count, out)
  for node = ROOTS, count - 1 do
    local class = map[key[node]]
    out[class] = out[class] + self[node]
  end
end

-- Nodes in the order of a walk: what is below a node comes right after it, up to past[node].  A
-- class's outermost nodes, those past the end of the one before, get a 1.
local function mark_outermost(order, past, count, key, map, ending, mark)
  for i = 0, count - 1 do
    local node = order[i]
    local class = map[key[node]]
    if i >= ending[class] then
      mark[node] = 1
      ending[class] = past[node]
    end
  end
end

local function add_totals(key, map, total, mark, count, out)
  for node = ROOTS, count - 1 do
    if mark[node] ~= 0 then
      local class = map[key[node]]
      out[class] = out[class] + total[node]
    end
  end
end

--- A map in which each key is a class of its own.
function M.identity(keys)
  local count = keys.count + keys_query.ENDS
  local map = u32(count)
  for key = 0, count - 1 do map[key] = key end
  return map
end

--- FFI u8[tree.count]: 1 for the nodes that have none of their class above them.
function M.outermost(tree, map, classes)
  local ending, mark = u32(classes + 1), u8(tree.count)
  local order, count, past = tree_query.preorder(tree)
  mark_outermost(order, past, count, tree.key, map, ending, mark)
  return mark
end

--- The costs of all keys in a tree (tree.lua), or of the `classes` classes of a map.
function M.flat(tree, keys, map, classes)
  if not map then
    map, classes = M.identity(keys), keys.count + keys_query.ENDS
  end
  local out = { self = f64(classes + 1), total = f64(classes + 1) }
  add_self(tree.key, map, tree.self, tree.count, out.self)
  add_totals(tree.key, map, tree.total, M.outermost(tree, map, classes), tree.count, out.total)
  return out
end

--- The keys (or classes: 0 to count - 1) that cost anything, most of `by` first ("self", the
-- default, or "total"); then most of the other, then by number.
function M.ranked(costs, count, by)
  local out = {}
  local main, other = costs.self, costs.total
  if by == "total" then main, other = other, main end
  for key = 0, count - 1 do
    if costs.total[key] > 0 then out[#out + 1] = key end
  end
  table.sort(out, function(a, b)
    if main[a] ~= main[b] then return main[a] > main[b] end
    if other[a] ~= other[b] then return other[a] > other[b] end
    return a < b
  end)
  return out
end

M._add_self, M._mark_outermost, M._add_totals = add_self, mark_outermost, add_totals
return M
