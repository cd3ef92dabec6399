-- threads: how evenly the threads of each process work.

-- 1 when n threads do the same, 1/n when one does all.
local function evenness(weights)
  local sum, squares = 0, 0
  for _, weight in ipairs(weights) do
    sum = sum + weight
    squares = squares + weight * weight
  end
  return squares > 0 and sum * sum / (#weights * squares) or 1
end

return {
  summary = "CPU time by thread, and how evenly each process's threads share it.",
  description = "CPU time by thread.  Evenness (Jain's index) is 1 when all threads of a process"
    .. " that ran did the same, and 1/n when one of n did all.",
  columns = { "samples.thread", "threads.process" },
  options = {
    { name = "limit", type = "count", default = 40, argname = "N",
      description = "How many threads to show." },
  },
  run = function(ctx, args)
    local m, cap = ctx.microscope, ctx.cap
    local selection = ctx.selection()
    local sums, rows, of_process, notes = m.sums(cap, "thread", selection), {}, {}, {}
    local duration = m.summary(cap).duration_ns
    for _, thread in ipairs(m.threads(cap)) do
      local weight = sums.weight[thread.id]
      if weight > 0 then
        local list = of_process[thread.process] or {}
        of_process[thread.process] = list
        list[#list + 1] = weight
        local lived = (thread.end_ns or duration) - thread.start_ns
        rows[#rows + 1] = { thread.name, thread.tid, thread.pid, weight,
          weight / selection.weight, selection.unit == "ns" and lived > 0 and weight / lived or nil,
          weight / selection.weight }
      end
    end
    table.sort(rows, function(a, b)
      if a[4] ~= b[4] then return a[4] > b[4] end
      return a[2] < b[2]
    end)
    if #rows > args.limit then
      notes[1] = m.more(#rows - args.limit, "thread")
      for i = #rows, args.limit + 1, -1 do rows[i] = nil end
    end
    for _, process in ipairs(m.processes(cap)) do
      local weights = of_process[process.id]
      if weights and #weights > 1 then
        notes[#notes + 1] = ("%s (pid %d): %d threads ran, evenness %.2f"):format(process.name,
          process.pid, #weights, evenness(weights))
      end
    end
    return m.result({ { name = "thread" }, { name = "tid", unit = "line" },
      { name = "pid", unit = "line" }, { name = "weight", unit = m.unit(selection.unit) },
      { name = "share", unit = "share" },
      { name = "busy", unit = "share", heading = "OF A CPU" },
      { name = "bar", unit = "bar", heading = "" } }, rows, { notes = notes })
  end,
}
