--- focus.lua - one function: who calls it, what it calls, and all below it.
--
-- Callers and callees are calls: a caller's weight is that of the samples in which it calls the
-- function, a callee's of those in which the function calls it.  A sample counts once for each,
-- however often the call stands in its stack, so without recursion the callers' weights are the
-- function's total, and its self and the callees' together are too.

local ffi = require("ffi")

local costs_query = require("microscope.query.costs")
local keys_query = require("microscope.query.keys")
local remap = require("microscope.query.remap")
local tree_query = require("microscope.query.tree")

local M = {}

local ROOTS = tree_query.ROOTS

local u32, f64, u8 = ffi.typeof("uint32_t[?]"), ffi.typeof("double[?]"), ffi.typeof("uint8_t[?]")

-- Nodes in the order of a walk (tree.preorder).  A call's outermost nodes, those past the end of
-- the one before, add their totals: `from` and `to` hold where the last one of each caller's and
-- each callee's ends.  Roots have keys here, those of ends.
local function add_calls(order, past, count, parent, key, mask, total, from, to, callers, callees)
  for i = 0, count - 1 do
    local node = order[i]
    local k, caller = key[node], key[parent[node]]
    if mask[k] ~= 0 and i >= from[caller] then
      callers[caller] = callers[caller] + total[node]
      from[caller] = past[node]
    end
    if mask[caller] ~= 0 and i >= to[k] then
      callees[k] = callees[k] + total[node]
      to[k] = past[node]
    end
  end
end

-- All keys of the mask are one class, 1; all others are 0.
local function own_map(keys, mask)
  local map = u32(keys.count + keys_query.ENDS)
  for key = 0, keys.count - 1 do map[key] = mask[key] end
  return map
end

local function rows_of(weights, count)
  local out = {}
  for key = 0, count - 1 do
    if weights[key] > 0 then out[#out + 1] = { key = key, weight = weights[key] } end
  end
  table.sort(out, function(a, b)
    if a.weight ~= b.weight then return a.weight > b.weight end
    return a.key < b.key
  end)
  return out
end

--- The functions of a mask (symbols.lua) in a tree, taken as one:
-- {self=, total=, callers=, callees=}: weights in the source's unit, and lists of
-- {key=, weight=}, most first.  A caller's key may be keys.count + an end: nothing that is known
-- calls it there.
function M.of(tree, keys, mask)
  local count = keys.count + keys_query.ENDS
  local costs = costs_query.flat(tree, keys, own_map(keys, mask), 2)
  local from, to, callers, callees = u32(count), u32(count), f64(count), f64(count)
  local key = u32(tree.count)
  ffi.copy(key, tree.key, tree.count * 4)
  for root = 0, ROOTS - 1 do key[root] = keys.count + root end
  local order, nodes, past = tree_query.preorder(tree)
  add_calls(order, past, nodes, tree.parent, key, mask, tree.total, from, to, callers, callees)
  return {
    self = costs.self[1],
    total = costs.total[1],
    callers = rows_of(callers, count),
    callees = rows_of(callees, count),
  }
end

--- The tree of all that runs in the mask's functions: its tops, under root 1, are their outermost
-- calls, wherever they are called from.
function M.subtree(tree, keys, mask, stacks)
  local action = u8(keys.count + keys_query.ENDS)
  for key = 0, keys.count - 1 do
    if mask[key] ~= 0 then action[key] = remap.START end
  end
  local room = remap.room(tree.count)
  local map = remap.lead(room, tree, costs_query.identity(keys), action, true)
  return remap.tree(room, tree, map, stacks)
end

local function take_totals(key, mask, mark, total, count, out)
  for node = ROOTS, count - 1 do
    if mask[key[node]] ~= 0 and mark[node] ~= 0 then out[node] = total[node] end
  end
end

--- What the outermost calls of the mask's functions weigh: FFI double[tree.count], for
-- invert.build to tell who calls them.
function M.calls(tree, keys, mask)
  local out = f64(tree.count)
  take_totals(tree.key, mask, costs_query.outermost(tree, own_map(keys, mask), 2), tree.total,
    tree.count, out)
  return out
end

M._add_calls, M._take_totals = add_calls, take_totals
return M
