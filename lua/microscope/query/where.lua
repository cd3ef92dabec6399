--- where.lua - choose samples by an expression (where_grammar.lua).
--
-- An expression becomes Lua source: one straight loop over sample rows.  What a test says of a
-- thread, a process, a CPU, a label or a stack is found once for each of them, as an array of 0
-- and 1, and looked up; only time is compared row by row.

local bit = require("bit")
local ffi = require("ffi")

local grammar = require("microscope.query.where_grammar")
local keys_query = require("microscope.query.keys")
local pattern = require("microscope.query.pattern")
local symbols = require("microscope.query.symbols")

local M = {}

local NONE = 0xffffffff
local CPUS = 65536 -- samples.cpu is a u16
local bor = bit.bor

local u8 = ffi.typeof("uint8_t[?]")

M.parse = grammar.parse

--- An error of parse or bind as one line of text: what is wrong, and where in the expression.
function M.explain(expression, err)
  local rest = expression:sub(err.column)
  if #rest > 20 then rest = rest:sub(1, 17) .. "..." end
  return ("%s (column %d, %s)"):format(err.message, err.column,
    rest:find("%S") and "at '" .. rest .. "'" or "at the end")
end

-- function(text) for a test's value.
local function text_test(test)
  local value = test.value
  if test.compare == "=" then return function(text) return text == value end end
  if test.is_regex then return assert(pattern.regex(pattern.regex_of(value))) end
  if pattern.is_glob(value) then return pattern.compile(value) end
  return function(text) return text:find(value, 1, true) ~= nil end
end

local COMPARE = {
  ["="] = function(a, b) return a == b end,
  ["<"] = function(a, b) return a < b end,
  ["<="] = function(a, b) return a <= b end,
  [">"] = function(a, b) return a > b end,
  [">="] = function(a, b) return a >= b end,
}

-- Rows of a table whose name, or whose number, is what a test asks for.
local function row_mask(cap, tab, number_column, test)
  local rows, mask = cap:rows(tab), u8(cap:rows(tab) + 1)
  local name, number = cap:array(tab, "name"), cap:array(tab, number_column)
  local matches = type(test.value) == "string" and text_test(test)
  for i = 0, rows - 1 do
    local hit
    if matches then hit = matches(cap:string(name[i])) else hit = number[i] == test.value end
    if hit then mask[i] = 1 end
  end
  return mask
end

local MASKS = {}

function MASKS.thread(cap, test) return row_mask(cap, "threads", "tid", test), "thread[i]" end

function MASKS.process(cap, test)
  local of_process, mask = row_mask(cap, "processes", "pid", test), u8(cap:rows("threads") + 1)
  local process = cap:array("threads", "process")
  for i = 0, cap:rows("threads") - 1 do mask[i] = of_process[process[i]] end
  return mask, "thread[i]"
end

function MASKS.cpu(_, test)
  local mask, value = u8(CPUS), test.value
  for cpu = 0, CPUS - 1 do
    local hit
    if type(value) == "table" then
      hit = cpu >= value[1] and cpu <= value[2]
    else
      hit = COMPARE[test.compare](cpu, value)
    end
    if hit then mask[cpu] = 1 end
  end
  return mask, "cpu[i]"
end

-- The stacks of which a frame, the innermost or the outermost one is marked; marks are of
-- locations.
local function mark_any(parent, location, marks, stacks, out)
  for i = 0, stacks - 1 do
    local up = parent[i]
    if up ~= NONE then out[i] = bor(out[up], marks[location[i]]) end
  end
end

local function mark_innermost(parent, location, marks, stacks, out)
  for i = 0, stacks - 1 do
    if parent[i] ~= NONE then out[i] = marks[location[i]] end
  end
end

local function mark_outermost(parent, location, marks, stacks, out)
  for i = 0, stacks - 1 do
    local up = parent[i]
    if up ~= NONE then
      if parent[up] == NONE then out[i] = marks[location[i]] else out[i] = out[up] end
    end
  end
end

