-- ends: why stacks end where they do, where that happens, and what helps.

-- For each end the key of the frame under which most weight of it stands.
local function tops(m, tree)
  local best = {}
  for node = m.ROOTS, tree.count - 1 do
    local up = tree.parent[node]
    if up < m.ROOTS and (not best[up] or tree.total[node] > tree.total[best[up]]) then
      best[up] = node
    end
  end
  return best
end

return {
  summary = "Why stacks end, where that happens most, and what helps.",
  columns = { "samples.stack", "stacks.end" },
  run = function(ctx)
    local m, cap = ctx.microscope, ctx.cap
    local keys = m.keys(cap)
    local tree = assert(m.tree(cap, keys, ctx.selection()))
    local best, rows, notes = tops(m, tree), {}, {}
    for _, entry in ipairs(m.ends(tree)) do
      local node = best[entry.code]
      local stacks = entry.whole and "whole" or entry.stated and "short" or "unknown"
      rows[#rows + 1] = { entry.reason, stacks, entry.samples, entry.weight / tree.weight,
        entry.weight,
        node and m.label(cap, keys, tree.key[node]) or nil }
      if entry.advice then notes[#notes + 1] = entry.reason .. ": " .. entry.advice end
    end
    return m.result({ { name = "reason" }, { name = "stacks" },
      { name = "samples", unit = "count" }, { name = "share", unit = "share" },
      { name = "weight", unit = m.unit(tree.unit) },
      { name = "most_often_under", heading = "MOST OFTEN UNDER" } }, rows, { notes = notes })
  end,
}
