-- kit.lua - captures without names, and what captures say of their locations.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local writer = require("microscope.writer")

local M = {}

-- What says what locations mean, or that somebody asked.
local NAMES = { files = true, functions = true, lines = true, naming = true, strings = true,
  string_bytes = true }

local KEPT = { image_parts = true, image_bytes = true }

--- A copy of a capture with the same rows but none of what locations mean, and of what was kept of
-- images only on request.
function M.without_names(from, to, with_images)
  assert(capture.with(from, function(cap)
    return assert(writer.with(to, function(w)
      for id = 0, cap:rows("strings") - 1 do assert(w:string(cap:string(id)) == id) end
      for _, name in ipairs(capture.tables()) do
        local columns = {}
        for _, column in ipairs(cap:columns(name)) do columns[column.name] = column.data end
        if not NAMES[name] and (with_images or not KEPT[name]) and cap:rows(name) > 0 then
          w:rows(name, cap:rows(name), columns)
        end
      end
    end))
  end))
end

--- What each location means: a list, by location id + 1, of texts "name|linkage|file:line|declared"
-- joined by " <== ", the innermost first; "" for one without lines.
function M.meanings(path)
  local cap = assert(capture.open(path))
  local function text(id) return cap:string(id) end
  local function file(id)
    return id == capture.NONE and "?" or text(cap:array("files", "path")[id])
  end
  local out = {}
  for l = 1, cap:rows("locations") do out[l] = {} end
  local location, fn, of, line = cap:array("lines", "location"), cap:array("lines", "function"),
    cap:array("lines", "file"), cap:array("lines", "line")
  local name, linkage, decl, decl_line = cap:array("functions", "name"),
    cap:array("functions", "linkage_name"), cap:array("functions", "file"),
    cap:array("functions", "line")
  for i = 0, cap:rows("lines") - 1 do
    local f, list = fn[i], out[location[i] + 1]
    list[#list + 1] = ("%s|%s|%s:%d|%s:%d"):format(text(name[f]), text(linkage[f]), file(of[i]),
      line[i], file(decl[f]), decl_line[f])
  end
  for l, list in ipairs(out) do out[l] = table.concat(list, " <== ") end
  cap:close()
  return out
end

--- "file:line" of each frame, the innermost first, of the places of a module that have lines; and
-- the places' addresses.
function M.places(path, own)
  local cap = assert(capture.open(path))
  local module, offset = cap:array("locations", "module"), cap:array("locations", "offset")
  local location, file, line = cap:array("lines", "location"), cap:array("lines", "file"),
    cap:array("lines", "line")
  local chains, places, addresses = {}, {}, {}
  for i = 0, cap:rows("lines") - 1 do
    local l = location[i]
    local name = module[l] ~= capture.NONE and cap:array("modules", "name")[module[l]]
    if name and cap:string(name) == own and file[i] ~= capture.NONE then
      local at = cap:string(cap:array("files", "path")[file[i]]):match("[^/]*$") .. ":" .. line[i]
      if not chains[l] then
        addresses[#addresses + 1] = ("0x%x"):format(tonumber(offset[l]))
        places[#places + 1] = l
      end
      chains[l] = (chains[l] and chains[l] .. " " or "") .. at
    end
  end
  for i, l in ipairs(places) do places[i] = chains[l] end
  cap:close()
  return places, addresses
end

--- Raises with the first location that two lists of meanings differ in.
function M.assert_same(expected, passed)
  assert(#expected == #passed, "other locations")
  for l, meaning in ipairs(expected) do
    if meaning ~= passed[l] then
      error(("location %d:\n  %s\nis\n  %s"):format(l - 1, meaning, passed[l]), 2)
    end
  end
end

--- How many locations of a module have a function of a name anywhere in their chain.
function M.count(path, pattern)
  local count = 0
  for _, meaning in ipairs(M.meanings(path)) do
    if meaning:find(pattern) then count = count + 1 end
  end
  return count
end

--- The last problem that naming has of a module by its name; nil when nothing was asked of it.
function M.problem(path, module)
  return capture.with(path, function(cap)
    local found
    local ids, problem = cap:array("naming", "module"), cap:array("naming", "problem")
    for i = 0, cap:rows("naming") - 1 do
      if cap:string(cap:array("modules", "name")[ids[i]]) == module then
        found = cap:string(problem[i])
      end
    end
    return found
  end)
end

--- Everything but what locations mean is the same in both, and ids of what was there too.
function M.assert_same_rows(before, after)
  local a, b = assert(capture.open(before)), assert(capture.open(after))
  local ffi = require("ffi")
  local grows = { files = true, functions = true, strings = true, string_bytes = true }
  for _, name in ipairs(capture.tables()) do
    if name ~= "lines" and name ~= "naming" then
      assert(grows[name] or a:rows(name) == b:rows(name), name)
      for _, column in ipairs(a:columns(name)) do
        local size = column.rows * tonumber(column.type:match("%d+")) / 8
        local other = b:column(name, column.name)
        assert(size == 0 or ffi.string(column.data, size) == ffi.string(other.data, size),
          name .. "." .. column.name)
      end
    end
  end
  a:close()
  b:close()
end

--- microscope symbolize ARGS in a folder: stdout, stderr, status.
function M.symbolize(arguments, folder, environment)
  return helper.run(("%s timeout -s KILL 120 %s/bin/microscope symbolize %s"):format(
    environment or "", helper.quote(helper.stage), arguments), folder)
end

return M
