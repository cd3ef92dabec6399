--- large.lua - files of other formats as large as they are asked for, for specs and benches.
--
-- large.write("pprof deep", path, 1000000) writes one.  large.kinds lists what there is, each with
-- what its number counts.

local ffi = require("ffi")

local perf_file = require("spec.formats.perf_file")
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

local u64 = ffi.typeof("uint64_t[1]")

-- A word of the machine.
local function word(value) return ffi.string(u64(value), 8) end

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

-- n samples of 200 frames, of which the first and the last are of their own.
local function perf_script_deep(put, n)
  local frame = "\t%16x fn_%d+0x%x (/usr/lib/lib%d.so)\n"
  for i = 1, n do
    put(("worker 100/100 [000] %.6f:    1000000 cpu-clock: \n"):format(1000 + i / 1000))
    put(frame:format(2 ^ 30 + i * 16, i, i % 255, i % 20))
    for k = 1, 198 do put(frame:format(4096 + k * (i % 40), k, i % 40, k % 20)) end
    put(frame:format(2 ^ 20 + i * 16, 1000 + i, i % 255, 1))
    put("\n")
  end
end

-- n samples, each of a thread of its own.
local function perf_script_threads(put, n)
  for i = 1, n do
    put(("worker_%d %d/%d [%03d] %.6f:    1000000 cpu-clock: \n"):format(i, 100 + i % 1000,
      1000 + i, i % 2, 1000 + i / 1000))
    put("\t            1234 fn+0x4 (/usr/lib/lib.so)\n\n")
  end
end

-- n samples of functions with names of 20,000 bytes.
local function perf_script_names(put, n)
  for i = 1, n do
    put(("worker 100/100 [000] %.6f:    1000000 cpu-clock: \n"):format(1000 + i / 1000))
    put(("\t%16x fn_%d"):format(4096 + i * 16, i), ("y"):rep(20000), "+0x1 (/usr/lib/lib.so)\n\n")
  end
end

-- gperftools' binary CPU profile: n records of `depth` addresses, the first and the last of their
-- own.
local function legacy_cpu(depth)
  return function(put, n)
    put(word(0), word(3), word(0), word(1000), word(0))
    for i = 1, n do
      put(word(1), word(depth), word(2 ^ 22 + i * 4))
      for k = 2, depth - 1 do put(word(2 ^ 22 + (i % 9) * k)) end
      put(word(2 ^ 24 + i))
    end
    put(word(0), word(1), word(0), "00400000-40000000 r-xp 00000000 08:01 7 /bin/app\n")
  end
end

-- A heap profile of n records, each of a place of its own that has a name.
local function legacy_heap(put, n)
  put(("heap profile: %d: %d [%d: %d] @ heap/1048576\n"):format(n, n * 64, n * 2, n * 128))
  for i = 1, n do
    put(("1: 64 [2: 128] @ 0x%x 0x%x\n"):format(2 ^ 22 + i * 4, 2 ^ 21 + i % 1000))
    put(("#\t0x%x\tmain.f_%d+0x10\t/src/a_%d.go:%d\n\n"):format(2 ^ 22 + i * 4 - 1, i, i % 99,
      i % 999))
  end
  put("MAPPED_LIBRARIES:\n00400000-40000000 r-xp 00000000 08:01 7 /bin/app\n")
end

-- A CPU profile with n mappings.
local function legacy_maps(put, n)
  legacy_cpu(2)(put, 1)
  for i = 1, n do
    put(("%x-%x r-xp 00000000 08:01 7 /lib/lib%d.so\n"):format(2 ^ 40 + i * 8192,
      2 ^ 40 + i * 8192 + 4096, i % 5000))
  end
end

-- --- perf.data ----------------------------------------------------------------------------------

