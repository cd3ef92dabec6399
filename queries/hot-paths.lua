-- hot-paths: the call paths that end in the most expensive places.
return {
  summary = "The call paths, whole, at whose ends most time went.",
  columns = { "samples.stack", "stacks.parent" },
  options = {
    { name = "limit", type = "count", default = 5, argname = "N",
      description = "How many paths to show." },
  },
  run = function(ctx, args)
    local m, cap = ctx.microscope, ctx.cap
    local keys = m.keys(cap)
    local tree = assert(m.tree(cap, keys, ctx.selection()))
    local nodes, rows, short = {}, {}, {}
    for _, entry in ipairs(m.ends(tree)) do
      if not entry.whole and entry.stated then short[entry.code] = entry.reason end
    end
    for node = m.ROOTS, tree.count - 1 do
      if tree.self[node] > 0 then nodes[#nodes + 1] = node end
    end
    table.sort(nodes, function(a, b)
      if tree.self[a] ~= tree.self[b] then return tree.self[a] > tree.self[b] end
      return a < b
    end)
    for i = 1, math.min(args.limit, #nodes) do
      local path, ending = m.path(tree, nodes[i])
      if short[ending] then rows[#rows + 1] = { i, 0, nil, nil, "[" .. short[ending] .. "]" } end
      for depth, node in ipairs(path) do
        local last = depth == #path
        rows[#rows + 1] = { i, depth, last and tree.self[node] or nil,
          last and tree.self[node] / tree.weight or nil, m.label(cap, keys, tree.key[node]) }
      end
    end
    return m.result({ { name = "path", unit = "line" }, { name = "depth", unit = "line" },
      { name = "self", unit = m.unit(tree.unit) }, { name = "share", unit = "share" },
      { name = "function" } }, rows, {
      notes = #nodes > args.limit and { m.more(#nodes - args.limit, "path") } or nil,
    })
  end,
}
