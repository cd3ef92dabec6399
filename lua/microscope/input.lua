--- input.lua - read a file of another format: decompressed, as many times as needed.

local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C

local M = {}

local handle_type, count_type = ffi.typeof("struct mic_input *[1]"), ffi.typeof("uint64_t[1]")
local bytes_type = ffi.typeof("char[?]")

-- As much as tells formats apart: a head with options or comments before the first event.
local HEAD = 64 * 1024

-- The first bytes of an input, decompressed, and how it is compressed.
local function head_of(input)
  local room, got, err = bytes_type(HEAD), count_type(), core.new_error()
  if C.mic_input_read(input, room, HEAD, got, err) ~= 0 then return nil, core.error(err) end
  local compression = C.mic_input_compression(input)
  return ffi.string(room, got[0]), compression == C.MIC_GZIP and "gzip"
    or compression == C.MIC_ZSTD and "zstd" or "plain"
end

--- The first bytes of a file, decompressed, and how it is compressed ("plain", "gzip", "zstd");
-- nil and an error.
function M.head(path) return M.with(path, head_of) end

local function conclude(handle, ok, ...)
  C.mic_input_close(handle[0])
  if not ok then error((...), 0) end
  return ...
end

--- Open path, give fn the raw `struct mic_input *` and close it: what fn returns, or nil and an
-- error.
function M.with(path, fn)
  local handle, err = handle_type(), core.new_error()
  if C.mic_input_open(path, handle, err) ~= 0 then return nil, core.error(err) end
  return conclude(handle, pcall(fn, handle[0]))
end

--- Give fn a path that leads to the bytes of `path` as often as it is opened, also where that is a
-- pipe or "-", whose bytes come once: what fn returns, or nil and an error.
function M.with_path(path, fn)
  if require("microscope.capture").is_folder(path) then return fn(path) end
  return M.with(path, function(input)
    local kept = C.mic_input_kept(input)
    return fn(kept < 0 and path or "/proc/self/fd/" .. kept)
  end)
end

--- The same for a file that is read as it lies there: where it is compressed, the path leads to
-- the decompressed bytes.
function M.with_plain_path(path, fn)
  if require("microscope.capture").is_folder(path) then return fn(path) end
  return M.with(path, function(input)
    if C.mic_input_compression(input) == C.MIC_PLAIN then return fn(path) end
    local err = core.new_error()
    if C.mic_input_unpack(input, err) ~= 0 then return nil, core.error(err) end
    return fn("/proc/self/fd/" .. C.mic_input_kept(input))
  end)
end

--- Read path by the core's decoder of that name, mic_NAME_read, into ctx.writer: what it tells of
-- the file, a `struct mic_NAME_result`, or nil and an error.  More arguments are the decoder's own,
-- which it takes after the writer.
function M.decode(path, ctx, name, ...)
  local result, err = ffi.new("struct mic_" .. name .. "_result"), core.new_error()
  local read = C["mic_" .. name .. "_read"]
  local own, count = { ... }, select("#", ...)
  own[count + 1], own[count + 2] = result, err
  local ok, why = M.with(path, function(handle)
    return core.check(read(handle, ctx.writer:handle(), unpack(own, 1, count + 2)), err)
  end)
  if not ok then return nil, why end
  return result
end

--- A protocol buffer's number, seven bits a byte, at a place of a text: it and where it ends; nil
-- past the text, and when it is longer than any can be.
function M.varint(text, at)
  local value, scale = 0, 1
  for i = at, at + 9 do
    local byte = text:byte(i)
    if not byte then return nil end
    value = value + byte % 128 * scale
    if byte < 128 then return value, i + 1 end
    scale = scale * 128
  end
end

--- Say, through ctx.lost or ctx.note, what a result counts: parts is a list of { field, format of
-- its count }; a count of 0 is not told.
function M.tell(result, parts, say)
  for _, part in ipairs(parts) do
    local count = tonumber(result[part[1]])
    if count > 0 then say(part[2], count) end
  end
end

return M
