--- transform.lua - see stacks in another way: each transform makes a new tree of a tree.
--
--   collapse   a function that calls itself, directly or through others, is cut back to its
--              first call: "visit children visit children work" reads "visit children work".
--              With lines, the frame that stays has the line that runs.
--   merge      a function is hidden; what it ran itself goes to its caller
--   drop       every sample through a function is removed
--
-- Nothing is lost in silence: what was removed, and what was moved, is given beside the tree, in
-- the source's unit.  A transform's functions are a mask: FFI u8[keys.count + keys.ENDS], 1 for
-- the keys that are meant (symbols.lua makes one of a name).

local bit = require("bit")
local ffi = require("ffi")

local costs_query = require("microscope.query.costs")
local keys_query = require("microscope.query.keys")
local remap = require("microscope.query.remap")
local tree_query = require("microscope.query.tree")

local M = {}

local ROOTS = tree_query.ROOTS
local band, rshift = bit.band, bit.rshift
local hash = remap.hash

local u32, u8 = ffi.typeof("uint32_t[?]"), ffi.typeof("uint8_t[?]")

-- Walk through all nodes.  path[d] is the new tree's node at depth d above the node that is
-- entered, and at[g] a depth at which function g was put last: it is on the path when that is not
-- past the caller's depth and still g's.  A node puts one node on the path and one function, and
-- takes both back when it is left, so each step costs the same however deep the stack is.
local function cut(events, count, parent, key, group, mask, s, room_parent, room_key, slots,
    slot_mask, made)
  local map, depth, path, at, cuts = s.map, s.depth, s.path, s.at, s.cuts
  local saved_node, saved_at = s.saved_node, s.saved_at
  local i, missed = 0, 0
  while i < count do
    local event = events[i]
    local node = rshift(event, 1)
    local k = key[node]
    local g = group[k]
    if band(event, 1) == 0 then
      local caller = map[parent[node]]
      local d, to, again = depth[caller], at[g], 0
      path[d] = caller
      if to ~= 0 and to <= d and mask[k] ~= 0 and group[room_key[path[to]]] == g then
        again = 1
      else
        to = d + 1
      end
      local up = path[to - 1]
      local slot = band(hash(up, k) + missed, slot_mask)
      local found = slots[slot]
      if found == 0 then
        found = made
        made = made + 1
        slots[slot] = found
        room_parent[found] = up
        room_key[found] = k
        depth[found] = to
      end
      if room_parent[found] == up and room_key[found] == k then
        map[node] = found
        cuts[node] = again
        saved_node[node], saved_at[node] = path[to], at[g]
        path[to], at[g] = found, to
        missed = 0
        i = i + 1
      else
        missed = missed + 1
      end
    else
      local to = depth[map[node]]
      path[to], at[g] = saved_node[node], saved_at[node]
      i = i + 1
    end
  end
  return made
end

-- The weight of what lies under cut nodes, each stack once; marks spread downwards.
local function weigh_cuts(parent, cuts, total, count)
  local weight = 0
  for node = ROOTS, count - 1 do
    if cuts[parent[node]] ~= 0 then
      cuts[node] = 1
    elseif cuts[node] ~= 0 then
      weight = weight + total[node]
    end
  end
  return weight
end

-- How deep the deepest node lies; depth is room for the depth of each.
local function deepest(parent, count, depth)
  local most = 0
  for node = ROOTS, count - 1 do
    local d = depth[parent[node]] + 1
    depth[node] = d
    if d > most then most = d end
  end
  return most
end

--- Cut stacks back to the first call of each function of the mask (nil: of any function) that
-- they call again.  Gives the new tree and the weight of the stacks that were cut.
function M.collapse(tree, keys, mask, stacks)
  if not mask then
    mask = u8(keys.count + keys_query.ENDS)
    ffi.fill(mask, keys.count + keys_query.ENDS, 1)
  end
  local count = tree.count
  local events, events_count = tree_query.events(tree)
  local depth = u32(count)
  local most = deepest(tree.parent, count, depth)
  local room = remap.room(count)
  local s = { map = u32(count), depth = depth, path = u32(most + 2), at = u32(keys.groups + 1),
    cuts = u8(count), saved_node = u32(count), saved_at = u32(count) }
  for root = 0, ROOTS - 1 do s.map[root] = root end
  room.made = cut(events, events_count, tree.parent, tree.key, keys.group, mask, s, room.parent,
    room.key, room.slots, room.mask, room.made)
  return remap.tree(room, tree, s.map, stacks), weigh_cuts(tree.parent, s.cuts, tree.total, count)
end

local function apply(tree, keys, mask, what, stacks)
  local action = u8(keys.count + keys_query.ENDS)
  for key = 0, keys.count - 1 do
    if mask[key] ~= 0 then action[key] = what end
  end
  local room = remap.room(tree.count)
  local map = remap.lead(room, tree, costs_query.identity(keys), action)
  return remap.tree(room, tree, map, stacks)
end

local function weigh_masked(key, mask, self, count)
  local weight = 0
  for node = ROOTS, count - 1 do
    if mask[key[node]] ~= 0 then weight = weight + self[node] end
  end
  return weight
end

--- Hide the functions of the mask.  Gives the new tree and what they ran themselves, which their
-- callers have now (where they had none, the root has it).
function M.merge(tree, keys, mask, stacks)
  local moved = weigh_masked(tree.key, mask, tree.self, tree.count)
  return apply(tree, keys, mask, remap.MERGE, stacks), moved
end

--- Remove every sample through a function of the mask.  Gives the new tree and what was removed:
-- its weight and the tree's are what the given tree weighs.
function M.drop(tree, keys, mask, stacks)
  local out = apply(tree, keys, mask, remap.DROP, stacks)
  return out, tree.weight - out.weight
end

M._cut, M._weigh_cuts, M._deepest, M._weigh_masked = cut, weigh_cuts, deepest, weigh_masked
return M
