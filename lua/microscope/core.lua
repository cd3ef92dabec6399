--- core.lua - the door to libmicroscope.so: the only place that calls ffi.cdef and ffi.load.
--
-- The library is found beside this file's installation (PREFIX/lib, this file being
-- PREFIX/share/microscope/lua/microscope/core.lua).  A library that was built with another
-- cdef is refused: LuaJIT would take a changed signature in silence.

local ffi = require("ffi")

local cdef = require("microscope.cdef")

local M = {}

-- Rows live in maps of many gigabytes; LuaJIT without GC64 has a heap of at most 2 GB and
-- is not what captures were tested with.
if not (ffi.abi("64bit") and ffi.abi("gc64") and ffi.abi("le")) then
  error("microscope needs a 64-bit little-endian LuaJIT built with GC64", 0)
end

-- PREFIX, from this file's own name.
local function prefix()
  local file = debug.getinfo(1, "S").source:match("^@(.*)$")
  local folder = file and file:match("^(.*)/share/microscope/lua/microscope/core%.lua$")
  if not folder then
    error("microscope.core is not in an installed tree (PREFIX/share/microscope/lua): "
      .. tostring(file), 0)
  end
  return folder
end

local function load()
  local path = M.prefix .. "/lib/libmicroscope.so"
  ffi.cdef(cdef.text)
  local ok, library = pcall(ffi.load, path)
  if not ok then error("cannot load " .. path .. ": " .. tostring(library), 0) end
  local built = library.mic_api()
  if built ~= cdef.api then
    error(("%s was built from other headers (%08x) than %s/share/microscope/lua (%08x): "
      .. "install both from one build"):format(path, built, M.prefix, cdef.api), 0)
  end
  return library
end

M.prefix = prefix()
--- The library's functions and the constants of its enums.
M.C = load()
local C = M.C

local Error = {}
Error.__index = Error
Error.__tostring = function(self) return self.message end

local error_type = ffi.typeof("struct mic_error")

--- A new, empty struct mic_error for a call that fills one.
function M.new_error() return error_type() end

--- What a filled struct mic_error says, as a table that prints as its message:
-- {code = "EFORMAT", sys = errno or 0, offset = file offset, message = one line}.
function M.error(err)
  return setmetatable({
    code = ffi.string(C.mic_code_name(err.code)),
    sys = err.sys,
    offset = tonumber(err.offset),
    message = ffi.string(err.msg),
  }, Error)
end

--- The outcome of a call as Lua has it: true, or nil and M.error(err).
function M.check(code, err)
  if code == 0 then return true end
  return nil, M.error(err)
end

return M
