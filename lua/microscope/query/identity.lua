--- identity.lua - which functions of two captures are the same one.
--
-- The program may have been built again between them, so addresses say nothing.  Functions pair
-- by module name and name.  Where a name stands for several functions of a module (statics,
-- closures), they pair by the file that declares them, then, within a file, by the line; a pair
-- that this leaves open is none.  Names that say themselves that there is no name pair only by
-- where they are declared.  Whether a function was inlined does not matter.
--
-- Code without a name pairs by offset where both captures have the module in the same build;
-- else all of a module's is one thing, as its offsets say nothing in another build.
--
-- pairs = {
--   count = number of classes
--   base, other = maps (costs.lua): the class of each key of the base's, and of the other's
--   base_key, other_key = tables by class: a key of it, nil where that capture has none
-- }

local ffi = require("ffi")

local keys_query = require("microscope.query.keys")

local M = {}

local NONE = 0xffffffff
local u32 = ffi.typeof("uint32_t[?]")

local function is_anonymous(name)
  return name == "" or name:match("^[<(%[{]?anonymous[^%w]?[)>%]}]?$") ~= nil
end

local function module_of(cap, row)
  if row == NONE then return "", "" end
  local name = cap:string(cap:array("modules", "name")[row])
  return name, cap:string(cap:array("modules", "build_id")[row])
end

-- What a capture's functions are told apart by: {name=, module=, file=, line=} by row.
local function functions_of(cap)
  local out = {}
  local name, module = cap:array("functions", "name"), cap:array("functions", "module")
  local file, line = cap:array("functions", "file"), cap:array("functions", "line")
  local path = cap:array("files", "path")
  for i = 0, cap:rows("functions") - 1 do
    out[i] = {
      row = i,
      name = cap:string(name[i]),
      module = (module_of(cap, module[i])),
      file = file[i] ~= NONE and cap:string(path[file[i]]) or nil,
      line = line[i],
    }
  end
  return out
end

