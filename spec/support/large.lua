--- large.lua - files of other formats as large as they are asked for, for specs and benches.
--
-- large.write("pprof deep", path, 1000000) writes one.  large.kinds lists what there is, each with
-- what its number counts.

local wire = require("spec.formats.wire")

local M = {}

local varint, number, bytes = wire.varint, wire.number, wire.bytes

-- A function that writes pieces, gathered, and one that ends the file.
local function writer(path)
  local file, parts, count = assert(io.open(path, "wb")), {}, 0
  local function put(...)
    for i = 1, select("#", ...) do
      count = count + 1
      parts[count] = (select(i, ...))
    end
    if count < 4096 then return end
    file:write(table.concat(parts, "", 1, count))
    count = 0
  end
  return put, function()
    file:write(table.concat(parts, "", 1, count))
    file:close()
  end
end

-- The numbers of a range, each made by fn, as one text.
local function join(first, last, fn, separator)
  local out = {}
  for i = first, last do out[#out + 1] = fn(i) end
  return table.concat(out, separator)
end

-- --- pprof --------------------------------------------------------------------------------------

local TYPE = bytes(1, number(1, 1) .. number(2, 2))
local STRINGS = bytes(6, "") .. bytes(6, "samples") .. bytes(6, "count")

local function location(id, fn) return bytes(4, number(1, id) .. bytes(4, number(1, fn))) end
local function func(id, name) return bytes(5, number(1, id) .. number(2, name)) end
local ONE_SAMPLE = bytes(2, bytes(1, varint(1)) .. bytes(2, varint(1)))

-- The head of a message whose parts follow.
local function head(field, size) return varint(field * 8 + 2) .. varint(size) end

local PPROF = {
  -- One sample with n frames.
  deep = function(put, n)
    local function frames() return join(1, 1000, function(i) return varint(i) end) end
    local block = frames()
    local blocks = math.ceil(n / 1000)
    local ids = head(1, #block * blocks)
    put(head(2, #ids + #block * blocks + 3), ids)
    for _ = 1, blocks do put(block) end
    put(bytes(2, varint(1)))
    for i = 1, 1000 do put(location(i, i), func(i, 2 + i)) end
    put(STRINGS)
    for i = 1, 1000 do put(bytes(6, "f" .. i)) end
  end,
  -- Two samples with n / 2 frames each, the same functions at other places.
  twins = function(put, n)
    for first = 0, 1000, 1000 do
      local block = join(first + 1, first + 1000, function(i) return varint(i) end)
      local blocks = math.ceil(n / 2000)
      local ids = head(1, #block * blocks)
      put(head(2, #ids + #block * blocks + 3), ids)
      for _ = 1, blocks do put(block) end
      put(bytes(2, varint(1)))
    end
    for i = 1, 1000 do put(location(i, i), location(1000 + i, i), func(i, 2 + i)) end
    put(STRINGS)
    for i = 1, 1000 do put(bytes(6, "f" .. i)) end
  end,
  -- n places that no function is known of, each of a sample.
  places = function(put, n)
    for i = 1, n do put(bytes(2, bytes(1, varint(i)) .. bytes(2, varint(1)))) end
    put(bytes(3, number(1, 1) .. number(3, 2 ^ 31) .. number(5, 3)))
    for i = 1, n do put(bytes(4, number(1, i) .. number(2, 1) .. number(3, 16 * i))) end
    put(STRINGS, bytes(6, "/usr/lib/libmany.so"))
  end,
  -- One sample with n labels.
  labels = function(put, n)
    local function label(i) return bytes(3, number(1, 1) .. number(3, i)) end
    local size = 0
    for i = 1, n do size = size + #label(i) end
    put(head(2, size + 6), bytes(1, varint(1)), bytes(2, varint(1)))
    for i = 1, n do put(label(i)) end
    put(location(1, 1), func(1, 1), STRINGS)
  end,
  -- One location with n lines.
  lines = function(put, n)
    local function line(i) return bytes(4, number(1, 1) .. number(2, i)) end
    local size = 2
    for i = 1, n do size = size + #line(i) end
    put(ONE_SAMPLE, head(4, size), number(1, 1))
    for i = 1, n do put(line(i)) end
    put(func(1, 1), STRINGS)
  end,
  -- n strings that nothing names.
  strings = function(put, n)
    put(ONE_SAMPLE, location(1, 1), func(1, 1), STRINGS)
    for i = 1, n do put(bytes(6, ("%x"):format(i))) end
  end,
  -- One string of n bytes.
  string = function(put, n)
    put(ONE_SAMPLE, location(1, 1), func(1, 3), STRINGS, head(6, n))
    for _ = 1, n / 1000 do put(("x"):rep(1000)) end
  end,
  -- The same of bytes that are no UTF-8.
  bytes = function(put, n)
    put(ONE_SAMPLE, location(1, 1), func(1, 3), STRINGS, head(6, n))
    for _ = 1, n / 1000 do put(("\xff"):rep(1000)) end
  end,
  -- n functions with names of 20,000 bytes.
  names = function(put, n)
    for i = 1, n do
      put(bytes(2, bytes(1, varint(i)) .. bytes(2, varint(1))), location(i, i), func(i, 2 + i))
    end
    put(STRINGS)
    for i = 1, n do put(head(6, 20008), ("%08x"):format(i), ("\xc3\xa9"):rep(10000)) end
  end,
  -- n samples, each of a location, a function and a name of its own; ids are no row numbers.
  samples = function(put, n)
    for i = 1, n do
      local stack = varint(7 * i) .. varint(7 + 7 * (i % 10)) .. varint(7)
      put(bytes(2, bytes(1, stack) .. bytes(2, varint(i))))
    end
    for i = 1, n do put(location(7 * i, 5 * i)) end
    for i = 1, n do put(func(5 * i, 2 + i)) end
    put(STRINGS)
    for i = 1, n do put(bytes(6, "f" .. i)) end
  end,
}

local function pprof(kind)
  return function(put, n)
    put(TYPE)
    PPROF[kind](put, n)
  end
end

-- --- texts --------------------------------------------------------------------------------------

local function folded_names(put, n)
  for i = 1, n do put("function_", i, " 1\n") end
end

-- Up to 977 * 389 * 11 stacks, no two the same.
local function folded_stacks(put, n)
  for i = 1, n do
    put("main;serve;handle_", i % 977, ";query_", i % 389, ";leaf_", i % 11, " ", i % 5 + 1, "\n")
  end
end

local function folded_deep(put, n)
  put("f0")
  for i = 1, n - 1 do put(";f", i % 1000) end
  put(" 1\n")
end

local function perf_script(put, n)
  for i = 1, n do
    put(("worker %d/%d [%03d] %.6f:    1000000 cpu-clock: \n"):format(100 + i % 4, 100 + i % 7,
      i % 2, 1000 + i / 1000))
    put(("\t%16x fn_%d+0x%x (/usr/lib/lib%d.so)\n"):format(4096 + i * 16, i, i % 255, i % 20))
    put(("\t%16x fn_%d+0x%x (/usr/lib/lib%d.so)\n\n"):format(4096 + i, i % 977, i % 255, i % 20))
  end
end

-- --- JSON ---------------------------------------------------------------------------------------

local function chrome(event, step)
  return function(put, n)
    put("[")
    for i = 1, n do put(i > 1 and ",\n{" or "{", event(i), (',"ts":%.3f'):format(i * step), "}") end
    put("]\n")
  end
end

local complete = chrome(function(i)
  return ('"ph":"X","name":"fn_%d","cat":"c","dur":0.5,"pid":1,"tid":%d'):format(i % 500, i % 4)
end, 0.7)
local pairs_of = chrome(function(i)
  return ('"ph":"%s","name":"fn_%d","pid":1,"tid":1'):format(i % 2 == 1 and "B" or "E",
    math.floor((i + 1) / 2) % 500)
end, 0.7)
local names = chrome(function(i)
  return ('"ph":"X","name":"fn_%d","dur":0.5,"pid":1,"tid":%d'):format(i, i % 4)
end, 0.7)
local threads = chrome(function(i)
  return ('"ph":"X","name":"f","dur":0.5,"pid":1,"tid":%d'):format(i)
end, 0.7)

-- A zone each, of an event that begins it and one that ends it: begin(i), finish(i).
local function zones(first_time, begin, finish)
  return function(put, n)
    put("[")
    for i = 1, n do
      local start = first_time(i, n)
      put(i > 1 and ",\n{" or "{", begin(i), (',"ts":%.3f},\n{'):format(start), finish(i),
        (',"ts":%.3f}'):format(start + 7))
    end
    put("]\n")
  end
end

local function in_order(i) return i * 10 end
-- All places of a ring, in steps of about two fifths of it.
local function scattered(i, n) return (i * 7919 * 53) % n * 10 end

local unsorted = zones(scattered,
  function(i) return ('"ph":"B","name":"fn_%d","pid":1,"tid":1'):format(i % 500) end,
  function() return '"ph":"E","pid":1,"tid":1' end)
local function asynchronous(time, id)
  return zones(time,
    function(i)
      return ('"ph":"b","cat":"c","id":"%s","name":"fn_%d","pid":1,"tid":1'):format(id(i), i % 500)
    end,
    function(i) return ('"ph":"e","cat":"c","id":"%s","pid":1,"tid":1'):format(id(i)) end)
end
local by_ids = asynchronous(in_order, function(i) return ("id-of-one-operation-%x"):format(i) end)
local by_one_id = asynchronous(scattered, function() return "0x1" end)

-- One event with n arguments, before n others.
local function arguments(put, n)
  put('{"traceEvents":[{"ph":"X","name":"f","ts":1,"dur":1,"pid":1,"tid":1,"args":{"a":0')
  for i = 1, n do put(',"a', i, '":', i) end
  put("}}")
  local event = ',\n{"ph":"X","name":"f","ts":%d,"dur":1,"pid":1,"tid":1}'
  for i = 1, n do put(event:format(i * 2)) end
  put("]}\n")
end

local SPEEDSCOPE = '{"$schema":"https://www.speedscope.app/file-format-schema.json",'
  .. '"shared":{"frames":['

local function speedscope(put, n)
  put(SPEEDSCOPE)
  for i = 1, n do put(i > 1 and "," or "", '{"name":"f', i, '"}') end
  put(']},"profiles":[{"type":"sampled","name":"t","unit":"none","startValue":0,"endValue":', n,
    ',"samples":[')
  for i = 1, n do put(i > 1 and ",\n[" or "[", i % 100, ",", i - 1, "]") end
  put('],"weights":[')
  for i = 1, n do put(i > 1 and ",1" or "1") end
  put("]}]}\n")
end

local function speedscope_events(put, n)
  put(SPEEDSCOPE, '{"name":"a"},{"name":"b"}]},"profiles":[{"type":"evented","name":"t",',
    '"unit":"none","startValue":0,"endValue":', n, ',"events":[')
  for i = 1, n do
    put(i > 1 and ",\n" or "", ('{"type":"%s","frame":%d,"at":%d}'):format(
      i % 2 == 1 and "O" or "C", math.floor((i - 1) / 2) % 2, i))
  end
  put("]}]}\n")
end

M.kinds = {
  ["pprof deep"] = pprof("deep"),
  ["pprof twins"] = pprof("twins"),
  ["pprof places"] = pprof("places"),
  ["pprof labels"] = pprof("labels"),
  ["pprof lines"] = pprof("lines"),
  ["pprof strings"] = pprof("strings"),
  ["pprof string"] = pprof("string"),
  ["pprof bytes"] = pprof("bytes"),
  ["pprof names"] = pprof("names"),
  ["pprof samples"] = pprof("samples"),
  ["folded names"] = folded_names,
  ["folded stacks"] = folded_stacks,
  ["folded deep"] = folded_deep,
  ["perf-script"] = perf_script,
  ["chrome complete"] = complete,
  ["chrome pairs"] = pairs_of,
  ["chrome unsorted"] = unsorted,
  ["chrome ids"] = by_ids,
  ["chrome one id"] = by_one_id,
  ["chrome names"] = names,
  ["chrome threads"] = threads,
  ["chrome arguments"] = arguments,
  ["speedscope sampled"] = speedscope,
  ["speedscope evented"] = speedscope_events,
}

--- Write a file of a kind.
function M.write(kind, path, n)
  local put, done = writer(path)
  M.kinds[kind](put, n)
  done()
end

return M
