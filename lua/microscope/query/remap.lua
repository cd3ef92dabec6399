--- remap.lua - make a tree from the nodes of others: the loop that transforms share.
--
-- Each node of a tree is led to a node of a new one, whose nodes are told apart by parent and
-- key; nodes that come to be the same become one.

local bit = require("bit")
local ffi = require("ffi")

local tree_query = require("microscope.query.tree")

local M = {}

local NONE = tree_query.NONE
local ROOTS = tree_query.ROOTS
local bxor, band, rshift, tobit = bit.bxor, bit.band, bit.rshift, bit.tobit

local u32, f64 = ffi.typeof("uint32_t[?]"), ffi.typeof("double[?]")

--- What becomes of nodes with a key: they stay; go to their caller; go, with all below; are the
-- top of what stays, under root 1, where nothing above them stays.
M.KEEP, M.MERGE, M.DROP, M.START = 0, 1, 2, 3
local MERGE, DROP, START = M.MERGE, M.DROP, M.START

-- Factors as tree.lua's: products of ids up to 2^27 are exact in a double.
local NODE_FACTOR, KEY_FACTOR = 0x9e3779, 0x85ebcb

local function hash(node, key)
  local h = bxor(tobit(node * NODE_FACTOR), tobit(key * KEY_FACTOR))
  return bxor(h, rshift(h, 15))
end
--- A hash of a parent and a key, of 32 bits.
M.hash = hash

-- Nodes come in ascending order, so a node's parent has been led to its own.  A node's first child
-- is found through only[node], the others through slots: see tree.lua's merge.
local function lead(parent, key, count, rekey, action, map, parents, keys, only, slots, mask, made)
  local i, missed = ROOTS, 0
  while i < count do
    local up, was = map[parent[i]], key[i]
    local what = action[was]
    local skip = true
    if up == NONE then
      if what == START then
        up = 1
        skip = false
      else
        map[i] = NONE
      end
    elseif what == MERGE then
      map[i] = up
    elseif what == DROP then
      map[i] = NONE
    else
      skip = false
    end
    if skip then
      i = i + 1
    else
      local k, first = rekey[was], only[up]
      if first == 0 then
        only[up] = made
        parents[made] = up
        keys[made] = k
        map[i] = made
        made = made + 1
        i = i + 1
      elseif keys[first] == k then
        map[i] = first
        i = i + 1
      else
        local at = band(hash(up, k) + missed, mask)
        local found = slots[at]
        if found == 0 then
          found = made
          made = made + 1
          slots[at] = found
          parents[found] = up
          keys[found] = k
        end
        if parents[found] == up and keys[found] == k then
          map[i] = found
          i = i + 1
          missed = 0
        else
          missed = missed + 1
        end
      end
    end
  end
  return made
end

-- What nodes weigh, to where they were led.
local function move(map, self, count, out)
  for i = 0, count - 1 do
    local to = map[i]
    if to ~= NONE then out[to] = out[to] + self[i] end
  end
end

-- node_of of stacks, through a map of nodes.
local function compose(node_of, map, stacks, out)
  for i = 0, stacks - 1 do
    local node = node_of[i]
    out[i] = node == NONE and NONE or map[node]
  end
end

--- Room for a new tree of up to `most` nodes: {parent=, key=, made=, only=, slots=, mask=}.
function M.room(most)
  local room = tree_query.room_for(most)
  local out = { parent = u32(most), key = u32(most), only = u32(most), slots = u32(room),
    mask = room - 1, made = ROOTS }
  ffi.fill(out.parent, ROOTS * 4, 0xff)
  ffi.fill(out.key, ROOTS * 4, 0xff)
  return out
end

--- Lead a tree's nodes into a room; rekey is the new key of each key, action (FFI u8) what
-- becomes of nodes that have it.  Roots stay, unless `no_roots`: then only what a START is above
-- of stays.  Gives the map: FFI u32[tree.count], NONE for what is gone.
function M.lead(room, tree, rekey, action, no_roots)
  local map = u32(tree.count)
  for root = 0, ROOTS - 1 do map[root] = no_roots and NONE or root end
  room.made = lead(tree.parent, tree.key, tree.count, rekey, action, map, room.parent, room.key,
    room.only, room.slots, room.mask, room.made)
  return map
end

--- The weights of a tree's nodes at where a map leads them: FFI double[count].
function M.weights(tree, map, count)
  local out = f64(count)
  move(map, tree.self, tree.count, out)
  return out
end

--- The tree in a room, with the nodes of another led there by a map; stacks follow.
function M.tree(room, tree, map, stacks)
  local node_of
  if tree.node_of then
    node_of = u32(stacks + 1)
    compose(tree.node_of, map, stacks, node_of)
  end
  return tree_query.of(room.parent, room.key, M.weights(tree, map, room.made), room.made, node_of)
end

M._lead, M._move, M._compose = lead, move, compose
return M
