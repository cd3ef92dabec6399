--- tree.lua - the call tree: stacks whose frames have the same keys are one path.
--
-- tree = {
--   count   = number of nodes; a node's parent has a lower number
--   parent  = FFI u32[count], key = FFI u32[count]
--   self, total = FFI double[count]: weight that ran in the node, and in it and all below, in
--             the source's unit
--   weight  = of all nodes
--   node_of = FFI u32[stacks]: each stack's node; NONE for stacks that were dropped
-- }
-- Nodes 0 to 255 are roots: node e stands for the stacks that end with reason e (a u8 in the
-- schema), whose key says nothing.  Others have a parent and a key (keys.lua).

local bit = require("bit")
local ffi = require("ffi")

local M = {}

M.ROOTS = 256

-- Each inlined frame of each stack may be a node, so a few rows can stand for a great many: a
-- capture of a megabyte for billions.  This many take some 6 GiB; a recording has a thousandth.
M.MOST = 2 ^ 27

local NONE = 0xffffffff

-- Factors of the hash of a node and a key: odd, of 24 bits, so that products of ids up to 2^27 are
-- exact in a double and in reach of bit.tobit (2^51).
local NODE_FACTOR, KEY_FACTOR = 0x9e3779, 0x85ebcb
local bxor, band, rshift, tobit = bit.bxor, bit.band, bit.rshift, bit.tobit

local u32, f64 = ffi.typeof("uint32_t[?]"), ffi.typeof("double[?]")

-- The most nodes that a tree can have: a frame is a node, at most.
local function most_nodes(location, stacks, start)
  local count = M.ROOTS
  for i = 0, stacks - 1 do
    local l = location[i]
    if l ~= NONE then count = count + start[l + 1] - start[l] end
  end
  return count
end

