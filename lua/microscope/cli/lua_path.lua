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
  -- The two semicolons stand for LuaJIT's own default.
  io.stdout:write(folder, "/?.lua;", folder, "/?/init.lua;;\n")
  return 0
end

return M
