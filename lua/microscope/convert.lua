--- convert.lua - from one format to another, by way of a capture.
--
-- A format is a file of lua/microscope/formats/ or of the user's folder formats/ (plugins.lua):
--   name, summary     as in `microscope convert --list`
--   extensions        endings of paths that are written in it, without .gz or .zst
--   detect(head)      whether a file that begins with these bytes (decompressed) is in it
--   read(path, ctx)   append what the file holds to ctx.writer (writer.lua)
--   write(cap, path, ctx)  write an open capture
--   keeps             the facts that writing keeps, as losses.lua names them
-- read and write return nil and an error when they fail, or raise it with ctx.fail(format, ...).
-- ctx.lost(format, ...) says what of the input cannot be carried over, ctx.note(format, ...) what
-- else one should know of what was made of it; ctx.name is the input as it was named.

local ffi = require("ffi")

local capture = require("microscope.capture")
local input = require("microscope.input")
local losses = require("microscope.losses")
local plugins = require("microscope.plugins")
local writer = require("microscope.writer")

local M = {}

-- In the order in which they are asked whether a file is theirs: the surest first.
local SHIPPED = {
  "usprof",
  "otlp",
  "pprof",
  "pprof-legacy",
  "perf",
  "perf-script",
  "firefox",
  "gecko",
  "speedscope",
  "chrome",
  "folded",
}

