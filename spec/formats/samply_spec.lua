-- Profiles as samply writes them: the processed format without symbols, modules by code ID, and
-- addresses from each library's first segment on.

local cjson = require("cjson")

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")

local PROGRAM = [[
static volatile int sink;
static inline __attribute__((always_inline)) int inner(int x) {
  for (int i = 0; i < x; i++) sink += i;
  return sink;
}
__attribute__((noinline)) int outer(int x) { return inner(x) + 1; }
int main(void) { return outer(3); }
]]

local function columns(names, rows)
  local out = { length = #rows }
  for i, name in ipairs(names) do
    out[name] = setmetatable({}, cjson.array_mt)
    for k, row in ipairs(rows) do out[name][k] = row[i] == nil and cjson.null or row[i] end
  end
  return out
end

-- The tables of a thread in samply's layout: stacks are lists of { lib or nil, address }.
local function thread_of(t)
  local strings, index = {}, {}
  local function string(text)
    if not index[text] then
      strings[#strings + 1] = text
      index[text] = #strings - 1
    end
    return index[text]
  end
  local frames, funcs, stacks, samples, resources, libs = {}, {}, {}, {}, {}, {}
  for i, sample in ipairs(t.samples) do
    local prefix
    for _, at in ipairs(sample.stack) do
      local lib, address = at[1], at[2]
      if lib and not libs[lib] then
        resources[#resources + 1] = { lib, string("lib" .. lib), nil, 1 }
        libs[lib] = #resources - 1
      end
      funcs[#funcs + 1] = { string(at[3] or ("0x%x"):format(address)), false, false,
        lib and libs[lib] or -1 }
      frames[#frames + 1] = { lib and address or -1, 0, 0, 0, #funcs - 1 }
      stacks[#stacks + 1] = { prefix, #frames - 1, 0, 0 }
      prefix = #stacks - 1
    end
    samples[i] = { prefix, sample.time, sample.weight or 1, sample.cpu or 0 }
  end
  local thread = { name = t.name, pid = t.pid, tid = t.tid, processName = "app",
    isMainThread = t.main or false, registerTime = t.start or 0,
    unregisterTime = t.stop or cjson.null,
    processStartupTime = 0, processShutdownTime = cjson.null, processType = "default",
    pausedRanges = setmetatable({}, cjson.array_mt) }
  thread.samples = columns({ "stack", "time", "weight", "threadCPUDelta" }, samples)
  thread.samples.weightType = "samples"
  thread.frameTable = columns({ "address", "inlineDepth", "category", "subcategory", "func" },
    frames)
  thread.funcTable = columns({ "name", "isJS", "relevantForJS", "resource" }, funcs)
  thread.stackTable = columns({ "prefix", "frame", "category", "subcategory" }, stacks)
  thread.resourceTable = columns({ "lib", "name", "host", "type" }, resources)
  thread.nativeSymbols = columns({ "libIndex", "address", "name", "functionSize" }, {})
  thread.markers = columns({ "data", "name", "startTime", "endTime", "phase", "category" },
    {})
  thread.stringArray = strings
  return thread
end

local function profile(libs, threads)
  local list = {}
  for i, lib in ipairs(libs) do
    local name = lib.path:match("[^/]*$")
    list[i] = { name = name, path = lib.path, debugName = name, debugPath = lib.path,
      breakpadId = ("0"):rep(33),
      codeId = lib.id or cjson.null, arch = "x86_64" }
  end
  local out = {}
  for i, thread in ipairs(threads) do out[i] = thread_of(thread) end
  return cjson.encode { meta = { version = 24, preprocessedProfileVersion = 49, interval = 1,
    startTime = 1700000000000, product = "app", processType = 0, importedFrom = cjson.null,
    symbolicated = false, sampleUnits = { time = "ms", eventDelay = "ms", threadCPUDelta = "µs" },
    categories = { { name = "Other", color = "grey", subcategories = { "Other" } },
      { name = "User", color = "yellow", subcategories = { "Other" } } } },
    libs = list, threads = out, pages = setmetatable({}, cjson.array_mt),
    profilerOverhead = setmetatable({}, cjson.array_mt),
    counters = setmetatable({}, cjson.array_mt) }
end

describe("convert from a profile of samply:", function()
  local folder
  setup(function()
    folder = helper.folder()
    helper.write(folder .. "/app.c", PROGRAM)
    helper.run("gcc -g -O2 -fpie -pie -Wl,--build-id app.c -o moving"
      .. " && gcc -g -O2 -no-pie -Wl,--build-id app.c -o fixed", folder)
  end)
  teardown(function() helper.remove(folder) end)

  local function build_id(program)
    return helper.run(("readelf -n %s/%s"):format(helper.quote(folder), program))
      :match("Build ID: (%x+)")
  end

  -- A symbol's address and where the first segment is.
  local function address(program, symbol)
    local at = helper.run(("nm %s/%s"):format(helper.quote(folder), program))
      :match("(%x+) %a " .. symbol .. "\n")
    local base = helper.run(("readelf -lW %s/%s"):format(helper.quote(folder), program))
      :match("LOAD%s+%S+ (%S+)")
    return tonumber(at, 16) - tonumber(base), tonumber(base)
  end

  -- What addr2line calls an address, the innermost function first.
  local function judged(program, at)
    local out = {}
    local text = helper.run(("addr2line -fie %s/%s 0x%x"):format(helper.quote(folder), program, at))
    for name in text:gmatch("([^\n]+)\n[^\n]+\n") do out[#out + 1] = name end
    return table.concat(out, " < ")
  end

  local function described(path)
    return assert(capture.with(path, function(cap)
      local out, kinds = {}, cap:array("locations", "kind")
      local of, fn = cap:array("lines", "location"), cap:array("lines", "function")
      for l = 0, cap:rows("locations") - 1 do
        local names = {}
        for i = 0, cap:rows("lines") - 1 do
          if of[i] == l then
            names[#names + 1] = cap:string(cap:array("functions", "name")[fn[i]])
          end
        end
        out[l + 1] = { kind = capture.enum("mic_location", kinds[l]),
          names = table.concat(names, " < "),
          offset = tonumber(cap:array("locations", "offset")[l]) }
      end
      return out
    end))
  end

  for _, program in ipairs { "moving", "fixed" } do
    it("names a program at " .. (program == "fixed" and "a fixed" or "any")
      .. " address", function()
      local outer, base = address(program, "outer")
      local main = address(program, "main")
      assert.equal(program == "fixed", base ~= 0)
      helper.write(folder .. "/in.json", profile({ { path = folder .. "/" .. program,
        id = build_id(program) } }, { { name = "app", pid = "7", tid = "7", main = true,
        samples = { { time = 1.5, cpu = 900, stack = { { 0, main }, { 0, outer + 4 } } } } } }))
      kit.convert(folder, "in.json in.usprof")
      local _, err, status = helper.microscope("symbolize -o named.usprof in.usprof", folder)
      assert.equal(0, status, err)
      local places = described(folder .. "/named.usprof")
      assert.equal(2, #places)
      assert.same({ kind = "relative", names = judged(program, base + main), offset = main },
        places[1])
      assert.same({ kind = "relative", names = judged(program, base + outer + 4),
        offset = outer + 4 }, places[2])
      assert.matches("inner < outer", places[2].names)
    end)
  end

  it("names nothing by a file of another build ID", function()
    local outer = address("moving", "outer")
    helper.write(folder .. "/in.json", profile({ { path = folder .. "/fixed",
      id = build_id("moving"):upper() } }, { { name = "app", pid = "7", tid = "7",
      samples = { { time = 1, stack = { { 0, outer } } } } } }))
    kit.convert(folder, "in.json in.usprof")
    helper.microscope("symbolize -o named.usprof in.usprof", folder)
    assert.equal("", described(folder .. "/named.usprof")[1].names)
    assert(capture.with(folder .. "/in.usprof", function(cap)
      return assert.equal(build_id("moving"), cap:string(cap:array("modules", "build_id")[0]))
    end))
  end)

  it("keeps names, addresses in no library, CPU time and a pid that was used again", function()
    helper.write(folder .. "/in.json", profile({ { path = "[kernel.kallsyms]" } }, {
      { name = "app", pid = "7", tid = "7", main = true, start = 2, stop = 9, samples = {
        { time = 3, weight = 4, cpu = 1500,
          stack = { { nil, 0x7f0012345678 }, { 0, 0x40, "do_syscall" } } } } },
      { name = "w", pid = "7.1", tid = "8.1", samples = { { time = 4, stack = { { nil, 16 } } } } },
    }))
    local told = kit.convert(folder, "in.json in.usprof")
    assert.equal("", told)
    local places = described(folder .. "/in.usprof")
    assert.same({ kind = "unmapped", names = "", offset = 0x7f0012345678 }, places[1])
    assert.same({ kind = "relative", names = "do_syscall", offset = 0x40 }, places[2])
    assert(capture.with(folder .. "/in.usprof", function(cap)
      assert.equal(2, cap:rows("processes"))
      assert.equal(7, cap:array("processes", "pid")[1])
      assert.equal(8, cap:array("threads", "tid")[1])
      assert.equal(2000000ULL, cap:array("threads", "start_ns")[0])
      assert.equal(9000000ULL, cap:array("threads", "end_ns")[0])
      local rows, source = {}, cap:array("samples", "source")
      for i = 0, cap:rows("samples") - 1 do
        rows[i + 1] = ("%s %d"):format(cap:string(cap:array("sources", "name")[source[i]]),
          tonumber(cap:array("samples", "weight")[i]))
      end
      return assert.same({ "samples 4", "cpu-time-delta 1500000", "samples 1" }, rows)
    end))
  end)
end)
