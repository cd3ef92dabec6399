--- writer.lua - write a capture: strings, rows, then finish.
--
--   local writer = require("microscope.writer")
--   writer.with("out.usprof", function(w)
--     local source = w:row("sources", { name = w:string("cpu"), unit = "cpu_ns" })
--     w:rows("samples", n, { time_ns = times, stack = stacks, weight = weights })
--   end)
--
-- Rows and ids count from 0.  The file appears under its name when it is finished, and only when
-- the rows keep every rule of docs/format.md: a wrong id is an error that names the row.
--
-- Lifetimes: what is given is copied.  A writer must be finished or discarded; `with` does so.

local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C

local M = {}

-- Rows gathered in Lua before one call hands them over.
local ROOM = 1024

local handle_type = ffi.typeof("struct mic_writer *[1]")
local column_type = ffi.typeof("struct mic_column")
local pointers_type = ffi.typeof("const void *[?]")
local u64 = ffi.typeof("uint64_t")
local arrays = {
  [1] = ffi.typeof("uint8_t[?]"),
  [2] = ffi.typeof("uint16_t[?]"),
  [4] = ffi.typeof("uint32_t[?]"),
  [8] = ffi.typeof("uint64_t[?]"),
}
-- How LuaJIT prints the element types that a column of a width may be given as.
local elements = {
  [1] = { ["unsigned char"] = true, ["char"] = true },
  [2] = { ["unsigned short"] = true },
  [4] = { ["unsigned int"] = true },
  [8] = { ["uint64_t"] = true, ["unsigned long"] = true },
}
local NONE = { [1] = 0xff, [2] = 0xffff, [4] = 0xffffffff, [8] = 0xffffffffffffffffULL }

local Writer = {}
Writer.__index = Writer

-- Open writers: their handles die with finish and discard.
local live = {}

local function handle_of(w, what)
  if not live[w] then error(what .. ": the writer is closed", 3) end
  return w._handle[0]
end

