--- plugins: what extends microscope here, where each came from, and why one is not read.

local plugins = require("microscope.plugins")
local result_table = require("microscope.report.table")
local text = require("microscope.report.text")

local M = {
  name = "plugins",
  summary = "List presets, queries, reports, formats and commands, yours and shipped.",
  examples = {
    { "microscope plugins", "all of them, and why one is not used" },
    { "microscope plugins queries --format json", "one kind, for programs" },
    { "microscope plugins --folders", "where yours are looked for" },
  },
}

function M.options(parser)
  parser:argument("kind"):args("?"):choices(plugins.KINDS)
    :description("Only this kind: " .. table.concat(plugins.KINDS, ", ") .. ".")
  parser:flag("--folders"):description("List the folders that are looked into instead.")
  parser:option("--format"):argname("FORMAT"):choices { "text", "json", "csv" }:default("text")
    :show_default(false):description("text (the default), json or csv.")
end

local function folders(kinds)
  local rows = {}
  for _, kind in ipairs(kinds) do
    for _, folder in ipairs(plugins.folders(kind)) do
      rows[#rows + 1] = { kind, folder.user and "yours" or "shipped", folder.path }
    end
  end
  return { columns = { { name = "kind" }, { name = "from" }, { name = "folder" } }, rows = rows }
end

local function listing(kinds)
  local rows = {}
  for _, kind in ipairs(kinds) do
    for _, entry in ipairs(plugins.list(kind)) do
      local problem = entry.problem and entry.problem:gsub("\n.*", "")
      rows[#rows + 1] = { kind, entry.name, entry.user and "yours" or "shipped",
        problem and "not used: " .. problem or entry.summary, entry.path }
    end
  end
  return { columns = { { name = "kind" }, { name = "name" }, { name = "from" },
    { name = "summary" }, { name = "path" } }, rows = rows }
end

function M.run(args)
  local kinds = args.kind and { args.kind } or plugins.KINDS
  local result = (args.folders and folders or listing)(kinds)
  -- The path is why one asks: lines are not cut.
  result_table.write(result, args.format, nil, function(...) io.stdout:write(...) end)
  if not args.folders and args.format == "text" and not args.kind then
    io.stdout:write("\nyours are looked for in ", text.escape(
      (plugins.folders("KIND")[1] or {}).path or "no folder"), "\n")
  end
  return 0
end

return M
