--- annotation.lua - functions with their source and code, and what each part of it cost.
--
-- annotation = {
--   name, linkage_name, module, path, build_id   what function it is
--   self, total                                  as query/places.lua
--   files = { {path= (or nil), source= (sources.lua; or nil), newer= (true: written after the
--           image; or nil), lines= {{line= (or nil), self=, total=, text= (or nil)}} } }
--   code = { image=, rows= {{address=, length=, bytes=, text=, range=, self=, total=,
--            frames= (as listing.lua) }}, unplaced= }, or nil
--   problem = why there is no code, or what is missing in it; nil when nothing is
-- }
-- code.unplaced is the self cost of places that no instruction of the listing holds.

local listing = require("microscope.listing")
local places_query = require("microscope.query.places")
local sources = require("microscope.report.sources")

local M = {}

local NONE = 0xffffffff

local function function_of(cap, fn)
  local name = cap:string(cap:array("functions", "name")[fn])
  local module = cap:array("functions", "module")[fn]
  local out = { name = name, module = "", path = "", build_id = "", row = nil,
    linkage_name = cap:string(cap:array("functions", "linkage_name")[fn]) }
  if module == NONE then return out end
  out.row = module
  out.module = cap:string(cap:array("modules", "name")[module])
  out.path = cap:string(cap:array("modules", "path")[module])
  out.build_id = cap:string(cap:array("modules", "build_id")[module])
  return out
end

-- The recording's start on the wall clock; 0 (nothing was written before) when it is not known.
local function recorded_at_ns(cap)
  return cap:rows("clocks") > 0 and cap:array("clocks", "realtime_ns")[0] or 0
end

local function open_image(cap, fn, options)
  if not fn.row then return nil, "it is in no file that was recorded" end
  local image, err = listing.open {
    path = fn.path,
    build_id = fn.build_id,
    inode = cap:array("modules", "inode")[fn.row],
    file_size = cap:array("modules", "size")[fn.row],
    recorded_at_ns = recorded_at_ns(cap),
    debug_dir = options.debug_dir,
    intel = options.intel,
  }
  if not image then return nil, err.message end
  return image
end

-- The instruction of each place, for those that one holds; both are sorted by address.
local function match(rows, part)
  local places, at, of = {}, 1, {}
  for _, place in pairs(part.places) do places[#places + 1] = place end
  table.sort(places, function(a, b) return a.address < b.address end)
  for _, place in ipairs(places) do
    while rows[at] and rows[at].address + rows[at].length <= place.address do at = at + 1 end
    local row = rows[at]
    if row and row.address <= place.address then of[place] = row end
  end
  return of
end

-- The code that a function's places are in: {image=, rows=, of= {[place] = row}}, and a problem.
local function code_of(image, fn, cap, part)
  local offset, problem = cap:array("locations", "offset"), nil
  for l in pairs(part.places) do
    local ok, err = image:add(offset[l], fn.linkage_name)
    if not ok then problem = problem or err.message end
  end
  local rows, err = image:decode()
  if not rows then return nil, err.message end
  if #rows == 0 then return nil, problem or "no code was found" end
  for i, row in ipairs(rows) do row.frames = image:frames(i) end
  return { image = image:image(), rows = rows, of = match(rows, part) }, problem
end

-- The same, or nil and why there is none.
local function read_code(cap, fn, part, options)
  local image, why = open_image(cap, fn, options)
  if not image then return nil, why end
  local code, problem = code_of(image, fn, cap, part)
  image:close()
  return code, problem
end

-- Gives each instruction its costs; what no instruction holds stays apart.
local function fill(code, units)
  code.unplaced = 0
  for _, row in ipairs(code.rows) do
    local unit = units[row] or { self = 0, total = 0 }
    row.self, row.total = unit.self, unit.total
  end
  for name, unit in pairs(units) do
    if type(name) ~= "table" then code.unplaced = code.unplaced + unit.self end
  end
  code.of = nil
end

-- The lines of a function by file.
local function files_of(cap, part, folders, written_ns)
  local out, by_row = {}, {}
  local path = cap:array("files", "path")
  for _, line in ipairs(part.lines) do
    local key = line.file or NONE
    local file = by_row[key]
    if not file then
      file = { path = line.file and cap:string(path[line.file]) or nil, lines = {} }
      file.source = file.path and sources.find(file.path, folders) or nil
      file.newer = file.source and written_ns > 0 and file.source.written_ns > written_ns or nil
      by_row[key] = file
      out[#out + 1] = file
    end
    local text = file.source and line.line and file.source.lines[line.line] or nil
    file.lines[#file.lines + 1] = { line = line.line, self = line.self, total = line.total,
      text = text }
  end
  return out
end

--- The annotations of functions: wanted is a set of rows of functions, weights those of the stacks
-- (query/samples.lua); options.folders (where sources are), debug_dir, intel.  A list, most total
-- first; nil and why for a capture that is too large.
function M.of(cap, weights, wanted, options)
  local parts, fns, codes, problems = places_query.find(cap, wanted), {}, {}, {}
  for i, part in ipairs(parts) do
    fns[i] = function_of(cap, part.fn)
    codes[part], problems[i] = read_code(cap, fns[i], part, options)
  end
  local costs = places_query.costs(cap, weights, parts, function(part, place)
    return codes[part] and codes[part].of[place] or place.address
  end)
  if not costs then return nil, "its stacks have more frames than a report can hold" end
  local out = {}
  for i, part in ipairs(parts) do
    local fn, cost, code = fns[i], costs[i], codes[part]
    if code then fill(code, cost.units) end
    local written_ns = code and code.image.written_ns or tonumber(recorded_at_ns(cap))
    out[i] = {
      name = fn.name,
      linkage_name = fn.linkage_name,
      module = fn.module,
      path = fn.path,
      build_id = fn.build_id,
      self = cost.self,
      total = cost.total,
      files = files_of(cap, cost, options.folders, written_ns),
      code = code,
      problem = problems[i],
    }
  end
  table.sort(out, function(a, b)
    if a.total ~= b.total then return a.total > b.total end
    if a.name ~= b.name then return a.name < b.name end
    return a.linkage_name < b.linkage_name
  end)
  return out
end

return M
