--- cli - the command line: one file a command, and what they share.
--
-- A command's file gives a table:
--   name, summary   as in `microscope --help`
--   examples        pairs of a command line and what it is for
--   takes_program   true when a program and its arguments follow the options
--   takes_rest      true when words after "--" are for something else: they come as args.rest
--   before_parse(words) the words that its parser gets, and fields for args
--   help(words)     a help of another thing than the command, or nil
--   options(parser) adds its options (lua-argparse)
--   run(args)       gives the exit status: 0 done, 1 failed, 2 misused
-- M.fail and M.misuse end a command with one line on stderr and status 1 or 2.

local argparse = require("argparse")

local M = {}

M.version = "0.1.0"

local COMMANDS = {
  "record",
  "report",
  "symbolize",
  "query",
  "repl",
  "convert",
  "plugins",
  "doctor",
  "lua-path",
  "completion",
}

-- What a command throws to end with one line, or with text for stdout (help).
local Stop = { passes = true }

--- End the command: it could not do what was asked.
function M.fail(format, ...)
  error(setmetatable({ status = 1, message = format:format(...) }, Stop), 0)
end

--- End the command: it was asked for what it does not have.
function M.misuse(format, ...)
  error(setmetatable({ status = 2, message = format:format(...) }, Stop), 0)
end

local function stop_with_text(text)
  error(setmetatable({ status = 0, text = text }, Stop), 0)
end

--- Whether a word is a command of microscope's own.
function M.is_own(word)
  for _, name in ipairs(COMMANDS) do
    if name == word then return true end
  end
  return false
end

local function module_of(name)
  if M.is_own(name) then return require("microscope.cli." .. name:gsub("-", "_")) end
  return require("microscope.cli.user").command(name)
end

local function add_help(parser)
  parser:flag("-h --help"):description("Show this help."):action(function()
    stop_with_text(parser:get_help())
  end)
end

-- In help: "-o, --output FILE", where argparse would take a line for each name.
local function one_line_label(option)
  function option:_get_label_lines()
    local words = self:_get_argument_list()
    table.insert(words, 1, table.concat(self._public_aliases, ", "))
    return { table.concat(words, " ") }
  end
end

