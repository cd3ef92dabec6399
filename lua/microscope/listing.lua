--- listing.lua - the code of functions, read from the image that was recorded.
--
--   local listing, err = require("microscope.listing").open { path =, build_id =, ... }
--   listing:add(address, linkage_name)
--   for row in listing:rows() do print(row.address, row.text) end
--   listing:close()
--
-- core/annotate/listing.h says what proves an image.  A listing is kept open until it is closed.

local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C
local source_type, row_type = ffi.typeof("struct mic_listing_source"),
  ffi.typeof("struct mic_listing_row")
local frames_type, handle_type = ffi.typeof("struct mic_listing_frame[?]"),
  ffi.typeof("struct mic_listing *[1]")

-- Inlined functions at one address; the image's reader gives at most as many.
local FRAMES = 128

local M = {}

local live = {}

local Listing = {}
Listing.__index = Listing

--- Open the image of a listing: source.path, build_id ("" for none), inode, file_size and
-- recorded_at_ns (which prove an image without build ID), debug_dir (or nil), intel (true for
-- Intel's syntax).  The listing, or nil and an error as microscope.core makes them.
function M.open(source)
  local raw, handle, err = source_type(), handle_type(), core.new_error()
  raw.size = ffi.sizeof(source_type)
  raw.intel = source.intel and 1 or 0
  raw.path, raw.build_id, raw.debug_dir = source.path, source.build_id, source.debug_dir
  raw.inode, raw.file_size = source.inode or 0, source.file_size or 0
  raw.recorded_at_ns = source.recorded_at_ns or 0
  if C.mic_listing_open(raw, handle, err) ~= 0 then return nil, core.error(err) end
  local self = setmetatable({ _handle = handle, _frames = frames_type(FRAMES) }, Listing)
  live[self] = true
  return self
end

--- Close it: nothing that it gave changes, it can only not be asked any more.  Twice is fine.
function Listing:close()
  if not live[self] then return end
  live[self] = nil
  C.mic_listing_close(self._handle[0])
  self._handle[0] = nil
end

--- Add the function of a linkage name that runs at an address (a number or u64) of the image's
-- own: true, or nil and an error, as when another function is there.
function Listing:add(address, linkage_name)
  local err = core.new_error()
  return core.check(C.mic_listing_add(self._handle[0], address, linkage_name, err), err)
end

--- Decode all that was added: a list of instructions, by address:
-- {address= (number), length=, range=, text=, bytes= (a Lua string)}.  nil and an error when
-- the image does not hold what its symbols say.
function Listing:decode()
  local handle, err, out = self._handle[0], core.new_error(), {}
  if C.mic_listing_decode(handle, err) ~= 0 then return nil, core.error(err) end
  local row = row_type()
  for i = 0, tonumber(C.mic_listing_rows(handle)) - 1 do
    C.mic_listing_row(handle, i, row)
    out[i + 1] = {
      address = tonumber(row.address),
      length = row.length,
      range = row.range,
      text = ffi.string(row.text),
      bytes = row.bytes ~= nil and ffi.string(row.bytes, row.length) or "",
    }
  end
  return out
end

local function text_of(pointer)
  if pointer ~= nil then return ffi.string(pointer) end
end

--- The functions at instruction number i (from 1) of what decode gave, the innermost inlined one
-- first: a list of {name=, linkage_name=, file= (or nil), line= (or nil)}.
function Listing:frames(i)
  local frames, out = self._frames, {}
  local count = C.mic_listing_frames(self._handle[0], i - 1, frames, FRAMES)
  for k = 0, math.min(count, FRAMES) - 1 do
    out[k + 1] = {
      name = ffi.string(frames[k].name),
      linkage_name = ffi.string(frames[k].linkage_name),
      file = text_of(frames[k].file),
      line = frames[k].line ~= 0 and frames[k].line or nil,
    }
  end
  return out
end

--- What the image is: {path=, written_ns= (number; 0 for the vDSO), problem= (or nil)}.
function Listing:image()
  local handle = self._handle[0]
  return {
    path = ffi.string(C.mic_listing_path(handle)),
    written_ns = tonumber(C.mic_listing_written_ns(handle)),
    problem = text_of(C.mic_listing_problem(handle)),
  }
end

return M
