--- tree.lua - the call tree: stacks whose frames have the same keys are one path.
--
-- tree = {
--   count  = number of nodes; a node's parent has a lower number
--   parent = FFI u32[count], key = FFI u32[count]
--   self, total = FFI double[count]: weight that ran in the node, and in it and all below
--   self_count, total_count = FFI double[count]: the same in samples
--   samples, weight = of all
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
local bxor, band, rshift, lshift, tobit = bit.bxor, bit.band, bit.rshift, bit.lshift, bit.tobit

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
-- slots is an open-addressed table of nodes by parent and key.  One flat loop without calls or
-- constant states, as LuaJIT leaves short inner loops to its interpreter and gives up on a step
-- whose outcome it knows: a step looks at one slot, the one after `missed` others, for frame f of
-- stack i.
local function merge(parent, location, ends, stacks, start, frame, parents, keys, slots, mask,
    count, node_of)
  local i, f, stop, node, missed = -1, 0, 0, 0, 0
  while i < stacks do
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
      local key = frame[f]
      -- Robert Jenkins' mixing of 32 bits, all shifts and additions, as a product of 32 bits is
      -- not exact in a double.  node * 31 is exact and keeps neighbours apart.
      local h = tobit(bxor(tobit(key), tobit(node * 31)))
      h = tobit(h + 0x7ed55d16 + lshift(h, 12))
      h = bxor(h, 0xc761c23c, rshift(h, 19))
      h = tobit(h + 0x165667b1 + lshift(h, 5))
      h = bxor(tobit(h + 0xd3a2646c), lshift(h, 9))
      h = tobit(h + 0xfd7046c5 + lshift(h, 3))
      local at = band(bxor(h, 0xb55a4f09, rshift(h, 16)) + missed, mask)
      local found = slots[at]
      if found == NONE then
        found = count
        count = count + 1
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
  return count
end

-- What each node's own samples weigh, of one source.
local function add_samples(stack, weight, source, rows, wanted, node_of, self, self_count)
  for i = 0, rows - 1 do
    if source[i] == wanted then
      local node = node_of[stack[i]]
      self[node] = self[node] + tonumber(weight[i])
      self_count[node] = self_count[node] + 1
    end
  end
end

-- From the leaves up: a node's number is above its parent's.
local function add_up(parent, count, total, total_count)
  for node = count - 1, M.ROOTS, -1 do
    local up = parent[node]
    total[up] = total[up] + total[node]
    total_count[up] = total_count[up] + total_count[node]
  end
end

local function sum(values, first, count)
  local total = 0
  for i = first, count - 1 do total = total + values[i] end
  return total
end

local function room_for(most)
  local room = 1024
  while room < most * 2 do room = room * 2 end
  return room
end

-- Parents, keys and the node of each stack.
local function merge_stacks(cap, keys)
  local stacks = cap:rows("stacks")
  local location = cap:array("stacks", "location")
  local most = most_nodes(location, stacks, keys.start)
  if most > M.MOST then return nil end
  local room = room_for(most)
  local parents, node_keys, slots = u32(most), u32(most), u32(room)
  local node_of = u32(stacks + 1)
  ffi.fill(parents, M.ROOTS * 4, 0xff)
  ffi.fill(node_keys, M.ROOTS * 4, 0xff)
  ffi.fill(slots, room * 4, 0xff)
  if stacks == 0 then return parents, node_keys, M.ROOTS, node_of end
  local count = merge(cap:array("stacks", "parent"), location, cap:array("stacks", "end"), stacks,
    keys.start, keys.frame, parents, node_keys, slots, room - 1, M.ROOTS, node_of)
  return parents, node_keys, count, node_of
end

--- The call tree of a capture's samples of one source; nil when it could have more than M.MOST
-- nodes.
function M.build(cap, keys, source)
  local parents, node_keys, count, node_of = merge_stacks(cap, keys)
  if not parents then return nil end
  local self, self_count = f64(count), f64(count)
  add_samples(cap:array("samples", "stack"), cap:array("samples", "weight"),
    cap:array("samples", "source"), cap:rows("samples"), source, node_of, self, self_count)
  local total, total_count = f64(count), f64(count)
  ffi.copy(total, self, count * 8)
  ffi.copy(total_count, self_count, count * 8)
  add_up(parents, count, total, total_count)
  return {
    count = count,
    parent = parents,
    key = node_keys,
    self = self,
    self_count = self_count,
    total = total,
    total_count = total_count,
    samples = sum(self_count, 0, count),
    weight = sum(self, 0, count),
  }
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

M.NONE = NONE
M._merge, M._add_samples, M._add_up, M._link = merge, add_samples, add_up, link
M._most_nodes, M._sum = most_nodes, sum
return M