-- Put a function of one side ("base" or "other") into the bucket of an id; order lists the ids.
local function put(buckets, order, id, side, fn)
  if not buckets[id] then
    buckets[id] = { base = {}, other = {} }
    order[#order + 1] = id
  end
  table.insert(buckets[id][side], fn)
end

-- Functions of the same module and name, in order of rows: names -> {base=, other=} of lists.
local function by_name(base, other)
  local out, order = {}, {}
  for _, side in ipairs { { "base", base }, { "other", other } } do
    local fns = side[2]
    for i = 0, #fns do
      local fn = fns[i]
      if fn then put(out, order, fn.module .. "\0" .. fn.name, side[1], fn) end
    end
  end
  return out, order
end

-- Whether all of a list of functions that say where they are declared say the same: a function
-- that symbols alone tell of has no file and no line, and is the one that has.
local function is_one(list)
  local file, line
  for _, fn in ipairs(list) do
    if fn.file then
      if file and (file ~= fn.file or line ~= fn.line) then return false end
      file, line = fn.file, fn.line
    end
  end
  return true
end

-- Lists of both sides put together by what field(fn) is; in order, what is not known last.
local function buckets_of(base, other, field)
  local out, order = {}, {}
  for _, fn in ipairs(base) do put(out, order, field(fn), "base", fn) end
  for _, fn in ipairs(other) do put(out, order, field(fn), "other", fn) end
  table.sort(order, function(a, b)
    if not a or not b then return not b and a ~= false end
    return a < b
  end)
  return out, order
end

local function declaring_file(fn) return fn.file or false end
local function declaring_line(fn) return fn.line end

local function has_one_line(list)
  for _, fn in ipairs(list) do
    if fn.line ~= list[1].line then return false end
  end
  return true
end

-- Classes for the functions of one name that several files declare, or several lines of one.
local function pair_apart(entry, assign)
  local files, names = buckets_of(entry.base, entry.other, declaring_file)
  for _, name in ipairs(names) do
    local base, other = files[name].base, files[name].other
    if not entry.anonymous and has_one_line(base) and has_one_line(other) then
      assign(base, other)
    else
      local lines, numbers = buckets_of(base, other, declaring_line)
      for _, line in ipairs(numbers) do assign(lines[line].base, lines[line].other) end
    end
  end
end

-- The class of each function, of both captures.
local function pair_functions(base_cap, other_cap)
  local of_base, of_other, count = {}, {}, 0
  local function assign(base, other)
    if #base == 0 and #other == 0 then return end
    for _, fn in ipairs(base) do of_base[fn.row] = count end
    for _, fn in ipairs(other) do of_other[fn.row] = count end
    count = count + 1
  end
  local base, other = functions_of(base_cap), functions_of(other_cap)
  local names, order = by_name(base, other)
  for _, id in ipairs(order) do
    local entry = names[id]
    local first = entry.base[1] or entry.other[1]
    entry.anonymous = is_anonymous(first.name)
    if not entry.anonymous and is_one(entry.base) and is_one(entry.other) then
      assign(entry.base, entry.other)
    else
      pair_apart(entry, assign)
    end
  end
  return of_base, of_other, base, other
end

-- Modules by name: the set of their builds, "" for one that has no build ID.
local function builds_of(cap)
  local out = {}
  for row = 0, cap:rows("modules") - 1 do
    local name, build = module_of(cap, row)
    out[name] = out[name] or {}
    out[name][build] = true
  end
  return out
end

-- Times of start on one boot's clock are different for different recordings.
local function same_recording(a, b)
  if a:rows("clocks") == 0 or b:rows("clocks") == 0 then return false end
  local function boot(cap) return cap:string(cap:array("clocks", "boot_id")[0]) end
  return boot(a) ~= "" and boot(a) == boot(b)
    and a:array("clocks", "monotonic_ns")[0] == b:array("clocks", "monotonic_ns")[0]
end

-- What a place without a name is in another capture: a text.
local function place_id(cap, key, keys, others, same)
  local l = keys.ref[key]
  local kind, module = cap:array("locations", "kind")[l], cap:array("locations", "module")[l]
  local what = keys_query.describe(cap, keys, key).name
  -- A signal frame, and a place that has a name of its own.
  if kind == 1 or kind == 4 then return "named\0" .. what end
  local name, build = module_of(cap, module)
  local builds = others[name]
  if same or keys_query.is_in_module(kind) and build ~= "" and builds and builds[build] then
    return ("place\0%d\0%s\0%s\0%s"):format(kind, name, build, what)
  end
  return ("any\0%d\0%s"):format(kind, name)
end

-- The line of a key by line: from its function's own line on where both are known to lie in one
-- file, as functions move as a whole.
local function line_id(cap, keys, key, fn)
  local ref = keys.ref[key]
  local file, line = cap:array("lines", "file")[ref], cap:array("lines", "line")[ref]
  local path = file ~= NONE and cap:string(cap:array("files", "path")[file]) or nil
  if line == 0 then return "unknown" end
  if path and path == fn.file and fn.line ~= 0 then return "+" .. line - fn.line end
  return (path and (path:match("^.*/(.*)$") or path) or "") .. ":" .. line
end

-- Fill a map: classes by the function's class, and by line or by place as texts.
local function fill(cap, keys, of_function, fns, state, side, others, same)
  local map = u32(keys.count + keys_query.ENDS)
  for key = 0, keys.count - 1 do
    local fn = keys_query.function_of(cap, keys, key)
    local id
    if not fn then
      id = place_id(cap, key, keys, others, same)
    elseif keys.kind[key] == keys_query.LINE then
      id = ("line\0%d\0%s"):format(of_function[fn], line_id(cap, keys, key, fns[fn]))
    else
      id = "function\0" .. of_function[fn]
    end
    local class = state.classes[id]
    if not class then
      class = state.count
      state.classes[id] = class
      state.count = class + 1
    end
    map[key] = class
    if not state[side][class] then state[side][class] = key end
  end
  return map
end

--- Pair the keys of two captures, of one kind.
function M.pair(base_cap, base_keys, other_cap, other_keys)
  local of_base, of_other, base_fns, other_fns = pair_functions(base_cap, other_cap)
  local state = { classes = {}, count = 0, base = {}, other = {} }
  local same = same_recording(base_cap, other_cap)
  local base = fill(base_cap, base_keys, of_base, base_fns, state, "base", builds_of(other_cap),
    same)
  local other = fill(other_cap, other_keys, of_other, other_fns, state, "other",
    builds_of(base_cap), same)
  -- Ends are ends in both.
  for e = 0, keys_query.ENDS - 1 do
    base[base_keys.count + e] = state.count + e
    other[other_keys.count + e] = state.count + e
  end
  return { count = state.count, base = base, other = other, base_key = state.base,
    other_key = state.other }
end

M._is_anonymous = is_anonymous
return M
