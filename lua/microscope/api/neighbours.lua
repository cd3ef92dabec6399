--- neighbours.lua - who calls a function and whom it calls, and paths through a tree.

local ffi = require("ffi")

local tree_query = require("microscope.query.tree")

local M = {}

local u8, f64 = ffi.typeof("uint8_t[?]"), ffi.typeof("double[?]")
local ROOTS = tree_query.ROOTS

-- Where a node stands: not under the function, one of its own calls from outside (with calls of
-- itself right under it), or further below.
local OUTSIDE, CALL, BELOW = 0, 1, 2

-- callers[k] and callees[k] get what passes between key k and the function; slot `past` is the
-- callers' for roots.  Gives the function's own time and count.
local function split(parent, key, self, self_count, total, total_count, count, mask, place, past,
    callers, callers_count, callees, callees_count)
  local own, own_count = 0, 0
  for node = ROOTS, count - 1 do
    local up, k = parent[node], key[node]
    local above = up < ROOTS and OUTSIDE or place[up]
    if above == BELOW then
      place[node] = BELOW
    elseif mask[k] ~= 0 then
      place[node] = CALL
      own = own + self[node]
      own_count = own_count + self_count[node]
      if above == OUTSIDE then
        local caller = up < ROOTS and past or key[up]
        callers[caller] = callers[caller] + total[node]
        callers_count[caller] = callers_count[caller] + total_count[node]
      end
    elseif above == CALL then
      place[node] = BELOW
      callees[k] = callees[k] + total[node]
      callees_count[k] = callees_count[k] + total_count[node]
    end
  end
  return own, own_count
end

local function entries(weight, samples, count)
  local out = {}
  for k = 0, count do
    if weight[k] > 0 then
      out[#out + 1] = { key = k < count and k or nil, weight = weight[k], samples = samples[k] }
    end
  end
  table.sort(out, function(a, b)
    if a.weight ~= b.weight then return a.weight > b.weight end
    return (a.key or -1) < (b.key or -1)
  end)
  return out
end

--- Callers and callees of a key, or of those of a mask; see M.neighbours of microscope.
function M.of(tree, keys, which)
  local size, mask = keys.count + 1, which
  if type(which) == "number" then
    mask = u8(size)
    mask[which] = 1
  end
  local callers, callers_count, callees, callees_count = f64(size), f64(size), f64(size), f64(size)
  local own, own_count = split(tree.parent, tree.key, tree.self, tree.self_count, tree.total,
    tree.total_count, tree.count, mask, u8(tree.count), keys.count, callers, callers_count, callees,
    callees_count)
  local out = { self = own, self_samples = own_count, total = own, total_samples = own_count,
    callers = entries(callers, callers_count, keys.count),
    callees = entries(callees, callees_count, keys.count) }
  for _, callee in ipairs(out.callees) do
    out.total = out.total + callee.weight
    out.total_samples = out.total_samples + callee.samples
  end
  return out
end

--- The nodes from the top to a node, and the end at whose root they stand.
function M.path(tree, node)
  local out = {}
  while node >= ROOTS do
    out[#out + 1] = node
    node = tree.parent[node]
  end
  local nodes = {}
  for i = #out, 1, -1 do nodes[#nodes + 1] = out[i] end
  return nodes, node
end

M._split = split
return M
