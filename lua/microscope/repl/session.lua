--- session.lua - read, evaluate, print: until the input ends.
--
-- Ctrl-C ends what runs: every 1000 instructions of interpreted code look whether it was pressed.
-- What is typed is interpreted for that reason.  A loop of the API or of a file that LuaJIT has
-- compiled does not look: it ends by itself, or a second Ctrl-C ends the program.

local core = require("microscope.core")
local evaluator = require("microscope.evaluator")
local plugins = require("microscope.plugins")
local runner = require("microscope.runner")
local text = require("microscope.report.text")

local C = core.C

local M = {}

local PROMPT, MORE = "> ", ">> "
-- A prompt answers at once: some microseconds of interpreted code between two looks.
local INSTRUCTIONS = 1000

local Interrupted = setmetatable({}, { __tostring = function() return "interrupted" end })

-- Once pressed it holds until the statement has ended: a pcall in what runs catches one error.
local stopping = false

local function look()
  stopping = stopping or C.mic_host_interrupted() == 1
  if stopping then error(Interrupted, 0) end
end

-- run(name, args): a query over the session's captures.
local function run_query(session, name, args)
  local plugin, why = plugins.code("queries", name)
  if not plugin then error(why, 0) end
  local manifest = require("microscope.manifest")
  local own
  own, why = manifest.collect(plugin, { args or {} })
  if not own then error(why, 0) end
  local ok, err = runner.run(plugin, session.caps, { args = own, out = session.out,
    width = session.width })
  if not ok then error(err, 0) end
end

local function environment(session)
  local help = require("microscope.repl.help")
  local env = evaluator.environment(session.caps, session.out)
  rawset(env, "help", setmetatable({}, {
    __call = function(_, topic) help.show(env, topic, session.out) end,
    __tostring = function()
      help.show(env, nil, session.out)
      return ""
    end,
  }))
  rawset(env, "run", function(name, args) run_query(session, name, args) end)
  return env
end

-- Read a whole statement, of several lines where one is not enough.  Gives the chunk; nil and why:
-- "end", or a line to say.
local function read_statement(session)
  local source, prompt = "", PROMPT
  local function complete(line)
    return require("microscope.repl.complete").complete(session.env, line, session.width)
  end
  while true do
    local line, why = session.reader:read(prompt, complete)
    if not line then
      if why == "interrupted" then return nil, source == "" and "" or "dropped" end
      if source ~= "" then return nil, "the input ends within a statement", true end
      return nil, "end"
    end
    -- "= x" is a habit from elsewhere.
    if source == "" then line = line:gsub("^%s*=", "") end
    -- An empty line drops what is not whole, at a terminal; in a file it may stand anywhere.
    local dropped = source ~= "" and line:match("^%s*$") and session.interactive
    source = source == "" and line or source .. "\n" .. line
    if source:match("^%s*$") then return nil, "" end
    local chunk, err, unfinished = evaluator.compile(source, session.env, "input")
    if chunk or not unfinished or dropped then
      session.reader:remember(source:gsub("%s*\n%s*", " "))
      return chunk, err
    end
    prompt = MORE
  end
end

local function evaluate(session, chunk)
  jit.off(chunk, true)
  C.mic_host_watch_interrupt(1)
  stopping = false
  debug.sethook(look, "", INSTRUCTIONS)
  local ok, err = evaluator.run(chunk, { out = session.out, width = session.width })
  debug.sethook()
  C.mic_host_watch_interrupt(session.interactive and 1 or 0)
  return ok, err
end

local function say(session, line)
  io.stdout:flush()
  local to = session.interactive and io.stdout or io.stderr
  to:write(text.escape(line), "\n")
  to:flush()
end

-- Until the input ends: how many statements failed.
local function loop(session)
  local failed = 0
  while true do
    local chunk, why, cut = read_statement(session)
    if why == "end" then break end
    local ok = true
    if chunk then ok, why = evaluate(session, chunk) end
    if not chunk and why ~= "" or not ok then
      if not (session.interactive and why == "dropped") then
        failed = failed + 1
        say(session, why)
      end
    end
    io.stdout:flush()
    if cut then break end
  end
  return failed
end

--- Run a session over open captures.  options: reader (lines.lua), interactive, out(...), width.
-- Gives the exit status: 1 when lines from elsewhere failed.
function M.run(caps, options)
  local session = { caps = caps, reader = options.reader, interactive = options.interactive,
    out = options.out, width = options.width }
  session.env = environment(session)
  if session.interactive then
    C.mic_host_watch_interrupt(1)
    session.out("microscope ", require("microscope.cli").version, " on ",
      text.escape(caps[1].path), '; help() says what there is, Ctrl-D ends\n')
  end
  io.stdout:flush()
  local failed = loop(session)
  C.mic_host_watch_interrupt(0)
  if session.interactive then session.out("\n") end
  return not session.interactive and failed > 0 and 1 or 0
end

return M
