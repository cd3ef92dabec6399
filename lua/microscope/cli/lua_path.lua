--- lua-path: what LUA_PATH must be for a plain luajit to `require "microscope"`.

local core = require("microscope.core")

local M = {
  name = "lua-path",
  summary = "Print the LUA_PATH with which plain luajit can require microscope.",
  examples = {
    { 'LUA_PATH="$(microscope lua-path)" luajit my-analysis.lua',
      "run a script that requires microscope" },
  },
}

function M.options() end

function M.run()
  local folder = core.prefix .. "/share/microscope/lua"
  -- What is spelt out is LuaJIT's own default without its ./?.lua: two semicolons, which stand for
  -- all of it, would have code loaded from the current directory.
  local patterns = { folder .. "/?.lua", folder .. "/?/init.lua" }
  for pattern in package.path:gmatch("[^;]+") do
    local own = pattern:sub(1, #folder + 1) == folder .. "/"
    if pattern:sub(1, 1) == "/" and not own then patterns[#patterns + 1] = pattern end
  end
  io.stdout:write(table.concat(patterns, ";"), "\n")
  return 0
end

return M
