--- capture.lua - open a capture or a folder of them; its tables and columns as FFI arrays.
--
--   local capture = require("microscope.capture")
--   capture.with("server.usprof", function(cap)
--     for rows, stack, weight in cap:blocks("samples", "stack", "weight") do
--       add_up(rows, stack, weight, total) -- a named function of plain locals stays compiled
--     end
--   end)
--
-- Opening checks the whole file, so ids in columns index other tables' columns without a check.
-- Rows and ids count from 0; an id of 0xffffffff (capture.NONE) is none; times are nanoseconds
-- since the recording's start.  docs/format.md lists the tables and columns.
--
-- Lifetimes: pointers come from the capture's own memory and die with cap:close(); strings are
-- Lua's and stay.  An open capture is kept alive by this module until it is closed: `with`
-- closes it in any case.

local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C
local new_column, new_block = ffi.typeof("struct mic_column"), ffi.typeof("struct mic_block")
local new_info = ffi.typeof("struct mic_capture_info")
local new_options = ffi.typeof("struct mic_generate_options")
local file_type = ffi.typeof("struct mic_host_file")
local handle_type, size_type = ffi.typeof("struct mic_capture *[1]"), ffi.typeof("uint64_t[1]")
local pointers = {
  [1] = ffi.typeof("const uint8_t *"),
  [2] = ffi.typeof("const uint16_t *"),
  [4] = ffi.typeof("const uint32_t *"),
  [8] = ffi.typeof("const uint64_t *"),
}
local units = {
  [C.MIC_COLUMN_UNIT_NONE] = "none",
  [C.MIC_COLUMN_UNIT_NS] = "ns",
  [C.MIC_COLUMN_UNIT_BYTES] = "bytes",
  [C.MIC_COLUMN_UNIT_COUNT] = "count",
  [C.MIC_COLUMN_UNIT_ADDRESS] = "address",
  [C.MIC_COLUMN_UNIT_LINE] = "line",
  [C.MIC_COLUMN_UNIT_ID] = "id",
  [C.MIC_COLUMN_UNIT_ENUM] = "enum",
  [C.MIC_COLUMN_UNIT_FLAGS] = "flags",
}

local M = {}

--- The id that stands for none in a u32 column.
M.NONE = 0xffffffff

-- Bytes of a string that pieces gives at a time.
local PIECE = 64 * 1024

-- Where the core says how long a string is.
local size_at = size_type()

-- Open captures: a pointer into one does not keep it alive, this table does.
local live = {}

local Capture = {}
Capture.__index = Capture
local Column = {}
Column.__index = Column

local function text_argument(value, what)
  if type(value) ~= "string" then
    error(("%s: a string, not %s"):format(what, type(value)), 3)
  end
end

-- The handle; a closed capture's memory is gone.
local function handle_of(cap, what)
  if not live[cap] then error(what .. ": the capture is closed", 3) end
  return cap._handle[0]
end

--- Whether a path is a folder, whose captures are read as one.
function M.is_folder(path)
  local facts = file_type()
  return C.mic_host_stat(path, facts) == 0 and facts.kind == C.MIC_HOST_FOLDER
end

--- Open a capture and check all of it; or a folder, whose captures (NAME.usprof) are read as one:
-- segments of a long recording, on one axis of time, the first's; one that cannot be read is left
-- out, and a row of problems says so.  The capture, or nil and an error {code, message, offset}.
function M.open(path)
  text_argument(path, "open")
  local handle, err = handle_type(), core.new_error()
  local open = M.is_folder(path) and C.mic_capture_open_folder or C.mic_capture_open
  if open(path, handle, err) ~= 0 then return nil, core.error(err) end
  local cap = setmetatable({ path = path, _handle = handle, _columns = {} }, Capture)
  live[cap] = true
  return cap
end

local function finish(cap, ok, ...)
  cap:close()
  if not ok then error((...), 0) end
  return ...
end

--- Open path, give fn the capture and close it, also when fn raises.  What fn returns, or nil
-- and the error of opening.
function M.with(path, fn)
  local cap, err = M.open(path)
  if not cap then return nil, err end
  return finish(cap, pcall(fn, cap))
end

--- Close it: every pointer that came from it is invalid from now on.  Twice does no harm.
function Capture:close()
  if not live[self] then return end
  live[self] = nil
  C.mic_capture_close(self._handle[0])
  self._handle[0] = nil
  self._columns = {}
end

--- The raw `struct mic_capture *`, for functions of the core; dies with close.
function Capture:handle() return handle_of(self, "handle") end

--- What the file is: {major, minor, file_bytes, memory_bytes, skipped}; skipped counts the
-- tables and columns of it that this version does not know.
function Capture:info()
  local info = new_info()
  C.mic_capture_info(handle_of(self, "info"), info)
  return {
    major = info.major,
    minor = info.minor,
    file_bytes = tonumber(info.file_bytes),
    memory_bytes = tonumber(info.memory_bytes),
    skipped = info.skipped,
  }
