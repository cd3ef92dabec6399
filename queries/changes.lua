-- changes: what the second half of a recording does that the first did not, and the reverse.

-- Costs of the functions in a span of time.
local function costs_of(ctx, keys, from_ns, to_ns)
  local m = ctx.microscope
  local tree = assert(m.tree(ctx.cap, keys, ctx.selection({ from_ns = from_ns, to_ns = to_ns })))
  return m.costs(tree, keys), tree
end

return {
  summary = "What changed over time: the first part of the recording against the rest.",
  description = "Each function's share of the first part against its share of the rest, with the"
    .. " 95 % interval of the difference.  A change whose interval holds 0 may be chance: it is"
    .. " marked, not hidden.  Values that are not sampled by a period have no interval.",
  columns = { "samples.stack", "samples.time_ns" },
  options = {
    { name = "at", type = "number", least = 0, argname = "SECONDS",
      description = "Where the second part begins (half of the time)." },
    { name = "of", type = "choice", choices = { "self", "total" }, default = "self",
      description = "Compare what ran in a function itself, or in all it called too." },
    { name = "limit", type = "count", default = 20, argname = "N",
      description = "How many functions to show." },
  },
  run = function(ctx, args)
    local m, cap = ctx.microscope, ctx.cap
    local keys = m.keys(cap)
    local at = args.at and args.at * 1e9 or m.summary(cap).duration_ns / 2
    local first, first_tree = costs_of(ctx, keys, 0, at)
    local second, second_tree = costs_of(ctx, keys, at, math.huge)
    local n1, n2 = first_tree.samples, second_tree.samples
    local all1, all2 = first_tree.weight, second_tree.weight
    if all1 == 0 or all2 == 0 then ctx.fail("one part has no samples: choose another --at") end
    local counts, rows = args.of .. "_count", {}
    for key = 0, keys.count - 1 do
      local a, b = first[args.of][key] / all1, second[args.of][key] / all2
      if a + b > 0 then
        local low, high
        if first_tree.period > 0 then
          low, high = m.difference(first[counts][key], n1, second[counts][key], n2)
        end
        rows[#rows + 1] = { m.label(cap, keys, key), a, b, b - a, low, high,
          (low or b - a) > 0 and "more" or (high or b - a) < 0 and "less" or "within noise" }
      end
    end
    table.sort(rows, function(a, b)
      local sure_a, sure_b = a[7] ~= "within noise", b[7] ~= "within noise"
      if sure_a ~= sure_b then return sure_a end
      if math.abs(a[4]) ~= math.abs(b[4]) then return math.abs(a[4]) > math.abs(b[4]) end
      return a[1] < b[1]
    end)
    local notes = { ("the first part has %s samples, the rest %s; it begins at %s"):format(
      m.count(n1), m.count(n2), m.time(at)) }
    if #rows > args.limit then
      notes[2] = m.more(#rows - args.limit, "function")
      for i = #rows, args.limit + 1, -1 do rows[i] = nil end
    end
    return m.result({ { name = "function" }, { name = "first", unit = "share" },
      { name = "rest", unit = "share" }, { name = "change", unit = "share" },
      { name = "low", unit = "share" }, { name = "high", unit = "share" }, { name = "verdict" } },
      rows, { notes = notes })
  end,
}
