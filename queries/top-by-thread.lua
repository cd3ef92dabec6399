-- top-by-thread: what each thread does: its most expensive functions.

-- The first functions of the busiest threads, by thread, all found in one pass.
local function tops_of(ctx, threads, args)
  local m, ids, tops = ctx.microscope, {}, {}
  for i = 1, math.min(args.threads, #threads) do
    ids[i] = threads[i].id
    tops[ids[i]] = {}
  end
  local profile = assert(m.profile(ctx.cap, { select = ctx.selection({ thread = ids }) }))
  for _, row in ipairs(assert(m.groups(ctx.cap, profile, { "thread", "function" })).rows) do
    local list = row.self > 0 and tops[row.values[1].id]
    if list and #list < args.limit then list[#list + 1] = row end
  end
  return tops, profile.keys
end

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
    local all = ctx.selection()
    local sums, threads, rows = m.sums(cap, "thread", all), {}, {}
    for _, thread in ipairs(m.threads(cap)) do
      if sums.weight[thread.id] > 0 then threads[#threads + 1] = thread end
    end
    table.sort(threads, function(a, b)
      local wa, wb = sums.weight[a.id], sums.weight[b.id]
      if wa ~= wb then return wa > wb end
      return a.id < b.id
    end)
    local tops, keys = tops_of(ctx, threads, args)
    for i = 1, math.min(args.threads, #threads) do
      local thread = threads[i]
      for _, row in ipairs(tops[thread.id]) do
        rows[#rows + 1] = { thread.name, thread.tid, row.self, row.self / sums.weight[thread.id],
          m.label(cap, keys, row.values[2].key) }
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
