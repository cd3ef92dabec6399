-- losses: all that the recording says it does not know: off time, losses, short stacks, problems.
return {
  summary = "What the recording does not show: off time, losses, short stacks, problems.",
  columns = { "samples.stack", "losses.count", "off_spans.kind" },
  run = function(ctx)
    local m, cap = ctx.microscope, ctx.cap
    local summary, keys, rows = m.summary(cap), m.keys(cap), {}
    local tree = assert(m.tree(cap, keys, ctx.selection()))
    local function add(what, amount, unit, share, why)
      if amount > 0 then
        local in_ns = unit == "ns"
        rows[#rows + 1] = { what, in_ns and amount or nil, not in_ns and amount or nil, share, why }
      end
    end
    local duration = math.max(1, summary.duration_ns)
    for _, kind in ipairs { "queue", "budget", "throttle" } do
      local off = summary.off[kind .. "_ns"]
      add("off: " .. kind, off, "ns", off / duration, ({ queue = "processing fell behind",
        budget = "to keep the budget", throttle = "the kernel throttled sampling" })[kind])
    end
    add("off: single CPUs", summary.off.one_cpu_ns, "ns", nil, "the kernel throttled sampling")
    add("lost samples", summary.lost_samples, "count",
      summary.lost_samples / (tree.samples + summary.lost_samples), "dropped by the kernel")
    add("lost records", summary.lost_records, "count", nil, "mappings, names and forks")
    for _, entry in ipairs(m.ends(tree)) do
      if not entry.whole then
        add(entry.stated and "short stacks" or "stacks, maybe short", entry.samples,
          "count", entry.weight / tree.weight, entry.reason)
      end
    end
    for _, problem in ipairs(summary.problems) do
      add("problem", problem.count, "count", nil, problem.text)
    end
    return m.result({ { name = "what" }, { name = "time", unit = "ns" },
      { name = "count", unit = "count" }, { name = "share", unit = "share" },
      { name = "why" } }, rows, {
      notes = { #rows == 0 and "nothing is missing that the recorder knows of" or nil },
    })
  end,
}
