-- flame: a flame graph for the browser, in one file that needs nothing else.
return {
  summary = "A flame graph for the browser: one HTML file, with search and zoom.",
  description = "Writes a flame graph as HTML: callers above, callees below, widths as weights."
    .. "  Click a frame to zoom to it, Escape goes one out; search by name or /expression/.  The"
    .. " file needs no network and can be mailed.  It takes no --format: `microscope report"
    .. " --tree --format json` has the tree as data.",
  writes = "HTML",
  columns = { "samples.stack", "stacks.parent" },
  options = {
    { name = "lines", type = "flag", description = "Tell functions apart by line." },
    { name = "thread", type = "count", least = 0, argname = "ID", repeated = true,
      description = "Only the threads of these ids (rows in the capture);"
        .. " --where takes names and TIDs." },
    { name = "from", type = "number", least = 0, argname = "SECONDS",
      description = "Only samples from then on." },
    { name = "to", type = "number", least = 0, argname = "SECONDS",
      description = "Only samples before then." },
    { name = "title", description = "The page's title (the recorded command)." },
  },
  examples = {
    { "microscope query flame -o flame.html", "the whole of ./microscope.usprof" },
    { "microscope query flame -o burst.html -- --from 2 --to 2.5", "half a second of it" },
  },
  run = function(ctx, args)
    local m, cap = ctx.microscope, ctx.cap
    local keys = m.keys(cap, { by = args.lines and "line" or "function" })
    local selection = ctx.selection({ thread = args.thread, from_ns = (args.from or 0) * 1e9,
      to_ns = (args.to or math.huge) * 1e9 })
    local tree = assert(m.tree(cap, keys, selection))
    local summary = m.summary(cap)
    m.write_flame(cap, keys, tree, {
      title = args.title or summary.meta.command or summary.program,
      subtitle = ("%s samples, %s"):format(m.count(tree.samples), m.amount(tree.weight, tree.unit)),
    }, ctx.out)
  end,
}
