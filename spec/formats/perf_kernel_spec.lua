-- perf.data with what no kernel here writes: modules of the kernel, call stacks of the processor,
-- stacks that come later.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kernel_kit = require("spec.symbolize.kernel_kit")
local kit = require("spec.formats.kit")
local perf_file = require("spec.formats.perf_file")
local perf_kit = require("spec.formats.perf_kit")

local KERNEL, LOADED = 4, 5 -- mic_module_kind
local TEXT, MODULE = 0xffffffff81000000ULL, 0xffffffffc0100000ULL
local FILE = "/lib/modules/6.99.0/kernel/small/small-one.ko"
local NATIVE, UNMAPPED = 0, 3
local CALL_STACK = 2048 + 1 -- PERF_SAMPLE_BRANCH_CALL_STACK, _USER

local SOURCE = [[
__attribute__((noinline)) int first(int x) { return x * 3; }
__attribute__((noinline)) int second(int x) { return first(x) + first(x + 1); }
int third(int x) { return second(x) + 1; }
]]

describe("the kernel's code in perf.data:", function()
  local folder
  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  local function shell(command)
    local out, err, status = helper.run(command, folder)
    assert(status == 0, command .. ": " .. err)
    return out
  end

  local function convert(name, records, options)
    helper.write(folder .. "/" .. name .. ".data", perf_file.bytes(records, options))
    local told = kit.convert(folder, name .. ".data " .. name .. ".usprof")
    return perf_kit.ours(folder .. "/" .. name .. ".usprof"), told
  end

  local function begin()
    return {
      perf_file.mmap { time = 1, address = TEXT, size = 0x1000000, offset = TEXT,
        name = "[kernel.kallsyms]_text" },
      perf_file.comm { time = 2, pid = 7, name = "task" },
    }
  end

  local function kinds(name)
    return assert(capture.with(folder .. "/" .. name .. ".usprof", function(cap)
      local out, path, kind = {}, cap:array("modules", "path"), cap:array("modules", "kind")
      for m = 0, cap:rows("modules") - 1 do out[cap:string(path[m])] = kind[m] end
      return out
    end))
  end

  it("has each module's places from where it begins, which its file names as perf does", function()
    helper.write(folder .. "/small.c", SOURCE)
    helper.write(folder .. "/layout", "SECTIONS { .text 0 : { *(.text .text.*) } }\n")
    shell("cc -g -O1 -fno-pic -mcmodel=kernel -c small.c && mkdir -p root" .. FILE:match("^.*/")
      .. " && ld -r --build-id=sha1 -T layout -o root" .. FILE .. " small.o")
    local id = shell("readelf -nW root" .. FILE):match("Build ID: (%x+)")
    local places = {}
    for address in shell("objdump -d --no-show-raw-insn -j .text root" .. FILE)
      :gmatch("\n%s*(%x+):%s*[^\n]+") do places[#places + 1] = tonumber(address, 16) end
    local records = begin()
    records[#records + 1] = perf_file.mmap { time = 3, address = MODULE, size = 0x4000,
      name = FILE }
    for i, place in ipairs(places) do
      records[#records + 1] = perf_file.sample { pid = 7, time = 10 + i,
        chain = { perf_file.KERNEL, MODULE + place, MODULE + places[#places], TEXT + 0x1000 } }
    end
    local ours = convert("modules", records, { build_ids = { { FILE, id },
      { "[kernel.kallsyms]", ("5a"):rep(20) } } })
    assert.same({ ["[kernel.kallsyms]"] = KERNEL, [FILE] = LOADED }, kinds("modules"))
    for i, place in ipairs(places) do
      local frames = ours[i].frames
      assert.same({ place, places[#places] - 1 },
        { tonumber(frames[1].offset), tonumber(frames[2].offset) })
      assert.equal(TEXT + 0xfff, frames[3].offset)
    end
    shell(helper.quote(helper.stage) .. "/bin/microscope symbolize -q -d root modules.usprof")
    ours = perf_kit.ours(folder .. "/modules.usprof")
    for _, sample in ipairs(ours) do assert.equal("third", sample.frames[2].name) end
    if not kit.has("perf") then return end
    local theirs, same = shell("HOME=$PWD perf script -i modules.data --symfs root -F ip,sym"
      .. " 2>/dev/null"), 0
    local k = 0
    for first in (theirs .. "\n"):gmatch("%s*(%x+ %S+)\n[^\n]+\n[^\n]+\n") do
      k = k + 1
      local ip, name = first:match("^(%x+) (%S+)$")
      assert.equal(MODULE + places[k], kernel_kit.u64(ip))
      if ours[k].frames[1].name then
        assert.equal(name, ours[k].frames[1].name)
        same = same + 1
      end
    end
    assert.is_true(same >= 10, theirs)
  end)

  it("has a BPF program's place while it is loaded, and nothing after", function()
    local records = begin()
    local program = { address = MODULE, size = 0x40, name = "bpf_prog_0123456789abcdef_one" }
    local function add(time, kind, r)
      r.time = time
      records[#records + 1] = perf_file[kind](r)
    end
    local function sample(time)
      add(time, "sample", { pid = 7, chain = { perf_file.KERNEL, MODULE + 0x10 } })
    end
    sample(10)
    add(11, "ksymbol", program)
    sample(12)
    program.gone = true
    add(13, "ksymbol", program)
    sample(14)
    add(15, "ksymbol", { address = MODULE - 0x10, size = 0x80, name = "bpf_trampoline_5" })
    sample(16)
    local frames = {}
    for i, s in ipairs(convert("bpf", records)) do
      frames[i] = { s.frames[1].name or "", s.frames[1].kind, tonumber(s.frames[1].offset % 4096) }
    end
    assert.same({ { "", UNMAPPED, 0x10 }, { "bpf_prog_0123456789abcdef_one", NATIVE, 0x10 },
      { "", UNMAPPED, 0x10 }, { "bpf_trampoline_5", NATIVE, 0x20 } }, frames)
  end)

  it("takes callers from the processor's call stack where that was asked for", function()
    local records = begin()
    records[#records + 1] = perf_file.mmap { time = 3, user = true, pid = 7, address = 0x400000,
      size = 0x10000, name = "/nowhere/program" }
    local branches = { { 0x401000, 0x402000 }, { 0x400100, 0x401000 } }
    records[#records + 1] = perf_file.sample { pid = 7, time = 10, branches = branches,
      chain = { perf_file.KERNEL, TEXT + 16, perf_file.USER, 0x402010ULL, 0x99ULL, 0x88ULL } }
    records[#records + 1] = perf_file.sample { pid = 7, time = 11, user = true,
      branches = branches, chain = { perf_file.USER, 0x402010ULL, 0x99ULL } }
    records[#records + 1] = perf_file.sample { pid = 7, time = 12, user = true,
      branches = {}, chain = { perf_file.USER, 0x402010ULL, 0x99ULL } }
    -- Places in /nowhere/program are offsets from 0x400000.
    local function offsets(sample)
      local out = {}
      for i, frame in ipairs(sample.frames) do out[i] = tonumber(frame.offset % 2 ^ 32) end
      return out
    end
    local ours, told = convert("lbr", records, { branches = CALL_STACK })
    assert.same({ 0x81000010, 0x2010, 0x1000, 0x100 }, offsets(ours[1]))
    assert.same({ 0x2010, 0x1000, 0x100 }, offsets(ours[2]))
    assert.same({ 0x2010 }, offsets(ours[3]))
    assert.is_false(ours[1].whole or ours[2].whole or ours[3].whole)
    assert.matches("callers outside the kernel of 1 samples, whose branch stacks are empty", told)
    assert.is_nil(told:find("the branch stacks of", 1, true))
    if kit.has("perf") then
      -- It shows the beginning of the innermost function (0x2000) in place of where it was.
      local theirs = shell("perf script -i lbr.data -F ip 2>/dev/null")
      local lists = {}
      for list in (theirs .. "\n"):gmatch("(.-)\n\n") do
        lists[#lists + 1] = list:gsub("%s+", " ")
      end
      assert.same({ " ffffffff81000010 2000 1000 100", " 2000 1000 100" },
        { lists[1], lists[2] })
    end
    ours, told = convert("branches", records, { branches = 1 })
    assert.equal(4, #ours[1].frames)
    assert.equal(0x98ULL, ours[1].frames[3].offset)
    assert.matches("the branch stacks of 3 samples", told)
  end)

  it("reads the folder of a recording in one file", function()
    local records = begin()
    records[#records + 1] = perf_file.sample { pid = 7, time = 10, user = true,
      chain = { perf_file.USER, 0x402010ULL } }
    helper.run("mkdir one", folder)
    helper.write(folder .. "/one/data", perf_file.bytes(records, { folder = 0 }))
    assert.equal("", kit.convert(folder, "one one.usprof"))
    assert.equal(1, #perf_kit.ours(folder .. "/one.usprof"))
  end)

  describe("a folder in several files", function()
    -- Times and what was told of a folder whose data.N have samples of these times.
    local function several(files, version)
      helper.run("rm -rf several; mkdir several", folder)
      helper.write(folder .. "/several/data",
        perf_file.bytes(begin(), { folder = version or 1 }))
      for number, times in pairs(files) do
        local records = {}
        for i, time in ipairs(times) do
          records[i] = type(time) == "string" and time or perf_file.sample { pid = 7, time = time,
            user = true, chain = { perf_file.USER, 0x402010ULL } }
        end
        helper.write(("%s/several/data.%s"):format(folder, number), table.concat(records))
      end
      local _, err, status = helper.microscope("convert several several.usprof", folder)
      if status ~= 0 then return nil, err end
      local out = {}
      for i, sample in ipairs(perf_kit.ours(folder .. "/several.usprof")) do
        out[i] = tonumber(sample.time)
      end
      return out, err
    end

    it("is read in order of time", function()
      local times, told = several { [0] = { 10, 40, 60 }, { 20, 30, 70 }, {}, { 50 } }
      assert.same({ 10, 20, 30, 40, 50, 60, 70 }, times)
      assert.equal("", told)
    end)

    it("is all files whose names begin so, as for perf", function()
      local times, told = several { [0] = { 10 }, ["00"] = { 20 }, ["01"] = { 30 }, x = { 40 },
        ["9999999"] = { 50 } }
      assert.same({ 10, 20, 30, 40, 50 }, times)
      assert.equal("", told)
    end)

    it("leaves out what is no regular file, and says so", function()
      several { [0] = { 10 } }
      for name, command in pairs { folder = "mkdir %s", fifo = "mkfifo %s",
        link = "ln -s nowhere %s", device = "ln -s /dev/zero %s" } do
        helper.run("rm -rf several/data.1; " .. command:format("several/data.1"), folder)
        local told = kit.convert(folder, "several odd.usprof")
        assert.matches("1 file of its folder that is no regular file, data.1 the first", told, 1,
          true, name)
        assert.equal(1, #perf_kit.ours(folder .. "/odd.usprof"))
      end
    end)

    it("tells what is missing or damaged, and reads the rest", function()
      local size = #perf_file.sample { pid = 7, time = 1, chain = { perf_file.USER, 1 } }
      local times, told = several { [0] = { 10, "12345", 40 }, { 20 }, [5] = { 30 } }
      assert.same({ 10, 20, 30 }, times)
      assert.matches(("all from record 2 at byte %d of data.0 on: a record"):format(size), told, 1,
        true)
      assert.matches("3 files of its folder, data.2 the first", told, 1, true)
      assert(capture.with(folder .. "/several.usprof", function(cap)
        local problem, found = cap:array("problems", "text"), false
        for i = 0, cap:rows("problems") - 1 do
          found = found or cap:string(problem[i]) == "files of the perf.data's folder are missing"
            and tonumber(cap:array("problems", "count")[i]) == 3
        end
        return assert.is_true(found)
      end))
    end)

    it("is refused without them, or of another form", function()
      local times, err = several({})
      assert.is_nil(times)
      assert.matches("several/data: its samples lie in other files of its folder, data.0 and on",
        err, 1, true)
      times, err = several({ [0] = { 10 } }, 2)
      assert.is_nil(times)
      assert.matches("a form that is not known here (version 2)", err, 1, true)
    end)

    it("is known when perf was killed", function()
      several { [3] = { 20 }, [4] = { 10 } }
      local bytes = helper.read(folder .. "/several/data")
      helper.write(folder .. "/several/data", bytes:sub(1, 48) .. ("\0"):rep(8)
        .. perf_file.bytes(begin()):sub(57))
      kit.convert(folder, "several killed.usprof")
      assert.equal(2, #perf_kit.ours(folder .. "/killed.usprof"))
    end)
  end)

  -- Samples whose part beside is each of these texts; what is told of it.
  local function beside(name, rest, parts)
    local records = begin()
    for i, bytes in ipairs(parts) do
      records[#records + 1] = perf_file.sample { pid = 7, time = 10 + i, user = true,
        chain = { perf_file.USER, 0x402010ULL }, rest = bytes }
    end
    local ours, told = convert(name, records, { rest = rest })
    assert.equal(#parts, #ours)
    return told
  end

  it("tells of accesses to memory, not of those that samples say are none", function()
    -- PERF_MEM_NA of Linux 6.1 and since, of Linux before, and a load that hit the L1 cache.
    local na, old, none = perf_file.u64(0x1e05080021ULL), perf_file.u64(0x5080021), perf_file.u64(0)
    assert.equal("", beside("none", perf_file.DATA_SRC, { na, old, none }))
    assert.matches("left out of some.data: what 1 samples hold beside their period",
      beside("some", perf_file.DATA_SRC, { na, old, none, perf_file.u64(0x68100142) }))
  end)

  it("tells of control groups and fields of samples, not of fields that are none", function()
    assert.matches("what 1 samples hold beside their period",
      beside("groups", perf_file.CGROUP, { perf_file.u64(42) }))
    -- A size in 4 bytes, then as many.
    local none, some = perf_file.u64(4), perf_file.u64(12) .. perf_file.u64(1)
    assert.equal("", beside("empty", perf_file.RAW, { none }))
    assert.matches("the fields of 1 tracepoint samples",
      beside("raw", perf_file.RAW, { none, some }))
  end)

  describe("counts that samples tell", function()
    local group, id = 2 ^ 3, 2 ^ 2 -- PERF_FORMAT_*
    local function sample(time, tid, ...)
      local values, words = { ... }, {}
      for i, value in ipairs(values) do words[i] = perf_file.u64(value) end
      return perf_file.sample { pid = 7, tid = tid, time = time, user = true,
        read = perf_file.u64(#values / 2) .. table.concat(words),
        chain = { perf_file.USER, 0x402010ULL } }
    end
    local function weights(ours)
      local out = {}
      for i, s in ipairs(ours) do out[i] = s.time .. " " .. s.period end
      return out
    end

    it("are samples of each event of the group that counted", function()
      local records = begin()
      -- {value, id}: 77 is an event of no attributes.
      records[#records + 1] = sample(10, 7, 500, 41, 3, 42, 1, 77)
      records[#records + 1] = sample(20, 7, 1500, 41, 3, 42, 1, 77)
      records[#records + 1] = sample(30, 7, 1500, 41, 5, 42, 1, 77)
      local ours, told = convert("group", records, { read = group + id, ids = { 41, 42 } })
      assert.same({ "10 500", "10 3", "20 1000", "30 2" }, weights(ours))
      assert.matches("3 counts of events that the file does not tell", told)
      -- A count of more values than the record has.
      records[#records + 1] = perf_file.sample { pid = 7, time = 40, user = true,
        read = perf_file.u64(2 ^ 61), chain = { perf_file.USER, 0x402010ULL } }
      ours, told = convert("group", records, { read = group + id, ids = { 41, 42 } })
      assert.equal(4, #ours)
      assert.matches("1 record that does not hold together", told)
      -- Without ids the count is the event's own: its period tells.
      records = begin()
      records[#records + 1] = perf_file.sample { pid = 7, time = 10, user = true,
        read = perf_file.u64(500), chain = { perf_file.USER, 0x402010ULL } }
      assert.same({ "10 1000" }, weights((convert("alone", records, { read = 0 }))))
    end)

    it("are of each thread where the event is inherited", function()
      local records = begin()
      local function fork(time)
        records[#records + 1] = perf_file.fork { pid = 7, tid = 8, ppid = 7, ptid = 7, time = time }
      end
      records[#records + 1] = sample(10, 7, 100, 41, 3, 42)
      fork(11)
      records[#records + 1] = sample(20, 8, 40, 41, 1, 42)
      records[#records + 1] = sample(30, 7, 150, 41, 3, 42)
      records[#records + 1] = sample(40, 8, 90, 41, 1, 42)
      -- Another thread of the same id, which has counted more at its first sample.
      fork(45)
      records[#records + 1] = sample(50, 8, 95, 41, 2, 42)
      -- One whose birth is not told, and which has counted less.
      records[#records + 1] = sample(60, 8, 30, 41, 2, 42)
      local ours = convert("inherit", records, { read = group + id, ids = { 41, 42 },
        inherit = true })
      assert.same({ "10 100", "10 3", "20 40", "20 1", "30 50", "40 50", "50 95", "50 2",
        "60 30" }, weights(ours))
    end)
  end)

  it("counts the stacks that the kernel told later", function()
    local records = begin()
    for i = 1, 3 do
      records[#records + 1] = perf_file.sample { pid = 7, time = 10 * i,
        chain = { perf_file.KERNEL, TEXT + 16 * i, perf_file.USER_DEFERRED, 77 } }
    end
    records[#records + 1] = perf_file.deferred { pid = 7, time = 50, cookie = 77,
      ips = { perf_file.USER, 0x402010ULL, 0x401010ULL } }
    local ours, told = convert("deferred", records)
    for _, sample in ipairs(ours) do
      assert.equal(1, #sample.frames)
      assert.is_false(sample.whole)
    end
    assert.matches("the callers outside the kernel of 3 samples, which the kernel told later", told)
    assert.is_nil(told:find("records of context switches", 1, true))
  end)

  it("takes a build ID that is told of a vmlinux for the kernel's", function()
    local records = begin()
    records[#records + 1] = perf_file.sample { pid = 7, time = 10,
      chain = { perf_file.KERNEL, TEXT + 0x1000 } }
    convert("vmlinux", records, { build_ids = {
      { "/usr/lib/debug/boot/vmlinux-6.99.0", ("5a"):rep(20) } } })
    assert.equal(("5a"):rep(20), assert(capture.with(folder .. "/vmlinux.usprof", function(cap)
      return cap:string(cap:array("modules", "build_id")[0])
    end)))
  end)

  it("names nothing of a kernel that is not this one", function()
    local records = begin()
    records[#records + 1] = perf_file.mmap { time = 3, address = MODULE, size = 0x4000,
      name = "[other]" }
    records[#records + 1] = perf_file.sample { pid = 7, time = 10,
      chain = { perf_file.KERNEL, MODULE + 0x10, TEXT + 0x1000 } }
    convert("other", records, { build_ids = { { "[kernel.kallsyms]", ("5a"):rep(20) },
      { "[other]", ("a5"):rep(20) } } })
    assert.equal(0, assert(capture.with(folder .. "/other.usprof", function(cap)
      return cap:rows("functions")
    end)))
    local text = helper.microscope("report other.usprof", folder)
    assert.matches("%[other%]%+0x10", text)
    assert.matches("problem: %[kernel%.kallsyms%]: it is not the kernel that runs here", text)
  end)
end)