--- All formats: a user's own first, then shipped ones.  Those that cannot be loaded are listed
-- with `problem` and nothing else but their name.
function M.formats()
  local out, seen = {}, {}
  for _, entry in ipairs(plugins.list("formats")) do
    if entry.user and not seen[entry.name] then
      seen[entry.name] = true
      out[#out + 1] = plugins.code("formats", entry.name)
        or { name = entry.name, problem = entry.problem or "it cannot be loaded" }
    end
  end
  for _, name in ipairs(SHIPPED) do
    if not seen[name] then out[#out + 1] = assert(plugins.code("formats", name)) end
  end
  return out
end

local function names(formats, can)
  local out = {}
  for _, format in ipairs(formats) do
    if format[can] or format.name == "usprof" then out[#out + 1] = format.name end
  end
  return table.concat(out, ", ")
end

local function can_read(format) return format.read or format.name == "usprof" end

--- A format by its name, to "read" or "write": it, or nil and one line.
function M.by_name(name, can)
  local formats = M.formats()
  for _, format in ipairs(formats) do
    if format.name == name then
      if format.problem then return nil, ("format %s: %s"):format(name, format.problem) end
      if format[can] or can == "read" and can_read(format) then return format end
      return nil, ("format %s can be %s only; formats to %s are %s"):format(name,
        can == "read" and "written" or "read", can, names(formats, can))
    end
  end
  return nil, ("no format '%s'; formats to %s are %s"):format(name, can, names(formats, can))
end

--- The format that a file's first bytes are in, or nil and one line.
function M.for_reading(path)
  if capture.is_folder(path) then return M.by_name("usprof", "read") end
  local head, err = input.head(path)
  if not head then return nil, tostring(err) end
  local formats = M.formats()
  for _, format in ipairs(formats) do
    if can_read(format) and format.detect then
      local ok, mine = plugins.call(format.path, format.detect, head)
      if ok and mine then return format end
    end
  end
  return nil, ("%s: its first bytes are of no known format; name it with --from (%s)"):format(path,
    names(formats, "read"))
end

--- The format that a path's ending asks to write, or nil and one line.
function M.for_writing(path)
  local formats, best, length = M.formats(), nil, 0
  local bare = path:gsub("%.gz$", ""):gsub("%.zst$", "")
  for _, format in ipairs(formats) do
    for _, ending in ipairs(format.write and format.extensions or {}) do
      if #ending > length and #bare > #ending and bare:sub(-#ending) == ending then
        best, length = format, #ending
      end
    end
  end
  if best then return best end
  return nil, ("%s: its ending is of no known format; name it with --to (%s)"):format(path,
    names(formats, "write"))
end

-- Errors of formats come as messages of their own (fail), as error tables of the core, or as
-- faults of their code, which say where.
local function outcome(ok, result, err)
  if ok then
    if result == nil and err ~= nil then return nil, tostring(err) end
    return true
  end
  return nil, tostring(result)
end

local function context(result, lost)
  local notes = result.notes
  return {
    name = result.name,
    debug_dirs = result.debug_dirs,
    fail = plugins.fail,
    lost = function(format, ...) lost[#lost + 1] = format:format(...) end,
    note = function(format, ...) notes[#notes + 1] = format:format(...) end,
  }
end

-- Read a file of another format into a capture at `path`.
local function import(from, format, path, result)
  local ctx = context(result, result.lost_reading)
  return writer.with(path, function(w)
    ctx.writer = w
    local ok, why = outcome(plugins.call(format.path, format.read, from, ctx))
    if not ok then return false, why end
  end)
end

local function write(cap, to, format, result)
  local lost = result.lost_writing
  -- Texts are short-lived and columns large: without this as much waits to be freed as is held.
  collectgarbage("setpause", 110)
  for _, text in ipairs(losses.of(cap, format.keeps or {})) do lost[#lost + 1] = text end
  return outcome(plugins.call(format.path, format.write, cap, to, context(result, lost)))
end

-- A capture that is only a step on the way: in a folder of its own for the user alone.
local function scratch_path()
  local template = (os.getenv("TMPDIR") or "/tmp") .. "/microscope.XXXXXX"
  local name = ffi.new("char[?]", #template + 1)
  ffi.copy(name, template)
  local C = require("microscope.core").C
  if C.mic_output_scratch(name) ~= 0 then return nil, "no room in " .. template end
  return ffi.string(name)
end

local function through(from, reading, to, writing, result)
  local path, why = scratch_path()
  if not path then return nil, why end
  local ok, err = import(from, reading, path, result)
  local cap
  if ok then cap, err = capture.open(path) end
  require("microscope.core").C.mic_output_scratch_remove(path)
  if not cap then return nil, err end
  ok, err = write(cap, to, writing, result)
  cap:close()
  return ok, err
end

-- Captures of a folder that could not be read, which problems name (core/capture/folder.c).
local function tell_left_out(cap, result)
  if not capture.is_folder(cap.path) then return end
  local problem, rows = cap:array("problems", "text")
  for i = 0, rows - 1 do
    local name, why = cap:string(problem[i]):match("^segment (.+) is left out: (.*)$")
    if name then
      result.lost_reading[#result.lost_reading + 1] = ("%s (%s)"):format(name, why)
    end
  end
end

local function convert(from, reading, to, writing, result)
  if reading.name ~= "usprof" then
    if writing.name == "usprof" then return import(from, reading, to, result) end
    return through(from, reading, to, writing, result)
  end
  return input.with_plain_path(from, function(path)
    return capture.with(path, function(cap)
      tell_left_out(cap, result)
      return write(cap, to, writing, result)
    end)
  end)
end

-- One line of what went wrong, about the file as it was named, whatever path led to its bytes.
local function problem_of(err, name, to)
  local problem = tostring(err)
  local first, last = problem:find("/proc/self/fd/%d+")
  if first then problem = problem:sub(1, first - 1) .. name .. problem:sub(last + 1) end
  local named = problem:find(name, 1, true) or problem:find(to, 1, true)
  return named and problem or name .. ": " .. problem
end

local function run(name, path, to, writing, options)
  local reading, err
  if options.from then reading, err = M.by_name(options.from, "read")
  else reading, err = M.for_reading(path) end
  if not reading then return nil, problem_of(err, name, to) end
  local result = { name = name, reading = reading, writing = writing, lost_reading = {},
    lost_writing = {}, notes = {}, debug_dirs = options.debug_dirs or {} }
  if #result.debug_dirs > 0 and not reading.opens_images then
    return nil, ("%s: --debug-dir is for stacks that need images (perf.data), %s has its own;"
      .. " microscope symbolize --debug-dir adds names"):format(name, reading.name)
  end
  local ok
  ok, err = convert(path, reading, to, writing, result)
  if not ok then return nil, problem_of(err, name, to) end
  return result
end

-- A folder that perf record made has its perf.data as `data`.
local function inside(folder)
  local file = folder:gsub("/+$", "") .. "/data"
  if #require("microscope.folder").names(folder, ".usprof") > 0 then return folder end
  local head = input.head(file)
  local perf = head and M.by_name("perf", "read")
  return perf and perf.detect and perf.detect(head) and file or folder
end

--- Convert a file.  options.from and options.to name formats; without them the input's bytes and
-- the output's ending tell; options.debug_dirs lists folders with images.  A table, or nil and one
-- line:
--   reading, writing             the formats
--   lost_reading, lost_writing   lists of texts: what could not be carried over
--   notes                        a list of texts: what else one should know
function M.run(from, to, options)
  local writing, err
  if options.to then writing, err = M.by_name(options.to, "write")
  else writing, err = M.for_writing(to) end
  if not writing then return nil, err end
  if capture.is_folder(from) then from = inside(from) end
  local result
  result, err = input.with_path(from, function(path)
    return run(from == "-" and "standard input" or from, path, to, writing, options)
  end)
  if not result then return nil, tostring(err) end
  return result
end

return M