end

--- How many rows a table has (a number; 0 for one that is not in the file).  Raises for a name that
-- no table has.
function Capture:rows(name)
  text_argument(name, "rows")
  local rows = tonumber(C.mic_capture_rows(handle_of(self, "rows"), name))
  if rows == 0 and C.mic_capture_table_doc(name) == nil then
    error(("rows: there is no table '%s'"):format(name), 2)
  end
  return rows
end

--- The names of all tables, in order of dependency, also of those without rows.
function M.tables()
  local names = {}
  while true do
    local name = C.mic_capture_table(#names)
    if name == nil then return names end
    names[#names + 1] = ffi.string(name)
  end
end

--- What a row of a table is, as a line of text; nil for no such table.
function M.table_doc(name)
  text_argument(name, "table_doc")
  local doc = C.mic_capture_table_doc(name)
  if doc ~= nil then return ffi.string(doc) end
end

local function make_column(raw)
  local pointer = pointers[raw.width]
  return setmetatable({
    table = ffi.string(raw.table),
    name = ffi.string(raw.name),
    doc = ffi.string(raw.doc),
    ref = raw.ref[0] ~= 0 and ffi.string(raw.ref) or nil,
    type = "u" .. raw.width * 8,
    unit = units[raw.unit],
    optional = raw.optional ~= 0,
    rows = tonumber(raw.rows),
    count = raw.blocks,
    data = ffi.cast(pointer, raw.data),
    _raw = raw,
    _pointer = pointer,
  }, Column)
end

--- A column, or nil and an error (no such table or column, or a capture older than it).
-- Its fields:
--   table, name, doc   texts
--   type               "u8", "u16", "u32" or "u64": what its pointers point to
--   unit               "none", "ns", "bytes", "count", "address", "line", "id", "enum", "flags"
--   ref                the table an "id" is a row of, the enum of an "enum", else nil
--   optional           true: a row of all ones is none
--   rows, count        rows, and blocks of them
--   data               all rows in one piece
function Capture:column(tab, name)
  local handle = handle_of(self, "column")
  text_argument(tab, "column")
  text_argument(name, "column")
  local key = tab .. "." .. name
  local column = self._columns[key]
  if not column then
    local raw, err = new_column(), core.new_error()
    if C.mic_capture_column(handle, tab, name, raw, err) ~= 0 then return nil, core.error(err) end
    column = make_column(raw)
    self._columns[key] = column
  end
  return column
end

--- A table's columns, as a list in the schema's order.
function Capture:columns(tab)
  local handle, list, err = handle_of(self, "columns"), {}, core.new_error()
  text_argument(tab, "columns")
  while true do
    local raw = new_column()
    if C.mic_capture_column_at(handle, tab, #list, raw, err) ~= 0 then return list end
    list[#list + 1] = make_column(raw)
  end
end

-- Block number i (from 0) of a column: its rows, pointer and first row; nil past the last.
local function block_at(column, i)
  local block = new_block()
  if C.mic_capture_block(column._raw, i, block) ~= 0 then return nil end
  return tonumber(block.rows), ffi.cast(column._pointer, block.data), tonumber(block.row)
end

--- Iterate over the blocks: `for rows, data, first in column:blocks() do`, rows being a number,
-- data a pointer to that many values and first the number of the block's first row.
function Column:blocks()
  local i = -1
  return function()
    i = i + 1
    return block_at(self, i)
  end
end

--- Iterate over the blocks of several columns of a table at once:
-- `for rows, stack, weight in cap:blocks("samples", "stack", "weight") do`.  Raises for a column
-- that is not there.  The form for tables that can be long.
function Capture:blocks(tab, ...)
  local columns = { ... }
  for i, name in ipairs(columns) do
    local column, err = self:column(tab, name)
    if not column then error(err.message, 2) end
    columns[i] = column
  end
  if #columns == 0 then error("blocks: name at least one column", 2) end
  local i, data = -1, {}
  return function()
    i = i + 1
    local rows
    for k, column in ipairs(columns) do rows, data[k] = block_at(column, i) end
    if rows then return rows, unpack(data) end
  end
end

--- All rows of a column in one piece: a pointer (`const uint32_t *` for a u32 column) and how
-- many rows there are.  For tables that ids point into.  nil and an error for no such column.
function Capture:array(tab, name)
  local column, err = self:column(tab, name)
  if not column then return nil, err end
  return column.data, column.rows
end

-- Where a string's bytes are; how many is in size_at.
local function string_at(cap, id, what)
  local handle = handle_of(cap, what)
  id = tonumber(id)
  if not id or id < 0 or id > M.NONE then error(what .. ": not an id", 3) end
  return C.mic_capture_string(handle, id, size_at)
end

--- A string by its id; any bytes.  nil for an id that is none (capture.NONE, or past the last).
function Capture:string(id)
  local bytes = string_at(self, id, "string")
  if bytes ~= nil then return ffi.string(bytes, size_at[0]) end
end

--- A string's bytes where the capture has them, and how many: a pointer that dies with close.  nil
-- for an id that is none.  For what is handed to the core: names may have hundreds of MB.
function Capture:bytes(id)
  local bytes = string_at(self, id, "bytes")
  if bytes ~= nil then return bytes, tonumber(size_at[0]) end
end

--- How many bytes a string has; 0 for an id that is none.
function Capture:size(id)
  string_at(self, id, "size")
  return tonumber(size_at[0])
end

--- Iterate over a string's bytes as texts of at most 64 KiB, cut anywhere:
-- `for piece in cap:pieces(id) do`.  No piece for an empty string and for an id that is none.
function Capture:pieces(id)
  local bytes, size = self:bytes(id)
  local at = 0
  return function()
    if not bytes or at == size then return nil end
    local part = math.min(size - at, PIECE)
    at = at + part
    return ffi.string(bytes + (at - part), part)
  end
end

--- Whether two strings have the same bytes: a capture of others may hold one twice.
function Capture:same(a, b)
  if a == b or self:size(a) ~= self:size(b) then return a == b end
  local next_a, next_b = self:pieces(a), self:pieces(b)
  while true do
    local piece = next_a()
    if piece ~= next_b() then return false end
    if not piece then return true end
  end
end

-- From a stack to its root; each parent is an earlier row, so this ends.
local function walk(parent, location, id, out)
  local n, none = 0, M.NONE
  while parent[id] ~= none do
    n = n + 1
    out[n] = location[id]
    id = parent[id]
  end
  return id
end

--- The frames of a stack: a list of location ids, the innermost first, and why it ends there
-- (a number for capture.ending).  nil for capture.NONE.
function Capture:stack(id)
  local rows = self:rows("stacks")
  id = tonumber(id)
  if id == M.NONE then return nil end
  if not id or id < 0 or id >= rows or id % 1 ~= 0 then error("stack: not an id", 2) end
  local out = {}
  local root = walk(self:array("stacks", "parent"), self:array("stacks", "location"), id, out)
  return out, self:array("stacks", "end")[root]
end

local function pairs_of(cap, tab)
  local key, value, out = cap:array(tab, "key"), cap:array(tab, "value"), {}
  for i = 0, cap:rows(tab) - 1 do out[cap:string(key[i])] = cap:string(value[i]) end
  return out
end

--- A fact about the recording as the id of its string, or nil: facts of imported files may have any
-- size.  Of several by one name it is the last.
function Capture:fact(name)
  text_argument(name, "fact")
  local key, value = self:array("meta", "key"), self:array("meta", "value")
  for i = self:rows("meta") - 1, 0, -1 do
    if self:size(key[i]) == #name and self:string(key[i]) == name then return value[i] end
  end
end

--- Facts about the recording: a table of texts by name (`host`, ...).
function Capture:meta()
  handle_of(self, "meta")
  return pairs_of(self, "meta")
end

--- The options it was made with: a table of texts by name (`rate`, ...).
function Capture:settings()
  handle_of(self, "settings")
  return pairs_of(self, "settings")
end

--- The name of an enum's value: enum("mic_loss", 1) is "records".  nil for a value that this
-- version has no name for, as a capture of a later minor version may hold.
function M.enum(name, value)
  text_argument(name, "enum")
  local text = C.mic_enum_name(name, value)
  if text ~= nil then return ffi.string(text) end
end

--- Why stacks end: {number, text, advice} for a value of stacks.end.  The text is what reports
-- print in brackets, the advice what helps ("" when nothing does).  nil for 0, which is no end.
function M.ending(number)
  if number == 0 then return nil end
  local text = C.mic_end_text(number)
  if text == nil then
    return { number = number, text = "unknown reason " .. number,
      advice = "a newer microscope knows it" }
  end
  return { number = number, text = ffi.string(text),
    advice = ffi.string(C.mic_end_advice(number)) }
end

--- Make a capture for tests and benches: generate{path = ..., samples = ..., stacks = ...,
-- seed = ...}; core/capture/generate.h lists the options.  true, or nil and an error.
function M.generate(options)
  text_argument(options.path, "generate: path")
  local raw, err = new_options(), core.new_error()
  raw.size = ffi.sizeof(new_options)
  for key, value in pairs(options) do
    if key ~= "path" and key ~= "size" then raw[key] = value end
  end
  return core.check(C.mic_capture_generate(raw, options.path, err), err)
end

M._walk = walk
return M
