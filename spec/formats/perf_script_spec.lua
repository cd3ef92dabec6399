-- The text of perf script: threads with odd names, units, fields that may be missing.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")

describe("convert from perf script's text:", function()
  local folder
  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  -- The samples of a text, as what they say, and what convert said.
  local function samples(text)
    helper.write(folder .. "/a.txt", text)
    local told = kit.convert(folder, "--from perf-script a.txt a.usprof")
    return assert(capture.with(folder .. "/a.usprof", function(cap)
      local thread, out = cap:array("samples", "thread"), {}
      local source, unit = cap:array("samples", "source"), cap:array("sources", "unit")
      for i = 0, cap:rows("samples") - 1 do
        local t = thread[i]
        out[#out + 1] = ("%s|%d/%d|%d|%s|%s|%s|%s"):format(
          cap:string(cap:array("threads", "name")[t]),
          cap:array("processes", "pid")[cap:array("threads", "process")[t]],
          cap:array("threads", "tid")[t], cap:array("samples", "cpu")[i],
          tostring(cap:array("samples", "time_ns")[i]):gsub("ULL", ""),
          cap:string(cap:array("sources", "name")[source[i]]),
          capture.enum("mic_unit", unit[source[i]]),
          tostring(cap:array("samples", "weight")[i]):gsub("ULL", ""))
      end
      return out
    end)), told
  end

  local FRAME = "\t 1260 work+0x2 (/bin/work)\n\n"

  it("finds ids and times whatever a thread's name holds", function()
    local out = samples("[ET_NET 0] 1234/1235 [002] 100.000001: 7 cycles: \n" .. FRAME
      .. "HDMI polling ta  77 [000] 100.000002: 7 cycles: \n" .. FRAME
      .. "a     9   100.000003: 7 cycles: \n" .. FRAME
      .. "worker 12 3 456 [001] 100.000004: 7 cycles: \n" .. FRAME
      .. "a 1 [000] 1.0:    88 [003] 100.000005: 7 cycles: \n" .. FRAME
      .. "             :-1    -1 100.000006: 7 cycles: \n" .. FRAME)
    assert.same({
      "[ET_NET 0]|1234/1235|2|0|cycles|cycles|7",
      "HDMI polling ta|0/77|0|1000|cycles|cycles|7",
      "a|0/9|0|2000|cycles|cycles|7",
      "worker 12 3|0/456|1|3000|cycles|cycles|7",
      "a 1 [000] 1.0:|0/88|3|4000|cycles|cycles|7",
    }, out)
  end)

  it("counts in the event's unit", function()
    local out, told = samples("w 1 1.000000: 83 page-faults: \n" .. FRAME
      .. "w 1 1.000001: 250000 cpu-clock:u: \n" .. FRAME
      .. "w 1 1.000002: syscalls:sys_enter_write: fd: 0x00000001, count: 0x0000000a\n" .. FRAME
      .. "w 1 1.000003: 5 cpu/event=0x3c/u:     1260 work+0x2 (/bin/work)\n"
      .. "w 1 1.000004: PERF_RECORD_MMAP2 1/1: [0x1000(0x1000) @ 0 00:00 0 0]: r-xp /bin/work\n"
      .. "w 1 1.000005123: \n" .. FRAME)
    assert.same({
      "w|0/1|0|0|page-faults|count|83",
      "w|0/1|0|1000|cpu-clock:u|cpu_ns|250000",
      "w|0/1|0|2000|syscalls:sys_enter_write|count|1",
      "w|0/1|0|3000|cpu/event=0x3c/u|count|5",
      "w|0/1|0|5123|samples|count|1",
    }, out)
    assert.matches("1 lines of records that are no samples", told)
    assert.matches("what the lines of 1 samples tell beside", told)
  end)

  it("keeps functions, images, inlined functions and source lines", function()
    samples("w 1 1.0: 5 cycles: \n"
      .. "\t 1260 std::function<void (int)>::operator()(int) const+0x2 (/opt/a b/work (deleted))\n"
      .. "  function.h:590\n"
      .. "\t 1270 inner (inlined)\n  work.c:7\n\t 1270 outer+0x10 (/bin/work)\n  work.c:9\n"
      .. "\t7f0e855713a8 [unknown] ([unknown])\n\n")
    assert(capture.with(folder .. "/a.usprof", function(cap)
      local out = {}
      local fn, depth = cap:array("lines", "function"), cap:array("lines", "depth")
      for i = 0, cap:rows("lines") - 1 do
        local f, file = fn[i], cap:array("lines", "file")[i]
        local module = cap:array("functions", "module")[f]
        out[i + 1] = ("%s|%s|%s:%d|%d"):format(cap:string(cap:array("functions", "name")[f]),
          module ~= capture.NONE and cap:string(cap:array("modules", "path")[module]) or "",
          file ~= capture.NONE and cap:string(cap:array("files", "path")[file]) or "",
          cap:array("lines", "line")[i], depth[i])
      end
      return assert.same({
        "std::function<void (int)>::operator()(int) const|/opt/a b/work (deleted)|function.h:590|0",
        "inner|/bin/work|work.c:7|0",
        "outer|/bin/work|work.c:9|1",
        "[unknown]||:0|0",
      }, out)
    end))
  end)

  it("follows a thread's name, and tells of lines by number", function()
    local out, told = samples("sh 5/5 1.0: 1 cycles: \n" .. FRAME .. "what is this\n\n"
      .. "work 5/5 2.0: 1 cycles: \n" .. FRAME)
    assert.same({ "work|5/5|0|0|cycles|cycles|1", "work|5/5|0|1000000000|cycles|cycles|1" }, out)
    assert.matches("1 line of 8: line 4: no thread's id, time and event", told)
    helper.write(folder .. "/b.txt", "\t 1260 work (/bin/work)\n")
    assert.matches("b.txt: no sample in it: line 1: a frame without a sample",
      kit.refused(folder, "--from perf-script b.txt b.usprof"))
  end)

  it("gives the weights that perf.data gives", function()
    if not kit.has("perf") then return pending("perf is not installed") end
    local data = helper.root .. "/fixtures/fuzz/perfdata/events"
    local command = ("perf script -i %s >events.txt"):format(helper.quote(data))
    local _, err, status = helper.run(command, folder)
    assert(status == 0, err)
    kit.convert(folder, "events.txt text.usprof")
    kit.convert(folder, helper.quote(data) .. " data.usprof")
    for _, name in ipairs { "cpu-clock", "page-faults" } do
      local text = kit.weights(folder .. "/text.usprof")[name] or {}
      local binary = kit.weights(folder .. "/data.usprof")[name] or {}
      assert.equal(kit.total(binary), kit.total(text))
    end
  end)
end)
