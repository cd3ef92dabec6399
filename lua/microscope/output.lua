--- output.lua - write a file that appears whole or not at all, compressed where asked.
--
--   output.with("stacks.folded.gz", function(out) out:write("main;work 7\n") end)
--
-- "-" is standard output; a pipe or a terminal gets the bytes as they come.

local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C

local M = {}

local handle_type = ffi.typeof("struct mic_output *[1]")

-- Pieces gathered in Lua before one call hands them over.
local PIECES = 512

local COMPRESSIONS = { plain = C.MIC_PLAIN, gzip = C.MIC_GZIP, zstd = C.MIC_ZSTD }

local Output = {}
Output.__index = Output

--- The compression that a path's name asks for ("gzip" for .gz, "zstd" for .zst, else "plain"),
-- and the path without that ending.
function M.compression_of(path)
  if path:match("%.gz$") then return "gzip", (path:gsub("%.gz$", "")) end
  if path:match("%.zst$") then return "zstd", (path:gsub("%.zst$", "")) end
  return "plain", path
end

--- Begin a file: an output, or nil and an error.  compression: "plain", "gzip", "zstd", or nil
-- for what the path's name asks for.
function M.open(path, compression)
  local handle, err = handle_type(), core.new_error()
  local kind = COMPRESSIONS[compression or M.compression_of(path)]
  if C.mic_output_open(path, kind, handle, err) ~= 0 then return nil, core.error(err) end
  return setmetatable({ path = path, _handle = handle, _pieces = {}, _count = 0 }, Output)
end

local function flush(out)
  if out._count == 0 then return end
  local text = table.concat(out._pieces, "", 1, out._count)
  out._count = 0
  C.mic_output_write(out._handle[0], text, #text)
end

--- Write strings and numbers.  A failed write raises the error that `with` gives.
function Output:write(...)
  for i = 1, select("#", ...) do
    self._count = self._count + 1
    self._pieces[self._count] = (select(i, ...))
  end
  if self._count < PIECES then return end
  flush(self)
  if C.mic_output_failed(self._handle[0]) ~= 0 then
    local _, err = self:finish()
    error(err, 0)
  end
end

--- The raw `struct mic_output *`, for writers in the core.
function Output:handle()
  flush(self)
  return self._handle[0]
end

--- Flush and publish it: true, or nil and an error.
function Output:finish()
  if self._handle[0] == nil then return true end
  flush(self)
  local handle, err = self._handle[0], core.new_error()
  self._handle[0] = nil
  return core.check(C.mic_output_finish(handle, err), err)
end

--- Leave no file; after finish it does nothing.
function Output:discard()
  if self._handle[0] == nil then return end
  C.mic_output_discard(self._handle[0])
  self._handle[0] = nil
end

local function conclude(out, ok, result, err)
  if not ok then
    out:discard()
    error(result, 0)
  elseif result == nil and err ~= nil then
    out:discard()
    return nil, err
  end
  return out:finish()
end

--- Open path, give fn the output and finish it; fn that raises, or returns nil and an error,
-- leaves no file.  true, or nil and the error.
function M.with(path, compression, fn)
  local out, err = M.open(path, compression)
  if not out then return nil, err end
  return conclude(out, pcall(fn, out))
end

return M
