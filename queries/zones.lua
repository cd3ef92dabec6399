-- zones: how often the spans that a program marked itself ran, and how long they took.

return {
  summary = "Zones by site: how often, how long in all, on average and at most.",
  columns = { "zones.site", "zones.start_ns", "zones.end_ns" },
  options = {
    { name = "limit", type = "count", argname = "N", description = "How many sites to show." },
  },
  run = function(ctx, args)
    local rows = {}
    local m, notes = ctx.microscope, nil
    local sites = m.zones(ctx.cap)
    for i, site in ipairs(sites) do
      if i > (args.limit or math.huge) then
        notes = { m.more(#sites - args.limit, "site") }
        break
      end
      rows[i] = { site.name, site.category, site.count, site.unended, site.total_ns, site.mean_ns,
        site.longest_ns }
    end
    return {
      columns = {
        { name = "name" }, { name = "category" }, { name = "count", unit = "count" },
        { name = "unended", unit = "count" }, { name = "total", unit = "ns" },
        { name = "mean", unit = "ns" }, { name = "longest", unit = "ns" },
      },
      rows = rows,
      notes = notes,
    }
  end,
}
