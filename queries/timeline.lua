-- timeline: when each thread lived and when it ran.

local SHADES = { ".", "-", "=", "#" }

-- A thread's line: blank where it did not live, "." where it lived and was not seen running.
local function draw(lanes, lane, from, to)
  local cells = {}
  for b = 0, lanes.buckets - 1 do
    local middle = lanes.from_ns + (b + 0.5) * lanes.bucket_ns
    local weight = lane and lane.weight[b] or 0
    if weight > 0 then
      local share = math.min(1, weight / lanes.bucket_ns)
      cells[#cells + 1] = SHADES[1 + math.max(1, math.ceil(share * 3))]
    else
      cells[#cells + 1] = middle >= from and middle <= to and SHADES[1] or " "
    end
  end
  return "|" .. table.concat(cells) .. "|"
end

return {
  summary = "When each thread lived, and when it ran.",
  description = "A line for each thread: blank where it did not live, '.' where it lived without a"
    .. " sample, '-', '=' and '#' for up to a third, two thirds and all of a CPU.",
  columns = { "samples.thread", "threads.start_ns", "threads.end_ns" },
  options = {
    { name = "columns", type = "count", default = 50, most = 500, argname = "N",
      description = "How wide the line is." },
    { name = "limit", type = "count", default = 40, argname = "N",
      description = "How many threads to show." },
  },
  run = function(ctx, args)
    local m, cap = ctx.microscope, ctx.cap
    local lanes = m.lanes(cap, { by = "thread", buckets = args.columns,
      select = ctx.selection() })
    local of, rows, threads, notes = {}, {}, m.threads(cap), {}
    for _, lane in ipairs(lanes.lanes) do of[lane.id] = lane end
    table.sort(threads, function(a, b)
      if a.start_ns ~= b.start_ns then return a.start_ns < b.start_ns end
      return a.id < b.id
    end)
    for i, thread in ipairs(threads) do
      if i > args.limit then
        notes[1] = m.more(#threads - args.limit, "thread")
        break
      end
      local lane = of[thread.id]
      rows[i] = { thread.name, thread.tid, thread.start_ns,
        (thread.end_ns or lanes.to_ns) - thread.start_ns, lane and lane.total_weight or 0,
        draw(lanes, lane, thread.start_ns, thread.end_ns or lanes.to_ns) }
    end
    return m.result({ { name = "thread" }, { name = "tid", unit = "line" },
      { name = "start", unit = "ns" }, { name = "lived", unit = "ns" },
      { name = "weight", unit = m.unit(lanes.unit) }, { name = "line", heading = "" } }, rows,
      { notes = notes })
  end,
}
