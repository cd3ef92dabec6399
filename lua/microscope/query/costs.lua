--- costs.lua - what each key costs: itself, and with all it called.
--
-- costs = { self=, self_count=, total=, total_count= }: FFI double[keys.count].  A stack in which
-- a function stands several times (recursion) counts once in that function's total.

local ffi = require("ffi")

local tree_query = require("microscope.query.tree")

local M = {}

local NONE = tree_query.NONE
local ROOTS = tree_query.ROOTS

local u32, f64 = ffi.typeof("uint32_t[?]"), ffi.typeof("double[?]")

local function add_self(key, self, self_count, count, out, out_count)
  for node = ROOTS, count - 1 do
    local k = key[node]
    out[k] = out[k] + self[node]
    out_count[k] = out_count[k] + self_count[node]
  end
end

-- Walk all that is under a root, counting how often each key is on the path: only a key's
-- outermost node adds to its total.  One flat loop: a step enters a node or leaves one.
local function add_totals(root, first, next_one, parent, key, total, total_count, on_path, out,
    out_count)
  local node, entering = first[root], true
  if node == NONE then return end
  while node ~= root do
    local k = key[node]
    if entering then
      local depth = on_path[k]
      if depth == 0 then
        out[k] = out[k] + total[node]
        out_count[k] = out_count[k] + total_count[node]
      end
      on_path[k] = depth + 1
      local child = first[node]
      if child ~= NONE then node = child else entering = false end
    else
      on_path[k] = on_path[k] - 1
      local sibling = next_one[node]
      if sibling ~= NONE then
        node = sibling
        entering = true
      else
        node = parent[node]
      end
    end
  end
end

--- The costs of all keys in a tree (tree.lua).
function M.flat(tree, keys)
  local out = {
    self = f64(keys.count + 1),
    self_count = f64(keys.count + 1),
    total = f64(keys.count + 1),
    total_count = f64(keys.count + 1),
  }
  add_self(tree.key, tree.self, tree.self_count, tree.count, out.self, out.self_count)
  local first, next_one = tree_query.children(tree)
  local on_path = u32(keys.count + 1)
  for root = 0, ROOTS - 1 do
    add_totals(root, first, next_one, tree.parent, tree.key, tree.total, tree.total_count, on_path,
      out.total, out.total_count)
  end
  return out
end

--- The keys that cost anything, most self time first; then by total, then by key.
function M.ranked(costs, keys)
  local out, self, total = {}, costs.self, costs.total
  for key = 0, keys.count - 1 do
    if total[key] > 0 then out[#out + 1] = key end
  end
  table.sort(out, function(a, b)
    if self[a] ~= self[b] then return self[a] > self[b] end
    if total[a] ~= total[b] then return total[a] > total[b] end
    return a < b
  end)
  return out
end

M._add_self, M._add_totals = add_self, add_totals
return M
