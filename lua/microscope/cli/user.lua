--- user.lua - a user's own commands: plugins of the kind `commands`.
--
-- A command that is asked for by name is read alone; all are read for the help of the program.
-- One that fails is said on stderr and does not stop the others.

local cli = require("microscope.cli")
local manifest = require("microscope.manifest")
local plugins = require("microscope.plugins")
local text = require("microscope.report.text")

local M = {}

-- Commands by name, and why a name is none: read once.
local read, problems = {}, {}

local function adapter(plugin)
  return {
    name = plugin.name,
    summary = plugin.summary,
    description = plugin.description,
    examples = plugin.examples,
    options = function(parser) manifest.add_options(parser, plugin, true) end,
    run = function(args)
      local own, why = manifest.collect(plugin, { args })
      if not own then cli.misuse("%s", why) end
      local runner = require("microscope.runner")
      local ok, err = runner.run(plugin, {}, { args = own, width = text.columns(),
        out = function(...) io.stdout:write(...) end })
      if not ok then cli.fail("%s", err) end
      return 0
    end,
  }
end

--- The command of that name, or nil and why there is none.
function M.command(name)
  if not read[name] and not problems[name] then
    local plugin, why = plugins.code("commands", name)
    if plugin then
      plugin.kind = "commands"
      read[name] = adapter(plugin)
    else
      problems[name] = why
    end
  end
  return read[name], problems[name]
end

local function say(line) io.stderr:write("microscope: ", text.escape(line), "\n") end

--- The names of those that can be used; with `loud` why the others cannot is said.
function M.names(loud)
  local out = {}
  for _, entry in ipairs(plugins.list("commands")) do
    if not entry.problem then
      out[#out + 1] = entry.name
    elseif loud then
      say(entry.problem)
    end
  end
  return out
end

-- Those to be read for a first word: a list of names.
local function wanted(word)
  if word == nil or word == "-h" or word == "--help" then return M.names(true) end
  if word:find("[/%c]") or word:sub(1, 1) == "-" then return {} end
  local path = plugins.users_file("commands", word)
  if cli.is_own(word) then
    if path then say(path .. " is not used: " .. word .. " is a command of microscope's own") end
    return {}
  end
  return path and { word } or {}
end

--- Iterate over the commands to be offered for a command line's first word: name, command.
function M.commands(word)
  local names, i = wanted(word), 0
  return function()
    while true do
      i = i + 1
      local name = names[i]
      if not name then return nil end
      local command, why = M.command(name)
      if command then return name, command end
      -- Asked for by its name, why there is none is the answer.
      if name == word then cli.fail("%s", why) end
      say(why)
    end
  end
end

return M
