--- microscope: what a user's script requires.
--
--   local microscope = require("microscope")
--   microscope.with_capture("server.usprof", function(cap)
--     local profile = microscope.profile(cap)
--     ...
--   end)
--
-- Outside of the program `microscope lua-path` prints what LUA_PATH must be.

local M = {}

local capture = require("microscope.capture")
local cli = require("microscope.cli")
local profile = require("microscope.query.profile")

--- The version, as `microscope --version` prints it.
M.version = cli.version

--- Open a capture: see microscope.capture.  Close it with cap:close().
M.open = capture.open

--- Open a capture, call a function with it and close it again: the usual form.
M.with_capture = capture.with

--- All that `microscope report` says of an open capture, as data: see query/profile.lua.
-- options.lines tells functions apart by source line.  nil and why for one too large to report.
function M.profile(cap, options) return profile.of(cap, options or {}) end

return M
