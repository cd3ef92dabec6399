--- completion: a shell's completions for microscope.

local cli = require("microscope.cli")

local M = {
  name = "completion",
  summary = "Print completions for a shell.",
  examples = {
    { 'eval "$(microscope completion bash)"', "complete in this bash" },
    { "microscope completion zsh > ~/.zfunc/_microscope", "in zsh, with ~/.zfunc in fpath" },
    { "microscope completion fish > ~/.config/fish/completions/microscope.fish", "in fish" },
  },
}

function M.options(parser)
  parser:argument("shell"):description("bash, zsh or fish."):choices { "bash", "zsh", "fish" }
end

function M.run(args)
  local parser = cli.parser()
  local text = {
    bash = parser.get_bash_complete,
    zsh = parser.get_zsh_complete,
    fish = parser.get_fish_complete,
  }
  io.stdout:write(text[args.shell](parser))
  return 0
end

return M
