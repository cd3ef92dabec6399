-- recursion: which functions call themselves, directly or through others, and how deep.

-- Depth of each node's key on its path, found from the top down with the parents' answers: the
-- nearest node above with the same key is looked for along the path.  One flat loop, a step up or
-- to the next node, as LuaJIT leaves short inner loops to its interpreter.
local function depths(parent, key, count, roots, depth)
  local node, up = roots, roots < count and parent[roots] or 0
  while node < count do
    local above = 0
    if up >= roots and key[up] == key[node] then
      above = depth[up]
      up = 0
    elseif up >= roots then
      up = parent[up]
    end
    if up < roots then
      depth[node] = above + 1
      node = node + 1
      up = node < count and parent[node] or 0
    end
  end
end

-- For each key: the deepest, and what ran at depth 2 and deeper, by samples and weight.
local function add_up(key, depth, self_count, self, count, roots, deepest, samples, weight)
  for node = roots, count - 1 do
    local k, d = key[node], depth[node]
    if d > deepest[k] then deepest[k] = d end
    if d > 1 then
      samples[k] = samples[k] + self_count[node]
      weight[k] = weight[k] + self[node]
    end
  end
end

return {
  summary = "Functions that call themselves: how deep, and what that costs.",
  description = "Functions that stand several times in one stack.  DEEPEST is how often at most;"
    .. " IN RECURSION is what ran in the function itself within calls of its own.",
  columns = { "samples.stack", "stacks.parent" },
  options = {
    { name = "limit", type = "count", default = 20, argname = "N",
      description = "How many functions to show." },
  },
  run = function(ctx, args)
    local m, cap = ctx.microscope, ctx.cap
    local keys = m.keys(cap)
    local tree = assert(m.tree(cap, keys, ctx.selection()))
    local depth = m.zeros("uint32_t", tree.count)
    local deepest, samples = m.zeros("uint32_t", keys.count + 1), m.zeros("double", keys.count + 1)
    local weight = m.zeros("double", keys.count + 1)
    depths(tree.parent, tree.key, tree.count, m.ROOTS, depth)
    add_up(tree.key, depth, tree.self_count, tree.self, tree.count, m.ROOTS, deepest, samples,
      weight)
    local costs, found = m.costs(tree, keys), {}
    for key = 0, keys.count - 1 do
      if deepest[key] > 1 and costs.total[key] > 0 then found[#found + 1] = key end
    end
    table.sort(found, function(a, b)
      if costs.total[a] ~= costs.total[b] then return costs.total[a] > costs.total[b] end
      return a < b
    end)
    local rows = {}
    for i = 1, math.min(args.limit, #found) do
      local key = found[i]
      rows[i] = { m.label(cap, keys, key), deepest[key], costs.total[key],
        costs.total[key] / tree.weight, weight[key], samples[key] }
    end
    local unit = m.unit(tree.unit)
    return m.result({ { name = "function" }, { name = "deepest", unit = "count" },
      { name = "total", unit = unit }, { name = "share", unit = "share" },
      { name = "in_recursion", unit = unit }, { name = "samples", unit = "count" } }, rows,
      { notes = #found > #rows and { m.more(#found - #rows, "function") } or nil })
  end,
}