local SCOPES = { any = mark_any, innermost = mark_innermost, outermost = mark_outermost }

local function mark_stacks(cap, marks, scope)
  local stacks = cap:rows("stacks")
  local out = u8(stacks + 1)
  SCOPES[scope](cap:array("stacks", "parent"), cap:array("stacks", "location"), marks, stacks, out)
  return out, "stack[i]"
end

-- The keys that a test of a function's name means.
local function key_mask(cap, keys, test, lenient)
  if test.compare == "=" then
    local found, why = symbols.match(cap, keys, test.value)
    if found then return found.mask end
    if not lenient then error({ column = test.column, message = why }, 0) end
    return u8(keys.count + 1)
  end
  local mask, matches, known = u8(keys.count + 1), text_test(test), {}
  for key = 0, keys.count - 1 do
    local name = keys_query.describe(cap, keys, key).name
    if known[name] == nil then known[name] = matches(name) end
    if known[name] then mask[key] = 1 end
  end
  return mask
end

MASKS["function"] = function(cap, test, keys, lenient)
  local locations, mask = cap:rows("locations"), key_mask(cap, keys, test, lenient)
  local marks, start, frame = u8(locations + 1), keys.start, keys.frame
  for l = 0, locations - 1 do
    local from, to = start[l], start[l + 1] - 1
    if test.scope == "innermost" then from = to elseif test.scope == "outermost" then to = from end
    for f = from, to do marks[l] = bor(marks[l], mask[frame[f]]) end
  end
  return mark_stacks(cap, marks, test.scope)
end

function MASKS.module(cap, test)
  local by_path = test.value:find("/", 1, true) and not test.is_regex
  local modules, name = cap:rows("modules"), cap:array("modules", by_path and "path" or "name")
  local of_module, matches = u8(modules + 1), text_test(test)
  for m = 0, modules - 1 do
    if matches(cap:string(name[m])) then of_module[m] = 1 end
  end
  local locations, module = cap:rows("locations"), cap:array("locations", "module")
  local marks = u8(locations + 1)
  for l = 0, locations - 1 do
    if module[l] ~= NONE then marks[l] = of_module[module[l]] end
  end
  return mark_stacks(cap, marks, test.scope)
end