local function examples_text(examples)
  local lines = { "Examples:" }
  for _, example in ipairs(examples) do
    lines[#lines + 1] = "  " .. example[1]
    lines[#lines + 1] = "      " .. example[2]
  end
  return table.concat(lines, "\n")
end

-- Names of options or commands, as messages list them.
local function names_of(elements)
  local out = {}
  for _, element in ipairs(elements) do
    if not element._hidden then out[#out + 1] = table.concat(element._aliases, ", ") end
  end
  return table.concat(out, ", ")
end

-- argparse's words, in one line, with what would have been valid.
local function on_usage_error(parser, message)
  message = message:gsub("\nDid you mean .*$", "")
  local negative = message:match("^unknown option '(%-%.?%d.*)'$")
  if negative then
    message = ("'%s' is below 0: no option takes that"):format(negative)
  elseif message:match("^unknown option") then
    message = ("%s; %s takes %s"):format(message, parser:_get_fullname(), names_of(parser._options))
  elseif message:match("^unknown command") or message:match("^a command is required") then
    local users = require("microscope.cli.user").names()
    message = ("%s; commands are %s"):format(message, table.concat(COMMANDS, ", ")
      .. (#users > 0 and "; yours: " .. table.concat(users, ", ") or ""))
  end
  M.misuse("%s", message)
end

-- A command's own parser, under that of all commands.
local function add_command(parser, name, command)
  local sub = parser:command(name):summary(command.summary)
    :description(command.description or command.summary):add_help(false)
  if command.examples then sub:epilog(examples_text(command.examples)) end
  add_help(sub)
  command.options(sub)
  for _, option in ipairs(sub._options) do one_line_label(option) end
  if command.usage then sub:usage("Usage: microscope " .. command.usage) end
  return sub
end

--- A parser as those of commands are: help and errors in this program's form.
function M.own_parser(name, description)
  local parser = argparse(name):description(description):add_help(false)
    :help_max_width(80):usage_max_width(80):help_description_margin(27)
  parser.error = on_usage_error
  return parser
end

--- Give a parser of M.own_parser its last touch, when all options are there: its help.
function M.finish_parser(parser, examples)
  if examples and #examples > 0 then parser:epilog(examples_text(examples)) end
  add_help(parser)
  for _, option in ipairs(parser._options) do one_line_label(option) end
  return parser
end

--- The parser of commands, and each command's by name.  words are the command line: when it names
-- a command only that one's file is read; without words, as for completions, those of all are.
function M.parser(words)
  local parser = argparse("microscope")
    :description("An exact profiler for Linux: records a program and reports where its time went.")
    :require_command(true):command_target("command"):add_help(false)
    :help_max_width(80):usage_max_width(80):help_description_margin(27)
    :epilog("microscope COMMAND --help tells about a command.")
  add_help(parser)
  parser:flag("--version"):description("Show the version."):action(function()
    stop_with_text("microscope " .. M.version)
  end)
  parser.error = on_usage_error
  local by_name = {}
  local first = words and words[1]
  for _, name in ipairs(M.is_own(first) and { first } or COMMANDS) do
    by_name[name] = add_command(parser, name, module_of(name))
  end
  for name, command in require("microscope.cli.user").commands(first) do
    by_name[name] = add_command(parser, name, command)
  end
  return parser, by_name
end

-- Whether the option at word `i` takes the word after it as its argument; nil: no such option,
-- which argparse will say better.
local function takes_next(by_alias, word)
  if word:sub(1, 2) == "--" then
    local option = not word:find("=", 1, true) and by_alias[word]
    return option and option._minargs > 0
  end
  for i = 2, #word do
    local option = by_alias["-" .. word:sub(i, i)]
    if not option then return false end
    if option._minargs > 0 then return i == #word end
  end
  return false
end

-- The words from number i on.  unpack would fail at some thousands of them.
local function words_from(words, i)
  local out = {}
  for k = i, #words do out[#out + 1] = words[k] end
  return out
end

--- Where a command line turns from options to the program: the words before, and the program
-- with its arguments ("--" itself dropped).  A program's own options are its own.
function M.split_program(parser, words)
  local by_alias = {}
  for _, option in ipairs(parser._options) do
    for _, alias in ipairs(option._aliases) do by_alias[alias] = option end
  end
  local options, i = {}, 1
  while i <= #words do
    local word = words[i]
    if word == "--" then
      return options, words_from(words, i + 1)
    elseif word:sub(1, 1) ~= "-" or word == "-" then
      return options, words_from(words, i)
    end
    options[#options + 1] = word
    if takes_next(by_alias, word) and words[i + 1] then
      i = i + 1
      options[#options + 1] = words[i]
    end
    i = i + 1
  end
  return options, {}
end

-- The words before the first "--", and those after it (nil without one).
local function split_rest(words)
  for i, word in ipairs(words) do
    if word == "--" then
      local before = {}
      for k = 1, i - 1 do before[k] = words[k] end
      return before, words_from(words, i + 1)
    end
  end
  return words, nil
end

local function asks_for_help(words)
  for _, word in ipairs(words) do
    if word == "-h" or word == "--help" then return true end
  end
end

local function run(argv)
  local words, program, rest = words_from(argv, 1), nil, nil
  local parser, by_name = M.parser(words)
  local command = by_name[argv[1]] and module_of(argv[1])
  if command and command.takes_program then
    words, program = M.split_program(by_name[argv[1]], words_from(argv, 2))
    table.insert(words, 1, argv[1])
  elseif command and command.takes_rest then
    words, rest = split_rest(words)
    local help = command.help and asks_for_help(words) and command.help(words, by_name[argv[1]])
    if help then stop_with_text(help) end
  end
  local more = {}
  if command and command.before_parse then words, more = command.before_parse(words) end
  local args = parser:parse(words)
  args.program, args.rest = program, rest
  for name, value in pairs(more) do args[name] = value end
  return module_of(args.command).run(args) or 0
end

-- What ended a command, in one line on stderr.
local function say(name, message)
  -- Messages hold words and paths as they were given: one line, nothing a terminal acts on.
  io.stderr:write("microscope", name and " " .. name or "", ": ",
    require("microscope.report.text").escape(message), "\n")
end

--- Say on stderr why a part of a command failed, as M.fail and M.misuse threw it, when the others
-- go on.  Gives the status.
function M.say_stop(name, err)
  if getmetatable(err) ~= Stop or err.text then error(err, 0) end
  say(name, err.message)
  return err.status
end

--- Run a command line: argv[0] is the program, argv[1..] its words.  Gives the exit status.
function M.main(argv)
  local traceback
  local ok, status = xpcall(function() return run(argv) end, function(err)
    if getmetatable(err) ~= Stop then traceback = debug.traceback(tostring(err), 2) end
    return err
  end)
  if ok then return status end
  if traceback then error(traceback, 0) end
  local stop = status
  if stop.text then
    io.stdout:write(stop.text, "\n")
  else
    say(M.is_own(argv[1]) and argv[1], stop.message)
  end
  return stop.status
end

return M
