-- hot-lines: the lines that cost most, with their source where it is on this machine.

-- Line number n of a file; nil when it is not there.  Each file is read once.
local function reader(m)
  local files = {}
  return function(path, n)
    if files[path] == nil then files[path] = m.source_lines(path) or false end
    return files[path] and files[path][n]
  end
end

return {
  summary = "The source lines that cost most, with their text.",
  description = "The source lines that cost most.  The text is that of the file on this machine,"
    .. " under the path that the debug information gives: it may be newer than what ran.",
  columns = { "samples.stack", "lines.line", "files.path" },
  options = {
    { name = "limit", type = "count", default = 20, argname = "N",
      description = "How many lines to show." },
    { name = "source-dir", argname = "DIR",
      description = "Look for relative paths here instead of in no place." },
  },
  examples = {
    { "microscope query hot-lines -- --limit 5", "the five lines that cost most" },
  },
  run = function(ctx, args)
    local m, cap = ctx.microscope, ctx.cap
    local keys = m.keys(cap, { by = "line" })
    local tree = assert(m.tree(cap, keys, ctx.selection()))
    local costs, source, rows = m.costs(tree, keys), reader(m), {}
    local lines, known, notes = 0, 0, {}
    for _, key in ipairs(m.ranked(costs, keys)) do
      local what = m.describe(cap, keys, key)
      local counted = what.file and what.line and costs.self[key] > 0
      if counted then lines, known = lines + 1, known + costs.self[key] end
      if counted and lines <= args.limit then
        local path = what.file
        if args.source_dir and path:sub(1, 1) ~= "/" then path = args.source_dir .. "/" .. path end
        local line = path:sub(1, 1) == "/" and source(path, what.line)
        rows[#rows + 1] = { costs.self[key] / tree.weight, costs.self[key], what.name,
          what.file:match("^.*/(.*)$") or what.file, what.line,
          line and line:match("^%s*(.*)$") or nil }
      end
    end
    if lines > #rows then notes[1] = m.more(lines - #rows, "line") end
    if known < tree.weight then
      notes[#notes + 1] = ("of %s no line is known: query losses says of which modules"):format(
        m.percent((tree.weight - known) / tree.weight))
    end
    return m.result({ { name = "share", unit = "share" },
      { name = "self", unit = m.unit(tree.unit) }, { name = "function" }, { name = "file" },
      { name = "line", unit = "line" }, { name = "source" } }, rows, { notes = notes })
  end,
}
