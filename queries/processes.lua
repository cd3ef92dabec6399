-- processes: the tree of processes, with what each cost itself and with all it started.
return {
  summary = "The process tree, with the CPU share of each and of what it started.",
  columns = { "samples.thread", "processes.parent" },
  run = function(ctx)
    local m, cap = ctx.microscope, ctx.cap
    local all = ctx.selection()
    local sums, list = m.sums(cap, "process", all), m.processes(cap)
    local total, children, roots = {}, {}, {}
    for i = #list, 1, -1 do -- a parent has a lower id
      local process = list[i]
      total[process.id] = (total[process.id] or 0) + sums.weight[process.id]
      if process.parent then
        total[process.parent] = (total[process.parent] or 0) + total[process.id]
        local own = children[process.parent] or {}
        children[process.parent] = own
        table.insert(own, 1, process)
      else
        table.insert(roots, 1, process)
      end
    end
    local rows, todo = {}, {}
    for i = #roots, 1, -1 do todo[#todo + 1] = { roots[i], 0 } end
    while #todo > 0 do
      local process, depth = unpack(table.remove(todo))
      local weight, share = sums.weight[process.id], nil
      if all.weight > 0 then share = total[process.id] / all.weight end
      rows[#rows + 1] = { ("  "):rep(math.min(depth, 20)) .. process.name, process.pid, weight,
        total[process.id], share, process.start_ns, process.end_ns, process.command }
      local own = children[process.id] or {}
      for i = #own, 1, -1 do todo[#todo + 1] = { own[i], depth + 1 } end
    end
    local unit = m.unit(all.unit)
    return m.result({ { name = "process" }, { name = "pid", unit = "line" },
      { name = "self", unit = unit }, { name = "total", unit = unit },
      { name = "share", unit = "share" }, { name = "start", unit = "ns" },
      { name = "end", unit = "ns" }, { name = "command" } }, rows)
  end,
}
