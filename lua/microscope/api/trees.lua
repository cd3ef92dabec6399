--- trees.lua - trees of the public API: query/tree.lua's, which also count samples.
--
-- Beside weights a tree has self_count and total_count, by node; transforms keep them.  A row may
-- stand for several samples: with a period its weight tells how many; without one a row is one.

local ffi = require("ffi")

local costs_query = require("microscope.query.costs")
local focus = require("microscope.query.focus")
local samples_query = require("microscope.query.samples")
local transform = require("microscope.query.transform")
local tree_query = require("microscope.query.tree")

local M = {}

local f64 = ffi.typeof("double[?]")

local NONE = tree_query.NONE
-- Sources are u8 in the schema and a capture may have none: no sample has this one.
local NO_SOURCE = 256

-- What stacks have, to their nodes; stacks that were dropped have none.
local function add_to_nodes(values, node_of, stacks, out)
  for i = 0, stacks - 1 do
    local node = node_of[i]
    if node ~= NONE then out[node] = out[node] + values[i] end
  end
end

-- A tree with its counts, from how many samples each stack has.
local function with_counts(tree, counts, stacks, unit, period)
  local self, total = f64(tree.count), f64(tree.count)
  add_to_nodes(counts, tree.node_of, stacks, self)
  ffi.copy(total, self, tree.count * 8)
  tree_query.add_up(tree.parent, tree.count, total)
  tree.self_count, tree.total_count, tree.unit, tree.period = self, total, unit, period
  tree.samples = 0
  for root = 0, tree_query.ROOTS - 1 do tree.samples = tree.samples + total[root] end
  tree._counts, tree._stacks = counts, stacks
  return tree
end

-- How many samples each stack has.
local function counts_of(cap, weights, selection, source, filter)
  local period = selection.period or 0
  if period == 0 then return samples_query.counts(cap, source, filter) end
  local stacks = cap:rows("stacks")
  local out = f64(stacks + 1)
  samples_query.divide(weights.weight, period, stacks, out)
  return out
end

--- The call tree of a selection; see M.tree of microscope.
function M.build(cap, keys, selection)
  local source = selection.source or NO_SOURCE
  local function filter(first) return selection.rows + first end
  local weights = samples_query.weights(cap, source, filter)
  local tree = tree_query.build(cap, keys, weights)
  if not tree then return nil, "its stacks have more frames than a tree can hold" end
  tree = with_counts(tree, counts_of(cap, weights, selection, source, filter), cap:rows("stacks"),
    selection.unit, selection.period)
  -- The filter's pointers do not keep the selection's rows alive: the tree does.
  tree._selection = selection
  return tree
end

local KINDS = { collapse = transform.collapse, merge = transform.merge, drop = transform.drop }

--- One transform of a tree; see M.transform of microscope.
function M.transform(tree, keys, kind, mask)
  local apply = KINDS[kind]
  if not apply then
    error(("transform: '%s' is none of collapse, merge, drop"):format(tostring(kind)), 3)
  end
  if not mask and kind ~= "collapse" then error("transform: " .. kind .. " needs a mask", 3) end
  if not tree.node_of then error("transform: this tree has no stacks any more", 3) end
  local out, weight = apply(tree, keys, mask, tree._stacks)
  return with_counts(out, tree._counts, tree._stacks, tree.unit, tree.period), weight
end

--- What runs in and below a mask's functions; see M.subtree of microscope.
function M.subtree(tree, keys, mask)
  return with_counts(focus.subtree(tree, keys, mask, tree._stacks), tree._counts, tree._stacks,
    tree.unit, tree.period)
end

--- Costs by key, in weights and samples.
function M.costs(tree, keys)
  local costs = costs_query.flat(tree, keys)
  if not tree.self_count then return costs end
  local counts = costs_query.flat({ count = tree.count, parent = tree.parent, key = tree.key,
    self = tree.self_count, total = tree.total_count }, keys)
  costs.self_count, costs.total_count = counts.self, counts.total
  return costs
end

M._add_to_nodes = add_to_nodes
return M