-- The columns of a table by the schema: a list and the same by name; nil for no such table.
local schemas = {}
local function schema_of(name)
  local schema = schemas[name]
  if schema then return schema end
  schema = { by_name = {} }
  local raw = column_type()
  while C.mic_schema_column(name, #schema, raw, nil) == 0 do
    local column = {
      name = ffi.string(raw.name),
      width = raw.width,
      optional = raw.optional ~= 0,
      enum = raw.unit == C.MIC_COLUMN_UNIT_ENUM and ffi.string(raw.ref) or nil,
      index = #schema,
    }
    schema[#schema + 1] = column
    schema.by_name[column.name] = column
  end
  if #schema == 0 then return nil end
  schemas[name] = schema
  return schema
end

local function schema_or_error(name)
  local schema = type(name) == "string" and schema_of(name)
  if not schema then error("there is no table " .. tostring(name), 3) end
  return schema
end

--- Begin a capture that will have this path: a writer, or nil and an error.
function M.open(path)
  if type(path) ~= "string" then error("open: a string, not " .. type(path), 2) end
  local handle, err = handle_type(), core.new_error()
  if C.mic_writer_open(path, handle, err) ~= 0 then return nil, core.error(err) end
  local w = setmetatable({ path = path, _handle = handle, _pending = {}, _strings = {} }, Writer)
  live[w] = true
  return w
end

local function conclude(w, ok, result, ...)
  if not ok then
    w:discard()
    error(result, 0)
  end
  if result == false then
    w:discard()
    return nil, ...
  end
  if not live[w] then return true end
  return w:finish()
end

--- Open path, give fn the writer and finish, or discard when fn raises or returns false and an
-- error.  true, or nil and the error.
function M.with(path, fn)
  local w, err = M.open(path)
  if not w then return nil, err end
  return conclude(w, pcall(fn, w))
end

--- The id of a string; the same bytes have the same id.
function Writer:string(text)
  local handle = handle_of(self, "string")
  if type(text) ~= "string" then error("string: a string, not " .. type(text), 2) end
  local id = self._strings[text]
  if not id then
    id = C.mic_writer_string(handle, text, #text)
    self._strings[text] = id
  end
  return id
end

-- The number that a column gets for a value of Lua's.
local function number_of(column, value)
  if value == nil then return column.optional and NONE[column.width] or 0 end
  if type(value) == "cdata" then
    value = ffi.cast(u64, value)
    if column.width == 8 or value <= NONE[column.width] then return value end
  elseif type(value) == "string" and column.enum then
    for number = 0, 255 do
      local name = C.mic_enum_name(column.enum, number)
      if name ~= nil and ffi.string(name) == value then return number end
    end
  elseif type(value) == "number" and value >= 0 and value % 1 == 0
    and value < 2 ^ (8 * column.width) then
    return value
  end
  error(("%s cannot be %s"):format(column.name, tostring(value)), 0)
end

local function new_pending(schema)
  local pending = { fill = 0, pointers = pointers_type(#schema), columns = {} }
  for i, column in ipairs(schema) do
    pending.columns[i] = arrays[column.width](ROOM)
    pending.pointers[i - 1] = pending.columns[i]
  end
  return pending
end

local function append(w, name, rows, pointers)
  local err = core.new_error()
  if C.mic_writer_append(w._handle[0], name, rows, pointers, err) ~= 0 then
    error(tostring(core.error(err)), 0)
  end
end

local function flush(w, name)
  local pending = w._pending[name]
  if not pending or pending.fill == 0 then return end
  append(w, name, pending.fill, pending.pointers)
  pending.fill = 0
end

local function flush_all(w)
  for name in pairs(w._pending) do flush(w, name) end
end

--- How many rows a table has.
function Writer:count(name)
  local handle = handle_of(self, "count")
  local pending = self._pending[name]
  return tonumber(C.mic_writer_count(handle, name)) + (pending and pending.fill or 0)
end

--- Append a row: a table of values by column; what is not given is none where the column may be
-- none, else 0.  An enum's value may be its name ("cpu_ns").  Gives the row's id.
function Writer:row(name, values)
  handle_of(self, "row")
  local schema = schema_or_error(name)
  for key in pairs(values) do
    if not schema.by_name[key] then error(("%s has no column %s"):format(name, key), 2) end
  end
  local pending = self._pending[name]
  if not pending then
    pending = new_pending(schema)
    self._pending[name] = pending
  end
  local at = pending.fill
  for i, column in ipairs(schema) do
    pending.columns[i][at] = number_of(column, values[column.name])
  end
  local id = self:count(name)
  pending.fill = at + 1
  if pending.fill == ROOM then flush(self, name) end
  return id
end

-- An FFI array that holds at least n values of the width; a pointer's length is the caller's.
local function check_array(name, column, array, n)
  local element = type(array) == "cdata"
    and tostring(ffi.typeof(array)):match("^ctype<(.-) ?[%[%*%(&].*>$")
  element = element and element:gsub("^const ", "")
  if not elements[column.width][element] then
    error(("%s.%s takes an array of u%d"):format(name, column.name, column.width * 8), 3)
  end
  if not tostring(ffi.typeof(array)):find("*", 1, true)
    and ffi.sizeof(array) < n * column.width then
    error(("%s.%s: the array has fewer than %d values"):format(name, column.name, n), 3)
  end
end

--- Append n rows at once: FFI arrays (or pointers to n values) by column, of the columns' own
-- widths; what is not given is none or 0 in every row.  Gives the first row's id.
function Writer:rows(name, n, columns)
  handle_of(self, "rows")
  local schema = schema_or_error(name)
  if type(n) ~= "number" or n < 0 or n % 1 ~= 0 then error("rows: not a count", 2) end
  flush(self, name)
  local pointers = pointers_type(#schema)
  self._given = columns -- a pointer does not keep its array alive, nor does a local when compiled
  for key, array in pairs(columns) do
    local column = schema.by_name[key]
    if not column then error(("%s has no column %s"):format(name, key), 2) end
    check_array(name, column, array, n)
    pointers[column.index] = array
  end
  local id = self:count(name)
  append(self, name, n, pointers)
  self._given = nil
  return id
end

--- The raw `struct mic_writer *`, for the core's own importers: what they append comes after
-- every row so far.
function Writer:handle()
  local handle = handle_of(self, "handle")
  flush_all(self)
  return handle
end

--- Check all rows, write and publish the file: true, or nil and an error.  options.keep_old
-- renames a file that is there to PATH.old.
function Writer:finish(options)
  local handle = handle_of(self, "finish")
  flush_all(self)
  live[self] = nil
  local err = core.new_error()
  local keep = options and options.keep_old and 1 or 0
  return core.check(C.mic_writer_finish_checked(handle, keep, err), err)
end

--- Leave no file.  Twice does no harm, nor after finish.
function Writer:discard()
  if not live[self] then return end
  live[self] = nil
  C.mic_writer_discard(self._handle[0])
end

return M