local function perf_data(records_of)
  return function(put, n)
    local records = { perf_file.comm { pid = 7, name = "app", time = 1 },
      perf_file.mmap { pid = 7, time = 2, address = 2 ^ 22, size = 2 ^ 20, name = "/none/app",
        user = true } }
    local in_rounds = {}
    records_of(records, n)
    for i, one in ipairs(records) do
      in_rounds[#in_rounds + 1] = one
      if i % 1000 == 0 then in_rounds[#in_rounds + 1] = perf_file.round() end
    end
    put(perf_file.bytes(in_rounds))
  end
end

local function perf_sample(pid, time, address)
  return perf_file.sample { pid = pid, time = time, user = true,
    chain = { perf_file.USER, address, 2 ^ 22 + 64 } }
end

local PERF = {
  -- n samples of a few places.
  samples = perf_data(function(records, n)
    for i = 1, n do records[#records + 1] = perf_sample(7, 1000 + i, 2 ^ 22 + i % 5000 * 16) end
  end),
  -- n samples, each of a place of its own.
  places = perf_data(function(records, n)
    records[#records + 1] = perf_file.mmap { pid = 7, time = 3, address = 2 ^ 30, size = 2 ^ 30,
      name = "/none/large", user = true }
    for i = 1, n do records[#records + 1] = perf_sample(7, 1000 + i, 2 ^ 30 + i * 16) end
  end),
  -- n mappings, each with a sample in it.
  maps = perf_data(function(records, n)
    for i = 1, n do
      records[#records + 1] = perf_file.mmap { pid = 7, time = 1000 + 2 * i, user = true,
        address = 2 ^ 40 + i * 8192, size = 4096, name = "/none/lib" .. i % 3000 }
      records[#records + 1] = perf_sample(7, 1001 + 2 * i, 2 ^ 40 + i * 8192 + 8)
    end
  end),
  -- n processes, one after the other, each with a name, a mapping and a sample.
  processes = perf_data(function(records, n)
    for i = 1, n do
      records[#records + 1] = perf_file.comm { pid = 100 + i, name = "p" .. i, time = 1000 + 3 * i }
      records[#records + 1] = perf_file.mmap { pid = 100 + i, time = 1001 + 3 * i, user = true,
        address = 2 ^ 22, size = 2 ^ 20, name = "/none/app" }
      records[#records + 1] = perf_sample(100 + i, 1002 + 3 * i, 2 ^ 22 + i % 5000 * 16)
      records[#records + 1] = perf_file.exit { pid = 100 + i, time = 1002 + 3 * i }
    end
  end),
}

-- --- OpenTelemetry ------------------------------------------------------------------------------

-- A file of these messages; the first of each table is none.
local function otlp(samples, dictionary)
  return function(put, n)
    local strings = { "", "cpu", "nanoseconds", "thread.name", "key" }
    local function size_of(part)
      local size = 0
      part(function(...)
        for i = 1, select("#", ...) do size = size + #(select(i, ...)) end
      end)
      return size
    end
    local function profile(to)
      to(bytes(1, number(1, 1) .. number(2, 2)))
      samples(to, n)
    end
    local function tables(to)
      to(bytes(1, ""), bytes(2, ""), bytes(3, ""), bytes(4, ""), bytes(6, ""), bytes(7, ""))
      for _, text in ipairs(strings) do to(bytes(5, text)) end
      dictionary(to, n, #strings)
    end
    local size = size_of(profile)
    local inner = head(2, size)
    local scope = head(2, size + #inner)
    put(head(1, size + #inner + #scope), scope, inner)
    profile(put)
    put(head(2, size_of(tables)))
    tables(put)
  end
end

local function otlp_place(to)
  to(bytes(2, bytes(3, number(1, 1))), bytes(3, number(1, 1)), bytes(7, bytes(1, varint(1))))
end

local OTLP = {
  -- n samples, each with two attributes of its own.
  attributes = otlp(function(to, n)
    for i = 1, n do
      to(bytes(2, number(1, 1) .. bytes(2, varint(2 * i - 1) .. varint(2 * i))
        .. bytes(4, varint(5))))
    end
  end, function(to, n)
    otlp_place(to)
    for i = 1, 2 * n do to(bytes(6, number(1, 4) .. bytes(2, number(3, i)))) end
  end),
  -- One sample of n times.
  times = otlp(function(to, n)
    local block = ("\1\0\0\0\0\0\0\0"):rep(1000)
    local blocks = math.ceil(n / 1000)
    local ones = ("\5"):rep(1000)
    local values, times = head(4, 1000 * blocks), head(5, 8000 * blocks)
    to(head(2, 2 + #values + 1000 * blocks + #times + 8000 * blocks), number(1, 1), values)
    for _ = 1, blocks do to(ones) end
    to(times)
    for _ = 1, blocks do to(block) end
  end, otlp_place),
  -- n samples, each with a link and a stack of its own.
  stacks = otlp(function(to, n)
    for i = 1, n do to(bytes(2, number(1, i) .. number(3, i) .. bytes(4, varint(5)))) end
  end, function(to, n)
    for i = 1, n do
      to(bytes(2, bytes(3, number(1, 1) .. number(2, i))), bytes(4, bytes(1, ("x"):rep(16))),
        bytes(7, bytes(1, varint(i) .. varint(1 + i % 99))))
    end
    to(bytes(3, number(1, 1)))
  end),
  -- n functions with names of their own, each in a location and a stack.
  names = otlp(function(to, n)
    for i = 1, n do to(bytes(2, number(1, i) .. bytes(4, varint(5)))) end
  end, function(to, n, strings)
    for i = 1, n do
      to(bytes(5, "fn_" .. i), bytes(3, number(1, strings + i - 1)),
        bytes(2, bytes(3, number(1, i))), bytes(7, bytes(1, varint(i))))
    end
  end),
}

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

-- n samples, each of a frame of its own, with all callers between it and the first ones.
local function chrome_samples(put, n)
  put('{"traceEvents":[],"stackFrames":{')
  for i = 1, n do
    put(i > 1 and ",\n" or "", '"', i, '":{"name":"fn_', i % 5000, '","category":"lib', i % 20, '"')
    if i > 1 then put(',"parent":"', math.floor(i / 20) + 1, '"') end
    put("}")
  end
  put('},"samples":[')
  for i = 1, n do
    put(i > 1 and ",\n" or "", '{"cpu":0,"tid":', i % 8, ',"ts":', i, ',"name":"cycles","sf":', i,
      ',"weight":1}')
  end
  put("]}\n")
end

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

-- n profiles of a sample.
local function speedscope_profiles(put, n)
  put(SPEEDSCOPE)
  for i = 1, 1000 do put(i > 1 and "," or "", '{"name":"f', i, '"}') end
  put(']},"profiles":[')
  for i = 1, n do
    put(i > 1 and ",\n" or "", '{"type":"sampled","name":"t', i, '","unit":"none","startValue":0,',
      '"endValue":1,"samples":[[', i % 1000, ',', (i * 7) % 1000, ']],"weights":[1]}')
  end
  put("]}\n")
end

-- n samples of 40 frames, of which the outer ones are the same.
local function speedscope_stacks(put, n)
  put(SPEEDSCOPE)
  for i = 1, 1000 do put(i > 1 and "," or "", '{"name":"f', i, '"}') end
  put(']},"profiles":[{"type":"sampled","name":"t","unit":"none","startValue":0,"endValue":', n,
    ',"samples":[')
  for i = 1, n do
    put(i > 1 and ",\n[" or "[", join(1, 40, function(k)
      return k < 30 and k or math.floor(i * k / 40) % 1000
    end, ","), "]")
  end
  put('],"weights":[')
  for i = 1, n do put(i > 1 and ",1" or "1") end
  put("]}]}\n")
end

-- --- profiles of Firefox ------------------------------------------------------------------------

-- The caller of a stack: with frames in turn no two stacks are the same.
local function prefix(i) return i > 0 and math.floor((i - 1) / 50) or "null" end

-- A thread of a Gecko profile: samples, stacks, frames and markers, as many of each.
local function gecko_thread(put, tid, t)
  put('{"name":"t', tid, '","tid":', tid, ',"pid":1,"registerTime":0,"samples":{"schema":',
    '{"stack":0,"time":1,"eventDelay":2},"data":[')
  for i = 1, t.samples do
    put(i > 1 and ",\n[" or "[", (i * 7) % t.stacks, ",", i, ",0]")
  end
  put(']},"markers":{"schema":{"name":0,"startTime":1,"endTime":2,"phase":3,"category":4,',
    '"data":5},"data":[')
  for i = 1, t.markers do
    put(i > 1 and ",\n[" or "[", i % t.frames, ",", i, ",", i + 0.5, ",1,0]")
  end
  put(']},"stackTable":{"schema":{"prefix":0,"frame":1},"data":[')
  for i = 0, t.stacks - 1 do
    put(i > 0 and ",\n[" or "[", prefix(i), ",", i % t.frames, "]")
  end
  put(']},"frameTable":{"schema":{"location":0,"relevantForJS":1,"innerWindowID":2,',
    '"implementation":3,"line":4},"data":[')
  for i = 0, t.frames - 1 do put(i > 0 and ",\n[" or "[", i, ",false,0,null,", i % 7, "]") end
  put(']},"stringTable":[')
  for i = 0, t.frames - 1 do put(i > 0 and ',\n"fn_' or '"fn_', i, ' (in lib', i % 9, '.so)"') end
  put("]}")
end

-- The end of a profile: so many threads alike.
local function put_threads(put, put_thread, count, t)
  for i = 1, count do
    put(i > 1 and ",\n" or "")
    put_thread(put, i, t)
  end
  put("]}\n")
end

local function gecko(threads_of)
  return function(put, n)
    put('{"meta":{"version":24,"interval":1,"startTime":1000,"processType":0,"categories":',
      '[{"name":"Other","color":"grey"}]},"libs":[],"processes":[],"threads":[')
    put_threads(put, gecko_thread, threads_of(n))
  end
end

-- One of the processed format, in samply's layout, with tables of its own.
local function columns(put, name, count, list)
  put('"', name, '":{')
  for _, column in ipairs(list) do
    put('"', column[1], '":[')
    for i = 0, count - 1 do put(i > 0 and "," or "", column[2](i)) end
    put("],")
  end
  put('"length":', count, "}")
end

local function constant(value) return function() return value end end

local function firefox_thread(put, tid, t)
  local function self(i) return i end
  put('{"name":"t', tid, '","tid":"', tid, '","pid":"1","processName":"app","registerTime":0,')
  columns(put, "samples", t.samples, { { "stack", function(i) return (i * 7) % t.stacks end },
    { "time", function(i) return i / 4 end }, { "weight", constant(1) },
    { "threadCPUDelta", constant(250) } })
  put(",")
  columns(put, "stackTable", t.stacks, {
    { "prefix", prefix },
    { "frame", function(i) return i % t.frames end } })
  put(",")
  columns(put, "frameTable", t.frames, { { "address", function(i) return i * 16 end },
    { "inlineDepth", constant(0) }, { "func", self }, { "line", function(i) return i % 7 end } })
  put(",")
  columns(put, "funcTable", t.frames, { { "name", self }, { "resource", constant(0) } })
  put(",")
  columns(put, "resourceTable", 1, { { "lib", constant(0) }, { "name", constant(0) },
    { "type", constant(1) } })
  put(",")
  columns(put, "markers", t.markers, { { "name", function(i) return i % t.frames end },
    { "startTime", self }, { "endTime", function(i) return i + 0.5 end }, { "phase", constant(1) },
    { "category", constant(0) } })
  put(',"stringArray":[')
  for i = 0, t.frames - 1 do put(i > 0 and ',\n"fn_' or '"fn_', i, '"') end
  put("]}")
end

local function firefox(threads_of)
  return function(put, n)
    put('{"meta":{"version":24,"preprocessedProfileVersion":49,"interval":1,"startTime":1000,',
      '"sampleUnits":{"time":"ms","eventDelay":"ms","threadCPUDelta":"µs"},',
      '"categories":[{"name":"Other","color":"grey"}]},"libs":[{"name":"a","path":"/a",',
      '"codeId":"aa"}],"threads":[')
    put_threads(put, firefox_thread, threads_of(n))
  end
end

-- What n counts in them, the rest being small.
local FEW = { samples = 1, stacks = 100, frames = 100, markers = 0 }
local function many(...)
  local parts = { ... }
  return function(n)
    local t = setmetatable({}, { __index = FEW })
    for _, part in ipairs(parts) do t[part] = n end
    return 1, t
  end
end
local function many_threads(n) return n, { samples = 2, stacks = 4, frames = 2, markers = 1 } end

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
  ["perf-script deep"] = perf_script_deep,
  ["perf-script threads"] = perf_script_threads,
  ["perf-script names"] = perf_script_names,
  ["legacy cpu"] = legacy_cpu(2),
  ["legacy deep"] = legacy_cpu(250),
  ["legacy heap"] = legacy_heap,
  ["legacy maps"] = legacy_maps,
  ["perf samples"] = PERF.samples,
  ["perf places"] = PERF.places,
  ["perf maps"] = PERF.maps,
  ["perf processes"] = PERF.processes,
  ["otlp attributes"] = OTLP.attributes,
  ["otlp times"] = OTLP.times,
  ["otlp stacks"] = OTLP.stacks,
  ["otlp names"] = OTLP.names,
  ["chrome complete"] = complete,
  ["chrome pairs"] = pairs_of,
  ["chrome unsorted"] = unsorted,
  ["chrome ids"] = by_ids,
  ["chrome one id"] = by_one_id,
  ["chrome names"] = names,
  ["chrome threads"] = threads,
  ["chrome arguments"] = arguments,
  ["chrome samples"] = chrome_samples,
  ["speedscope sampled"] = speedscope,
  ["speedscope evented"] = speedscope_events,
  ["speedscope profiles"] = speedscope_profiles,
  ["speedscope stacks"] = speedscope_stacks,
  ["gecko samples"] = gecko(many("samples")),
  ["gecko stacks"] = gecko(many("stacks", "samples")),
  ["gecko frames"] = gecko(many("frames", "stacks", "samples")),
  ["gecko markers"] = gecko(many("markers")),
  ["gecko threads"] = gecko(many_threads),
  ["firefox samples"] = firefox(many("samples")),
  ["firefox stacks"] = firefox(many("stacks", "samples")),
  ["firefox frames"] = firefox(many("frames", "stacks", "samples")),
  ["firefox markers"] = firefox(many("markers")),
  ["firefox threads"] = firefox(many_threads),
}

--- Write a file of a kind.
function M.write(kind, path, n)
  local put, done = writer(path)
  M.kinds[kind](put, n)
  done()
end

return M