-- The node of each stack.  A stack's parent has a lower number (validated), so its node is known.
-- A node's first child is found through only[node]; its others through slots, an open-addressed
-- table of nodes by parent and key (0 is free: roots are no one's children).  Most nodes have one
-- child, and looking in slots misses the cache.  One flat loop without calls or constant states, as
-- LuaJIT leaves short inner loops to its interpreter and gives up on a step whose outcome it knows:
-- a step looks at one slot, the one after `missed` others, for frame f of stack i.  Gives how many
-- nodes there are, and how many more slots may be taken: 0 when it stopped for want of them.
local function merge(parent, location, ends, stacks, start, frame, parents, keys, only, slots, mask,
    spare, node_of)
  local i, f, stop, node, missed, count = -1, 0, 0, 0, 0, M.ROOTS
  while i < stacks and spare > 0 do
    if f == stop then
      -- All frames of stack i have their node; the next stack.  Past the last, row 0 will do.
      if i >= 0 then node_of[i] = node end
      i = i + 1
      local row = i < stacks and i or 0
      local up, l = parent[row], location[row]
      if up == NONE then
        node = ends[row]
        f, stop = 0, 0
      else
        node = node_of[up]
        f, stop = start[l], start[l + 1]
      end
    else
      local key, first = frame[f], only[node]
      if first == 0 then
        only[node] = count
        parents[count] = node
        keys[count] = key
        node = count
        count = count + 1
        f = f + 1
      elseif keys[first] == key then
        node = first
        f = f + 1
      else
        local h = bxor(tobit(node * NODE_FACTOR), tobit(key * KEY_FACTOR))
        local at = band(bxor(h, rshift(h, 15)) + missed, mask)
        local found = slots[at]
        if found == 0 then
          found = count
          count = count + 1
          spare = spare - 1
          slots[at] = found
          parents[found] = node
          keys[found] = key
        end
        if parents[found] == node and keys[found] == key then
          node = found
          f = f + 1
          missed = 0
        else
          missed = missed + 1
        end
      end
    end
  end
  return count, spare
end

-- What each node's own samples weigh.
local function add_weights(weight, stacks, node_of, self)
  for i = 0, stacks - 1 do
    local node = node_of[i]
    self[node] = self[node] + weight[i]
  end
end

-- From the leaves up: a node's number is above its parent's.
local function add_up(parent, count, total)
  for node = count - 1, M.ROOTS, -1 do
    local up = parent[node]
    total[up] = total[up] + total[node]
  end
end

local function sum(values, first, count)
  local total = 0
  for i = first, count - 1 do total = total + values[i] end
  return total
end

--- How many slots an open-addressed table of up to `most` nodes takes: a power of two.
function M.room_for(most)
  local room = 1024
  while room < most * 2 do room = room * 2 end
  return room
end

-- Slots for an eighth of the nodes there may be, and more when they do not do: few nodes are no
-- one's first child, and a small table stays in the cache.
local function merge_into(cap, keys, out, most, node_of)
  local room = M.room_for(most / 8)
  while true do
    local slots, only = u32(room), u32(most)
    local count, spare = merge(cap:array("stacks", "parent"), cap:array("stacks", "location"),
      cap:array("stacks", "end"), cap:rows("stacks"), keys.start, keys.frame, out.parent, out.key,
      only, slots, room - 1, room / 2, node_of)
    if spare > 0 then return count end
    room = room * 4
  end
end

-- Parents, keys and the node of each stack.
local function merge_stacks(cap, keys)
  local stacks = cap:rows("stacks")
  local most = most_nodes(cap:array("stacks", "location"), stacks, keys.start)
  if most > M.MOST then return nil end
  local out, node_of = { parent = u32(most), key = u32(most) }, u32(stacks + 1)
  ffi.fill(out.parent, M.ROOTS * 4, 0xff)
  ffi.fill(out.key, M.ROOTS * 4, 0xff)
  local count = stacks > 0 and merge_into(cap, keys, out, most, node_of) or M.ROOTS
  return out.parent, out.key, count, node_of
end

-- It makes arrays, which compiled loops must not.
jit.off(merge_into)

--- A tree of given nodes: parent, key (FFI u32) and self (FFI double) of `count` nodes; adds up
-- the totals.  node_of may be nil.
function M.of(parent, key, self, count, node_of)
  local total = f64(count)
  ffi.copy(total, self, count * 8)
  add_up(parent, count, total)
  return {
    count = count,
    parent = parent,
    key = key,
    self = self,
    total = total,
    weight = sum(total, 0, M.ROOTS),
    node_of = node_of,
  }
end

--- The call tree of a capture's stacks with these weights (samples.lua), or with those of a
-- source's samples when weights is a source's number; nil when it could have more than M.MOST
-- nodes.
function M.build(cap, keys, weights)
  if type(weights) == "number" then
    weights = require("microscope.query.samples").weights(cap, weights)
  end
  local parents, node_keys, count, node_of = merge_stacks(cap, keys)
  if not parents then return nil end
  local self = f64(count)
  add_weights(weights.weight, cap:rows("stacks"), node_of, self)
  return M.of(parents, node_keys, self, count, node_of)
end

--- What stacks have (FFI double[stacks]) by node of a tree: in the node itself, and in it and all
-- below, both FFI double[tree.count].
function M.spread(tree, values, stacks)
  local self, total = f64(tree.count), f64(tree.count)
  add_weights(values, stacks, tree.node_of, self)
  ffi.copy(total, self, tree.count * 8)
  add_up(tree.parent, tree.count, total)
  return self, total
end

-- Lists of children: first[node], then next_one[child].  Built from the last node down, so that
-- a list is in ascending order.
local function link(parent, count, first, next_one)
  for node = count - 1, M.ROOTS, -1 do
    local up = parent[node]
    next_one[node] = first[up]
    first[up] = node
  end
end

--- The children of all nodes as two arrays: first[node] and next_one[child], 0xffffffff ends.
function M.children(tree)
  local first, next_one = u32(tree.count), u32(tree.count)
  ffi.fill(first, tree.count * 4, 0xff)
  ffi.fill(next_one, tree.count * 4, 0xff)
  link(tree.parent, tree.count, first, next_one)
  return first, next_one
end

-- How many nodes each has below it, itself among them; roots none of their own.
local function count_below(parent, count, size)
  for node = count - 1, M.ROOTS, -1 do
    local own = size[node] + 1
    size[node] = own
    size[parent[node]] = size[parent[node]] + own
  end
end

-- The order in which a walk that goes to children in ascending order enters nodes; at[node] is the
-- next free place among the node's own, after which it is where the node's own end.
local function place_nodes(parent, count, size, at, order)
  for node = M.ROOTS, count - 1 do
    local up = parent[node]
    local enter = at[up]
    at[up] = enter + size[node]
    at[node] = enter + 1
    order[enter] = node
  end
end

--- A walk through all nodes but the roots, callers first, what a node calls right after it: FFI u32
-- of nodes, how many there are, and FFI u32[tree.count] of each node's place after the last one
-- below it.
function M.preorder(tree)
  local count = tree.count
  local size, at = u32(count), u32(count)
  count_below(tree.parent, count, size)
  local order, place = u32(count), 0
  for root = 0, M.ROOTS - 1 do
    at[root] = place
    place = place + size[root]
  end
  place_nodes(tree.parent, count, size, at, order)
  return order, place, at
end

-- Where such a walk enters and leaves each node.
local function place_events(parent, count, size, at, events)
  for node = M.ROOTS, count - 1 do
    local up = parent[node]
    local enter, own = at[up], size[node] * 2
    at[up] = enter + own
    at[node] = enter + 1
    events[enter] = node * 2
    events[enter + own - 1] = node * 2 + 1
  end
end

--- A walk through all nodes but the roots, callers first, as a list: FFI u32 of events and how
-- many there are.  node * 2 is the entering of a node, node * 2 + 1 its leaving.  Loops over it are
-- flat: what a walk does next comes from memory, so LuaJIT compiles them, where a loop that keeps
-- "entering" or "leaving" in a variable has a type for each and is left to the interpreter.
function M.events(tree)
  local count = tree.count
  local size, at = u32(count), u32(count)
  count_below(tree.parent, count, size)
  local events, place = u32(2 * count), 0
  for root = 0, M.ROOTS - 1 do
    at[root] = place
    place = place + 2 * size[root]
  end
  place_events(tree.parent, count, size, at, events)
  return events, place
end

M.NONE = NONE
M._count_below, M._place_events, M._place_nodes = count_below, place_events, place_nodes
--- Add what each node has to its parent, from the leaves up: add_up(parent, count, total).
M.add_up = add_up
M._merge, M._add_weights, M._add_up, M._link = merge, add_weights, add_up, link
M._most_nodes, M._sum = most_nodes, sum
return M
