--- query: run a query over captures: a script, a shipped or own query by name, an expression.

local cli = require("microscope.cli")
local manifest = require("microscope.manifest")
local plugins = require("microscope.plugins")
local result_table = require("microscope.report.table")
local runner = require("microscope.runner")
local text = require("microscope.report.text")

local M = {
  name = "query",
  summary = "Ask a capture a question of your own, or a shipped one, in Lua.",
  usage = "query [OPTIONS] NAME|SCRIPT.lua [FILE...] [-- ARGS]\n"
    .. "       microscope query [OPTIONS] -e EXPRESSION [FILE...]\n"
    .. "       microscope query --list",
  takes_rest = true,
  examples = {
    { "microscope query --list", "the queries that are there" },
    { "microscope query hot-lines", "one of them over ./microscope.usprof" },
    { "microscope query hot-lines --help", "what it takes" },
    { "microscope query hot-lines server.usprof -- --limit 5", "with an argument of its own" },
    { "microscope query flame -o flame.html", "a flame graph for the browser" },
    { "microscope query modules --where 'thread ~ worker'", "of some of the samples" },
    { "microscope query ./mine.lua server.usprof --format csv", "a script of yours" },
    { "microscope query -e 'cap:rows(\"samples\")'", "an expression" },
  },
}

local DEFAULT_FILE = "microscope.usprof"

local TAKES_WORD = { ["--format"] = true, ["-o"] = true, ["--output"] = true, ["--where"] = true,
  ["--source"] = true }

-- Options that stand before a query's name or after it.
local function common(parser)
  parser:option("--format"):argname("FORMAT"):choices { "text", "json", "csv" }
    :description("How a result is written: text (the default), json or csv.")
  parser:option("--where"):argname("EXPR")
    :description("Only samples for which it holds, as 'thread ~ worker and time > 2s'.")
  parser:option("--source"):argname("NAME")
    :description("What was measured, where it was more than one thing.")
  parser:option("-o --output"):argname("FILE"):description("Write there instead of to stdout.")
end

function M.options(parser)
  parser:argument("name"):args("?"):description("A query's name, or a script's path.")
  parser:argument("file"):args("*"):description("Captures (./" .. DEFAULT_FILE .. ").")
  parser:option("-e --expression"):argname("EXPRESSION")
    :description("Evaluate Lua: `cap` is the capture, the API's functions are at hand.")
  parser:flag("--list"):description("List the queries that are there.")
  common(parser)
end

