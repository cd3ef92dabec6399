-- sandwich: a function between those that call it and those it calls.

return {
  summary = "Who calls a function, what it costs itself, and whom it calls.",
  description = "A function between its callers and its callees.  Callers add up to its total;"
    .. " so do its own time and its callees.  Calls of itself are no callers or callees.",
  columns = { "samples.stack", "stacks.parent" },
  arguments = {
    { name = "function", required = true,
      description = "Its name, NAME@MODULE, NAME@FILE:LINE, a glob or /regex/." },
  },
  options = {
    { name = "limit", type = "count", default = 15, argname = "N",
      description = "How many callers and callees to show." },
  },
  examples = {
    { "microscope query sandwich server.usprof -- handle_request", "around one function" },
  },
  run = function(ctx, args)
    local m, cap = ctx.microscope, ctx.cap
    local keys = m.keys(cap)
    local tree = assert(m.tree(cap, keys, ctx.selection()))
    local found, why = m.match(cap, keys, args["function"], { one = true })
    if not found then ctx.fail("%s", why) end
    local key = found.keys[1]
    local around, rows, notes = m.neighbours(tree, keys, found.mask), {}, {}
    if around.total == 0 then ctx.fail("no sample has %s", m.label(cap, keys, key)) end
    local function add(role, list)
      for i, entry in ipairs(list) do
        if i > args.limit then
          notes[#notes + 1] = m.more(#list - args.limit, role)
          break
        end
        rows[#rows + 1] = { role, entry.weight, entry.weight / around.total, entry.samples,
          entry.key and m.label(cap, keys, entry.key) or "[none: stacks begin here]" }
      end
    end
    add("caller", around.callers)
    rows[#rows + 1] = { "itself", around.self, around.self / around.total, around.self_samples,
      m.label(cap, keys, key) }
    add("callee", around.callees)
    return m.result({ { name = "role" }, { name = "weight", unit = m.unit(tree.unit) },
      { name = "share", unit = "share" }, { name = "samples", unit = "count" },
      { name = "function" } }, rows, {
      title = ("%s: %s in all, %s of the recording"):format(m.label(cap, keys, key),
        m.amount(around.total, tree.unit), m.percent(around.total / tree.weight)),
      notes = notes,
    })
  end,
}
