-- heatmap: bursts within seconds: a row a second, a column a slice of it.

-- From nothing to the busiest slice.
local SHADES = { " ", ".", ":", "-", "=", "+", "*", "#", "%", "@" }

return {
  summary = "When the CPU was busy: a row a second, a column a slice of it.",
  description = "A row for each stretch of time (a second), a column for each slice of it: a"
    .. " character's darkness is the CPU time of the slice, from none (blank) to that of the"
    .. " busiest slice (@).  Bursts that an average hides stand out.  PEAK CPUS is how many CPUs"
    .. " the row's busiest slice kept busy.",
  columns = { "samples.time_ns" },
  options = {
    { name = "columns", type = "count", default = 50, most = 500, argname = "N",
      description = "Slices in a row." },
    { name = "row", type = "number", default = 1, least = 0.001, argname = "SECONDS",
      description = "How long a row lasts." },
    { name = "thread", type = "count", least = 0, argname = "ID",
      description = "Only the thread of that id (its row in the capture);"
        .. " --where takes names and TIDs." },
  },
  run = function(ctx, args)
    local m, cap = ctx.microscope, ctx.cap
    local row_ns = args.row * 1e9
    local selection = ctx.selection({ thread = args.thread })
    local ends_at = m.lanes(cap, { by = "all", buckets = 1, select = selection }).to_ns
    local count = math.max(1, math.ceil(ends_at / row_ns))
    if count * args.columns > 1e6 then ctx.fail("%d rows are too many: a longer --row", count) end
    local lanes = m.lanes(cap, { by = "all", buckets = count * args.columns, from_ns = 0,
      to_ns = count * row_ns, select = selection })
    local lane, rows = lanes.lanes[1], {}
    local most = 0
    for b = 0, lane and lanes.buckets - 1 or -1 do most = math.max(most, lane.weight[b]) end
    for r = 0, count - 1 do
      local cells, total, peak = {}, 0, 0
      for c = 0, args.columns - 1 do
        local weight = lane and lane.weight[r * args.columns + c] or 0
        total = total + weight
        peak = math.max(peak, weight)
        local shade = weight > 0 and math.max(1, math.floor(weight / most * (#SHADES - 1) + 0.5))
          or 0
        cells[#cells + 1] = SHADES[shade + 1]
      end
      rows[#rows + 1] = { r * row_ns, "|" .. table.concat(cells) .. "|", total,
        peak / lanes.bucket_ns }
    end
    local in_ns = lanes.unit == "ns"
    return m.result({ { name = "from", unit = "ns" }, { name = "slices" },
      { name = "weight", unit = m.unit(lanes.unit) },
      { name = "peak_cpus", unit = "number", heading = "PEAK CPUS" } }, rows, {
      notes = { ("a column is %s; @ is %s in one"):format(m.time(lanes.bucket_ns),
        m.amount(most, lanes.unit)), not in_ns and "peaks are weights by time" or nil },
    })
  end,
}
