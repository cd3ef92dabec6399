-- top-by-thread: what each thread does: its most expensive functions.
return {
  summary = "The most expensive functions of each thread.",
  columns = { "samples.thread", "samples.stack" },
  options = {
    { name = "threads", type = "count", default = 8, argname = "N",
      description = "How many threads to show, the busiest first." },
    { name = "limit", type = "count", default = 5, argname = "N",
      description = "How many functions of each." },
  },
  run = function(ctx, args)
    local m, cap = ctx.microscope, ctx.cap
    local keys, all = m.keys(cap), ctx.selection()
    local sums, threads, rows = m.sums(cap, "thread", all), {}, {}
    for _, thread in ipairs(m.threads(cap)) do
      if sums.weight[thread.id] > 0 then threads[#threads + 1] = thread end
    end
    table.sort(threads, function(a, b)
      local wa, wb = sums.weight[a.id], sums.weight[b.id]
      if wa ~= wb then return wa > wb end
      return a.id < b.id
    end)
    for i = 1, math.min(args.threads, #threads) do
      local thread = threads[i]
      local tree = assert(m.tree(cap, keys, ctx.selection({ thread = thread.id })))
      local costs = m.costs(tree, keys)
      for k, key in ipairs(m.ranked(costs, keys)) do
        if k > args.limit or costs.self[key] == 0 then break end
        rows[#rows + 1] = { thread.name, thread.tid, costs.self[key],
          costs.self[key] / tree.weight, m.label(cap, keys, key) }
      end
    end
    local notes = #threads > args.threads
      and { m.more(#threads - args.threads, "thread", "--threads") } or nil
    return m.result({ { name = "thread" }, { name = "tid", unit = "line" },
      { name = "self", unit = m.unit(all.unit) },
      { name = "share", unit = "share", heading = "OF THREAD" }, { name = "function" } }, rows,
      { notes = notes })
  end,
}
