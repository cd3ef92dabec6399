--- repl: ask a capture questions at a prompt.

local cli = require("microscope.cli")
local text = require("microscope.report.text")

local M = {
  name = "repl",
  summary = "Ask captures questions at a prompt, in Lua.",
  usage = "repl [FILE...]",
  examples = {
    { "microscope repl server.usprof", "`cap` is the capture; help() says more" },
    { "echo 'sums(cap, \"thread\").count' | microscope repl server.usprof",
      "lines from elsewhere" },
  },
}

function M.options(parser)
  parser:argument("file"):args("*"):description("Captures (./microscope.usprof).")
  parser:flag("--no-history"):target("no_history")
    :description("Neither read nor write the history of lines.")
end

local function write(...) io.stdout:write(...) end

function M.run(args)
  local plugins = require("microscope.plugins")
  if plugins.is_secure() then cli.fail("what is typed%s", plugins.SECURE) end
  local runner = require("microscope.runner")
  local paths = #args.file > 0 and args.file or { "microscope.usprof" }
  local caps, why = runner.open(paths)
  if not caps then cli.fail("%s", why) end
  local lines = require("microscope.repl.lines")
  local interactive = text.is_terminal(0) and text.is_terminal(1)
  local reader = interactive and lines.editor { history = not args.no_history } or lines.plain()
  local ok, status = pcall(require("microscope.repl.session").run, caps, {
    reader = reader,
    interactive = interactive,
    out = write,
    width = text.columns(),
  })
  reader:close()
  runner.close(caps)
  if not ok then error(status, 0) end
  return status
end

return M