-- The words without the command; what of them are options before the name; the name; the rest.
local function split(words)
  local before, i = {}, 2
  while i <= #words do
    local word = words[i]
    if word:sub(1, 1) ~= "-" or word == "-" then break end
    before[#before + 1] = word
    if TAKES_WORD[word] then
      i = i + 1
      before[#before + 1] = words[i]
    elseif word == "-e" or word == "--expression" or word == "--list" then
      return before, nil
    end
    i = i + 1
  end
  local name, after = words[i], {}
  for k = i + 1, #words do after[#after + 1] = words[k] end
  return before, name, after
end

-- The parser of a query's command line: its own options beside the common ones.
local function parser_of(plugin)
  local parser = cli.own_parser("microscope query " .. plugin.name,
    plugin.description or plugin.summary)
  local own = manifest.usage(plugin)
  parser:usage(("Usage: microscope query %s [OPTIONS] [FILE...]%s"):format(plugin.name,
    own ~= "" and " [-- " .. own .. "]" or ""))
  parser:argument("file"):args("*"):description("Captures (./" .. DEFAULT_FILE .. ").")
  common(parser)
  manifest.add_options(parser, plugin, false)
  return cli.finish_parser(parser, plugin.examples)
end

local function load_query(name)
  local plugin, why = plugins.code("queries", name)
  if plugin then return plugin end
  if why:match("^no query") then why = why .. " (microscope query --list shows what is there)" end
  cli.fail("%s", why)
end

--- `query NAME --help`: the query's help; nil for the command's own.
function M.help(words)
  local _, name = split(words)
  if not name then return nil end
  local plugin = load_query(name)
  return parser_of(plugin):get_help() .. manifest.arguments_help(plugin)
end

local function list(format, out)
  local rows = {}
  for _, entry in ipairs(plugins.list("queries")) do
    if entry.problem then
      io.stderr:write("microscope query: ", text.escape(entry.problem), "\n")
    else
      rows[#rows + 1] = { entry.name, entry.user and "yours" or "shipped", entry.summary }
    end
  end
  result_table.write({ columns = { { name = "query" }, { name = "from" }, { name = "summary" } },
    rows = rows }, format, text.columns(), out)
end

local function write(...)
  local ok, why = io.stdout:write(...)
  if not ok then cli.fail("cannot write the result: %s", why) end
end

-- Run fn(out) with what path names as its output: a file appears under its name when it is whole.
local function with_output(path, fn)
  if not path then return fn(write) end
  local ok, err = require("microscope.output").with(path, nil, function(file)
    fn(function(...) file:write(...) end)
  end)
  if not ok then cli.fail("%s", tostring(err)) end
end

-- Open, run fn(caps) and close, also when it raises.
local function with_captures(paths, fn)
  local caps, why = runner.open(#paths > 0 and paths or { DEFAULT_FILE })
  if not caps then cli.fail("%s", why) end
  local ok, err = pcall(fn, caps)
  runner.close(caps)
  if not ok then error(err, 0) end
end

local function evaluate(expression, paths, options)
  if plugins.is_secure() then cli.fail("an expression%s", plugins.SECURE) end
  local evaluator = require("microscope.evaluator")
  with_captures(paths, function(caps)
    local chunk, why = evaluator.compile(expression, evaluator.environment(caps, options.out),
      "expression")
    if not chunk then cli.fail("%s", why) end
    local ok, err = evaluator.run(chunk, options)
    if not ok then cli.fail("%s", err) end
  end)
end

-- A query by its name or path, with the words after it and those after "--".
local function run_query(name, words, rest, args)
  local plugin = load_query(name)
  local parsed = parser_of(plugin):parse(words)
  local own_parser = cli.finish_parser(manifest.parser(plugin, "microscope query " .. plugin.name))
  own_parser.error = function(_, message) cli.misuse("%s: %s", plugin.name, message) end
  local own, why = manifest.collect(plugin, { own_parser:parse(rest or {}), parsed })
  if not own then cli.misuse("%s", why) end
  local path, format = parsed.output or args.output, parsed.format or args.format
  if format and plugin.writes then
    cli.misuse("%s writes %s: --format does not go with it", plugin.name, plugin.writes)
  end
  with_captures(parsed.file, function(caps)
    with_output(path, function(out)
      local done, err = runner.run(plugin, caps, { args = own, out = out,
        chosen = { where = parsed.where or args.where, source = parsed.source or args.source },
        format = format, width = not path and text.columns() or nil })
      if not done then cli.fail("%s", err) end
    end)
  end)
end

function M.run(args)
  if args.list then
    with_output(args.output, function(out) list(args.format or "text", out) end)
  elseif args.expression then
    if args.where or args.source then
      cli.misuse("--where and --source do not go with -e: selection(cap, { where = ... }) chooses")
    end
    local paths = args.file
    if args.name then table.insert(paths, 1, args.name) end
    with_output(args.output, function(out)
      evaluate(args.expression, paths, { format = args.format, out = out,
        width = not args.output and text.columns() or nil })
    end)
  elseif args.query_name then
    run_query(args.query_name, args.after, args.rest, args)
  else
    cli.misuse("which query? Give its name, a script's path or -e EXPRESSION"
      .. " (microscope query --list)")
  end
  return 0
end

--- The words that the command's parser gets: a query's own options are not its business.
-- args.query_name and args.after are what it leaves out.
function M.before_parse(words)
  local before, name, after = split(words)
  if not name then return words, {} end
  table.insert(before, 1, words[1])
  return before, { query_name = name, after = after }
end

return M
