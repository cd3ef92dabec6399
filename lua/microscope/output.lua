--- output.lua - write a file that appears whole or not at all, compressed where asked.
--
--   output.with("stacks.folded.gz", function(out) out:write("main;work 7\n") end)
--
-- "-" is standard output; a pipe or a terminal gets the bytes as they come.

local ffi = require("ffi")

local core = require("microscope.core")
local json = require("microscope.report.json")

local C = core.C

local M = {}

local handle_type = ffi.typeof("struct mic_output *[1]")

-- Pieces gathered in Lua before one call hands them over, and bytes of the longest; a longer one
-- is handed over as it is.
local PIECES, LONGEST = 512, 1024

-- Texts that are remembered at a time, and bytes of them all.
local TEXTS, TEXTS_BYTES = 16384, 2 * 2 ^ 20
local OF_A_TEXT, OF_A_LONG = 64, 512 -- bytes that one takes beside its own, or in its place

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

-- A write that failed is no fault of the code that wrote (plugins.passes).
local Failed = { passes = true, __tostring = function(self) return self.message end }

local function hand_over(out)
  flush(out)
  if C.mic_output_failed(out._handle[0]) ~= 0 then
    local _, err = out:finish()
    error(setmetatable(err, Failed), 0)
  end
end

-- What is too long to be a Lua string: a string of a capture, or pieces that have one.
local Long = {}
Long.__index = Long

local function write_long(out, long)
  if not long.cap then return out:write(unpack(long)) end
  hand_over(out)
  C.mic_output_write_json(out._handle[0], long.cap:bytes(long.id))
end

--- Write strings, numbers, and what M.json and M.join give.  A failed write raises the error that
-- `with` gives.
function Output:write(...)
  for i = 1, select("#", ...) do
    local piece = (select(i, ...))
    local kind = type(piece)
    if kind == "table" then
      write_long(self, piece)
    elseif kind == "string" and #piece > LONGEST then
      hand_over(self)
      C.mic_output_write(self._handle[0], piece, #piece)
    else
      self._count = self._count + 1
      self._pieces[self._count] = piece
    end
  end
  if self._count >= PIECES then hand_over(self) end
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

--- A list of pieces as one piece of Output:write; it is the list itself where one is long.
function M.join(pieces)
  for i = 1, #pieces do
    if type(pieces[i]) == "table" then return setmetatable(pieces, Long) end
  end
  return table.concat(pieces)
end

--- What a string of a capture becomes between JSON's quotes, to be written: names may have hundreds
-- of MB, and a long one is no Lua string on the way.
function M.escaped(cap, id)
  local bytes, size = cap:bytes(id)
  if size > LONGEST then return setmetatable({ cap = cap, id = id }, Long) end
  return json.escape(ffi.string(bytes, size))
end

--- A text as JSON, to be written: a string of a capture by its id, and a text behind it; either may
-- be nil.
function M.json(cap, id, rest)
  if not id then return json.encode(rest) end
  local text = M.escaped(cap, id)
  if type(text) == "string" then return '"' .. text .. (rest and json.escape(rest) or "") .. '"' end
  return M.join { '"', text, rest and json.escape(rest) or "", '"' }
end

--- A function that gives fn's text of a key, for texts that are written again and again: some MiB
-- of them are remembered.  What fn gives is to be written; it may be a long one.
function M.remembered(fn)
  local texts, count, bytes = {}, 0, 0
  return function(key)
    local text = texts[key]
    if text then return text end
    text = fn(key)
    if count == TEXTS or bytes > TEXTS_BYTES then texts, count, bytes = {}, 0, 0 end
    texts[key], count = text, count + 1
    bytes = bytes + (type(text) == "string" and #text or OF_A_LONG) + OF_A_TEXT
    return text
  end
end

--- Open path, give fn the output and finish it; fn that raises, or returns nil and an error,
-- leaves no file.  true, or nil and the error.
function M.with(path, compression, fn)
  local out, err = M.open(path, compression)
  if not out then return nil, err end
  return conclude(out, pcall(fn, out))
end

return M