local function label_names(cap)
  local seen, out, key = {}, {}, cap:array("labels", "key")
  for i = 0, cap:rows("labels") - 1 do
    local name = cap:string(key[i])
    if not seen[name] then
      seen[name] = true
      out[#out + 1] = name
    end
  end
  table.sort(out)
  return seen, #out > 0 and "; it has " .. table.concat(out, ", ") or ""
end

-- A label's value as text, and as a number where it is one.
local function label_value(cap, i)
  if cap:array("labels", "kind")[i] == 0 then
    return cap:string(cap:array("labels", "text")[i])
  end
  local number = ffi.cast("int64_t", cap:array("labels", "number")[i])
  return (tostring(number):gsub("LL$", "")), tonumber(number)
end

local function label_mask(cap, test)
  local mask, key = u8(cap:rows("labels") + 1), cap:array("labels", "key")
  local matches = type(test.value) == "string" and text_test(test)
  for i = 0, cap:rows("labels") - 1 do
    if cap:string(key[i]) == test.label then
      local text, number = label_value(cap, i)
      local hit
      if matches then
        hit = matches(text)
      else
        hit = number and COMPARE[test.compare](number, test.value)
      end
      if hit then mask[i] = 1 end
    end
  end
  return mask
end

local function mark_samples(sample, label, mask, rows, out)
  for i = 0, rows - 1 do
    local s = sample[i]
    out[s] = bor(out[s], mask[label[i]])
  end
end

function MASKS.label(cap, test, _, lenient)
  local out = u8(cap:rows("samples") + 1)
  local known, names = {}, ""
  if cap:rows("labels") > 0 then known, names = label_names(cap) end
  if not known[test.label] then
    if lenient then return out, "first + i" end
    error({ column = test.column, message = ("no sample has a label '%s'%s"):format(test.label,
      names) }, 0)
  end
  mark_samples(cap:array("sample_labels", "sample"), cap:array("sample_labels", "label"),
    label_mask(cap, test), cap:rows("sample_labels"), out)
  return out, "first + i"
end

-- Lua for a test of time; times are whole numbers of ns.
local function time_source(test)
  local value = test.value
  if type(value) == "table" then
    return ("(t >= %.0fULL and t < %.0fULL and 1 or 0)"):format(value[1], value[2])
  end
  return ("(t %s %.0fULL and 1 or 0)"):format(test.compare, value)
end

-- Lua that puts what a tree says of row i into the local rN, N being `at`; deeper parts of the tree
-- use the locals after it.  A statement each: nested calls would pass LuaJIT's limit of depth.
local function emit(ast, bound, at)
  bound.locals = math.max(bound.locals, at)
  local function put(format, ...)
    bound.lines[#bound.lines + 1] = ("    r%d = " .. format):format(at, ...)
  end
  if ast.op == "not" then
    emit(ast[1], bound, at)
    put("bxor(r%d, 1)", at)
  elseif ast.op ~= "test" then
    emit(ast[1], bound, at)
    emit(ast[2], bound, at + 1)
    put("b%s(r%d, r%d)", ast.op, at, at + 1)
  elseif ast.field == "time" then
    put("%s", time_source(ast))
  else
    local mask, index = MASKS[ast.field](bound.cap, ast, bound.keys, bound.lenient)
    bound.masks[#bound.masks + 1] = mask
    put("m%d[%s]", #bound.masks, index)
  end
end

local COLUMNS = { thread = "thread", cpu = "cpu", stack = "stack", time = "time_ns" }
local ORDER = { "thread", "cpu", "stack", "time" }

-- The loop of an expression as Lua source.
local function source_of(bound)
  local masks, locals = {}, {}
  for i = 1, #bound.masks do masks[i] = ("  local m%d = masks[%d]\n"):format(i, i) end
  for i = 1, bound.locals do locals[i] = "r" .. i end
  return ([[
local bit = require("bit")
local band, bor, bxor = bit.band, bit.bor, bit.bxor
local masks = ...
return function(rows, first, thread, cpu, stack, time, keep)
%s  for i = 0, rows - 1 do
    local t, %s = time[i]
%s
    keep[i] = r1
  end
end
]]):format(table.concat(masks), table.concat(locals, ", "), table.concat(bound.lines, "\n"))
end

local function arrays_of(cap)
  local out = {}
  for i, name in ipairs(ORDER) do out[i] = cap:array("samples", COLUMNS[name]) end
  return out
end

local function make_filter(cap, row_loop)
  local columns, keep, room = arrays_of(cap), nil, 0
  return function(first, rows)
    if rows > room then
      keep, room = u8(rows), rows
    end
    row_loop(rows, first, columns[1] + first, columns[2] + first, columns[3] + first,
      columns[4] + first, keep)
    return keep
  end
end

--- Bind an expression's tree to a capture: {filter=, source=}, or nil and {message=, column=}.
-- filter(first, rows) gives FFI u8[rows] for the samples from row `first` on, 1 for those that
-- are chosen; the array is used again at the next call.  source is the Lua it runs.
-- options.lenient: a function or label that the capture does not have matches nothing.
function M.bind(cap, ast, options)
  local bound = { cap = cap, keys = keys_query.build(cap), masks = {}, lines = {}, locals = 0,
    lenient = options and options.lenient }
  local ok, err = pcall(emit, ast, bound, 1)
  if not ok then
    if type(err) ~= "table" then err = { message = tostring(err), column = 1 } end
    return nil, err
  end
  local source = source_of(bound)
  local row_loop = assert(loadstring(source, "=where"))(bound.masks)
  return { filter = make_filter(cap, row_loop), source = source, row_loop = row_loop }
end

M._mark_any, M._mark_innermost, M._mark_outermost = mark_any, mark_innermost, mark_outermost
M._mark_samples = mark_samples
return M
