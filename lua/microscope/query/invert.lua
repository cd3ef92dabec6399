--- invert.lua - the tree of callers: each function that ran, with its callers nested under it.
--
-- A tree of the same shape as tree.lua's.  All nodes lie under root 1.  A node's total is what
-- the function at the top ran itself while it was called through the node; its self is what of
-- that had no further caller.  A stack that ends short has its end as its last caller: a node
-- whose key is keys.count + the end's number.

local bit = require("bit")
local ffi = require("ffi")

local ends_query = require("microscope.query.ends")
local remap = require("microscope.query.remap")
local tree_query = require("microscope.query.tree")

local M = {}

local ROOTS = tree_query.ROOTS
local band = bit.band
local hash = remap.hash

local u32, f64, u8 = ffi.typeof("uint32_t[?]"), ffi.typeof("double[?]"), ffi.typeof("uint8_t[?]")

-- All nodes lie under this root.
local TOP = 1

-- How many nodes all paths have together that begin where weight is.
local function count_steps(parent, weight, count, depth)
  local steps = 0
  for node = 0, count - 1 do
    if node >= ROOTS then depth[node] = depth[parent[node]] + 1 end
    if weight[node] > 0 then steps = steps + depth[node] + 1 end
  end
  return steps
end

-- The paths that go on: where each stands in the tree, and what it weighs.
local function begin(weight, count, at, carried)
  local paths = 0
  for node = 0, count - 1 do
    if weight[node] > 0 then
      at[paths] = node
      carried[paths] = weight[node]
      paths = paths + 1
    end
  end
  return paths
end

-- One step of all paths: each has reached node at[i] and comes from node up[i] of the new tree.
-- A step looks at one slot, the one after `missed` others (tree.lua).
local function step(key, ends, paths, at, up, carried, slots, mask, parents, keys, self, made)
  local i, missed = 0, 0
  while i < paths do
    local node, from = at[i], up[i]
    local k
    if node < ROOTS then k = ends + node else k = key[node] end
    local slot = band(hash(from, k) + missed, mask)
    local found = slots[slot]
    if found == 0 then
      found = made
      made = made + 1
      slots[slot] = found
      parents[found] = from
      keys[found] = k
    end
    if parents[found] == from and keys[found] == k then
      self[found] = self[found] + carried[i]
      up[i] = found
      i = i + 1
      missed = 0
    else
      missed = missed + 1
    end
  end
  return made
end

-- What the nodes made in this step weigh, before paths go on from them.
local function weigh(self, began, made, out)
  for node = began, made - 1 do out[node - began] = self[node] end
end

-- Move the paths to their callers; those that have none, or whose node weighs under `least`, end.
-- A path takes its weight out of its node when it goes on from there.
local function go_on(parent, silent, paths, at, up, carried, self, weight, began, least)
  local left = 0
  for i = 0, paths - 1 do
    local node, from = at[i], up[i]
    if node >= ROOTS and weight[from - began] >= least then
      local caller = parent[node]
      if caller >= ROOTS or silent[caller] == 0 then
        self[from] = self[from] - carried[i]
        at[left], up[left], carried[left] = caller, from, carried[i]
        left = left + 1
      end
    end
  end
  return left
end

-- Roots that are no callers: nothing calls what stands at the top of a whole stack, and where the
-- end is not stated it is not known that anything does.
local function silent_roots()
  local out = u8(ROOTS)
  for root = 0, ROOTS - 1 do out[root] = ends_query.is_silent(root) and 1 or 0 end
  return out
end

local function grown(new, size, old, used, count)
  local out = new(count)
  ffi.copy(out, old, used * size)
  return out
end

-- Room for `most` nodes, of which there can be no more than room.most.
local function grow(room, made, most)
  if most <= room.size then return end
  room.size = math.min(math.max(most, room.size * 2), room.most)
  room.parent = grown(u32, 4, room.parent, made, room.size)
  room.key = grown(u32, 4, room.key, made, room.size)
  room.self = grown(f64, 8, room.self, made, room.size)
end

-- All nodes there can be, when each path is followed to its end; else what turns out.
local function room_of(most, all)
  local size = all and most or math.min(most, 65536)
  local room = { most = most, size = size, parent = u32(size), key = u32(size), self = f64(size) }
  ffi.fill(room.parent, ROOTS * 4, 0xff)
  ffi.fill(room.key, ROOTS * 4, 0xff)
  return room
end

-- One level of callers: the nodes that all paths reach, and the paths that go on from there.
local function level(tree, keys, room, p, made, least)
  local size, began = tree_query.room_for(p.count), made
  grow(room, made, math.min(made + p.count, room.most))
  ffi.fill(p.slots, size * 4)
  made = step(tree.key, keys.count, p.count, p.at, p.up, p.carried, p.slots, size - 1, room.parent,
    room.key, room.self, made)
  weigh(room.self, began, made, p.weight)
  p.count = go_on(tree.parent, p.silent, p.count, p.at, p.up, p.carried, room.self, p.weight,
    began, least)
  return made
end

-- It makes arrays, which compiled loops must not.
jit.off(level)

--- The tree of callers of a tree.  weight (nil: the tree's self) is FFI double[tree.count]: what
-- is looked at from each node up, as self for what ran.  Nodes under `least` (nil: 0) have no
-- callers in it.  nil when it would have more than tree.MOST nodes.
function M.build(tree, keys, least, weight)
  weight, least = weight or tree.self, least or 0
  local count = tree.count
  local steps = count_steps(tree.parent, weight, count, u32(count))
  if steps > tree_query.MOST then return nil end
  local p = { at = u32(count), carried = f64(count), up = u32(count),
    silent = silent_roots() }
  p.count = begin(weight, count, p.at, p.carried)
  p.slots, p.weight = u32(tree_query.room_for(p.count)), f64(p.count + 1)
  for i = 0, p.count - 1 do p.up[i] = TOP end
  local room, made = room_of(ROOTS + steps, least <= 0), ROOTS
  while p.count > 0 do made = level(tree, keys, room, p, made, least) end
  return tree_query.of(room.parent, room.key, room.self, made)
end

M._count_steps, M._begin, M._step, M._go_on = count_steps, begin, step, go_on
M._weigh, M._silent_roots = weigh, silent_roots
return M
