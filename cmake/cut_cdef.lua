-- cut_cdef.lua - cut the FFI surface from the public headers.
--
--   luajit cut_cdef.lua OUT.lua OUT.c HEADER...
--
-- What stands between the lines `/* ffi:begin` and `/* ffi:end` of the headers, in the order
-- given and without comments, becomes a Lua module; a hash of it goes into both halves, so
-- that a library and a cdef of different builds refuse each other.

local bit = require("bit")
local ffi = require("ffi")

local function fail(...)
  io.stderr:write("cut_cdef: ", string.format(...), "\n")
  os.exit(1)
end

-- FNV-1a, 32 bits: the product needs 64, so it is made in a cdata integer.
local function hash(text)
  local h = 0x811c9dc5
  for i = 1, #text do
    local mixed = bit.bxor(h, text:byte(i)) % 2 ^ 32
    h = tonumber(ffi.cast("uint64_t", mixed) * 0x01000193ULL % 0x100000000ULL)
  end
  return h
end

local function strip_comments(text)
  text = text:gsub("/%*.-%*/", ""):gsub("//[^\n]*", "")
  text = text:gsub("[ \t]+\n", "\n"):gsub("\n\n+", "\n")
  return (text:gsub("^\n+", ""))
end

-- The regions of one header, comments out.
local function regions(path)
  local out, region = {}, nil
  local number = 0
  for line in io.lines(path) do
    number = number + 1
    if line:match("^/%* ffi:begin") then
      if region then fail("%s:%d: ffi:begin inside a region", path, number) end
      region = {}
    elseif line:match("^/%* ffi:end") then
      if not region then fail("%s:%d: ffi:end without ffi:begin", path, number) end
      out[#out + 1] = strip_comments(table.concat(region, "\n") .. "\n")
      region = nil
    elseif region then
      if line:match("^%s*#") then
        fail("%s:%d: a preprocessor line inside an ffi region", path, number)
      end
      region[#region + 1] = line
    end
  end
  if region then fail("%s: ffi:begin without ffi:end", path) end
  return table.concat(out)
end

-- Only a changed text is written, so that what depends on it is not rebuilt for nothing.
local function write(path, text)
  local old = io.open(path, "rb")
  if old then
    local same = old:read("*a") == text
    old:close()
    if same then return end
  end
  local file = assert(io.open(path, "wb"))
  assert(file:write(text))
  assert(file:close())
end

local out_lua, out_c = arg[1], arg[2]
local parts = {}
for i = 3, #arg do parts[#parts + 1] = regions(arg[i]) end
local cdef = table.concat(parts)
local ok, err = pcall(ffi.cdef, cdef)
if not ok then fail("LuaJIT does not take the cut text: %s", err) end
if cdef:find("]==]", 1, true) then fail("the cut text holds ]==]") end
local api = hash(cdef)

write(out_lua, string.format([[
-- Made by cmake/cut_cdef.lua from the headers' ffi regions.
return { api = 0x%08x, text = [==[
%s]==] }
]], api, cdef))
write(out_c, string.format([[
/* Made by cmake/cut_cdef.lua: the hash of the cut cdef text. */
#include "base/error.h"
#include "script/host.h"

MIC_EXPORT uint32_t mic_api(void) {
  return 0x%08xu;
}
]], api))
