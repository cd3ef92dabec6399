-- Chrome traces read: events in any order and form, as zones.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")
local zones_query = require("microscope.query.zones")

describe("convert from a Chrome trace:", function()
  local folder
  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  local function number(value) return (tostring(value):gsub("ULL$", "")) end

  -- The zones of a trace as "thread name start-end lane", and what convert said.
  local function zones(trace)
    helper.write(folder .. "/a.json", trace)
    local told = kit.convert(folder, "--from chrome a.json a.usprof")
    return assert(capture.with(folder .. "/a.usprof", function(cap)
      local out = {}
      local start, stop = cap:array("zones", "start_ns"), cap:array("zones", "end_ns")
      for i = 0, cap:rows("zones") - 1 do
        local site, thread = cap:array("zones", "site")[i], cap:array("zones", "thread")[i]
        local finish = stop[i] == 0xffffffffffffffffULL and "?" or number(stop[i])
        out[i + 1] = ("%d %s %s-%s %d"):format(cap:array("threads", "tid")[thread],
          cap:string(cap:array("sites", "name")[site]), number(start[i]), finish,
          cap:array("zones", "lane")[i])
      end
      return out
    end)), told
  end

  -- {"ph":PH,"name":NAME,"ts":TS,EXTRA}
  local function event(ph, name, ts, extra)
    return ('{"ph":"%s",%s"ts":%s,"pid":1,"tid":7%s}'):format(ph,
      name and ('"name":"%s",'):format(name) or "", ts, extra and "," .. extra or "")
  end
  local function array(...) return "[" .. table.concat({ ... }, ",\n") .. "]" end

  it("mixes complete events with begins and ends", function()
    assert.same({ "7 a 0-100000 0", "7 b 10000-50000 0", "7 c 15000-20001 0" },
      (zones(array(event("X", "a", 10, '"dur":100'), event("B", "b", 20),
        event("X", "c", 25, '"dur":5.001'), event("E", nil, 60)))))
  end)

  it("sorts events, also those that end together", function()
    assert.same({ "7 out 0-50000 0", "7 in 10000-50000 0" },
      (zones(array(event("E", nil, 60), event("E", nil, 60), event("B", "in", 20),
        event("B", "out", 10)))))
  end)

  it("matches deep nesting, and looks for a begin among the innermost 4096", function()
    local events, depth = {}, 5000
    for i = 1, depth do events[i] = event("B", "n", i) end
    for i = 1, depth do events[depth + i] = event("E", "n", depth + i) end
    local got, told = zones("[" .. table.concat(events, ",") .. "]")
    assert.same({ "7 n 0-9999000 0", "7 n 4999000-5000000 0" }, { got[1], got[depth] })
    assert.equal("", told)
    events = { event("B", "far", 0) }
    for i = 1, 4096 do events[i + 1] = event("B", "near", i) end
    events[4098] = event("E", "far", 5000)
    got, told = zones("[" .. table.concat(events, ",") .. "]")
    assert.equal("7 far 0-? 0", got[1])
    assert.matches("1 end of nothing that began", told)
  end)

  it("lets a begin with a duration last that long, with its end or without", function()
    assert.same({ "7 d 0-3000 0", "7 o 4000-8000 0", "7 d2 5000-6000 0" },
      (zones(array(event("B", "d", 1, '"dur":3'), event("B", "o", 5),
        event("B", "d2", 6, '"dur":1'), event("E", nil, 9)))))
    assert.same({ "7 o 0-8000 0", "7 d 1000-4000 0" },
      (zones(array(event("B", "o", 5), event("B", "d", 6, '"dur":3'), event("E", "d", 9),
        event("E", nil, 13)))))
  end)

  it("takes a begin with a duration of 0, as V8 writes all, for one that says none", function()
    local got, told = zones(array(event("B", "gc", 1, '"dur":0,"tdur":0'),
      event("B", "in", 2, '"dur":0'), event("E", "in", 4, '"dur":0'), event("E", "gc", 9)))
    assert.same({ "7 gc 0-8000 0", "7 in 1000-3000 0" }, got)
    assert.equal("", told)
  end)

  it("pairs asynchronous events by id, which may overlap", function()
    local function async(ph, name, ts, id) return event(ph, name, ts, '"cat":"n","id":' .. id) end
    assert.same({ "7 r 0-9000 1", "7 q 3000-12000 2", "7 r 5000-7000 1" },
      (zones(array(async("b", "r", 0, '"0x1"'), async("b", "r", 5, '"0x1"'),
        async("b", "q", 3, "2"), async("e", "r", 7, '"0x1"'), async("e", "r", 9, '"0x1"'),
        async("e", "q", 12, "2")))))
  end)

  describe("asynchronous ids", function()
    -- An event of process pid, with what tells its id.
    local function at(ph, ts, pid, id)
      return ('{"ph":"%s","cat":"c","name":"n","ts":%d,"pid":%d,"tid":7%s}'):format(ph, ts, pid,
        id ~= "" and "," .. id or "")
    end

    -- Two pairs, of an id each, the second begun within the first.
    local function two(first, second)
      local _, told = zones(array(at("b", 0, 1, first), at("b", 1, 1, second),
        at("e", 2, 1, first), at("e", 3, 1, second)))
      return told
    end

    it("are of all processes, but for id2's local ones", function()
      for _, id in ipairs { '"id":"0x1"', '"id2":{"global":"0x1"}' } do
        assert.same({ "7 n 0-9000 1" }, (zones(array(at("b", 0, 1, id), at("e", 9, 2, id)))))
      end
      local local_id = '"id2":{"local":"0x1"}'
      assert.same({ "7 n 0-9000 1", "7 n 1000-8000 1" }, (zones(array(at("b", 0, 1, local_id),
        at("b", 1, 2, local_id), at("e", 8, 2, local_id), at("e", 9, 1, local_id)))))
    end)

    it("differ by scope and by what they are of", function()
      for _, ids in ipairs { { '"id":1,"scope":"a"', '"id":1,"scope":"b"' },
        { '"id2":{"local":"0x1"}', '"id2":{"global":"0x1"}' },
        { '"id":"1","scope":"2"', '"id":"12"' } } do
        assert.matches("1 span overlap others", two(ids[1], ids[2]))
      end
      assert.same({ "7 n 0-3000 1", "7 n 1000-2000 1" }, (zones(array(at("b", 0, 1, '"id":1'),
        at("b", 1, 1, '"id":1'), at("e", 2, 1, '"id":1'), at("e", 3, 1, '"id":1')))))
    end)

    it("are the same in any order and form, and must be there", function()
      for _, same in ipairs { { '"id":1', '"id":"1"' }, { '"id":1.0', '"id":1' },
        { '"id":1e3', '"id":"1000"' },
        { '"id":"7","id2":{"local":"0x1"}', '"id2":{"local":"0x1"},"id":"8"' } } do
        local got, told = zones(array(at("b", 0, 1, same[1]), at("e", 9, 1, same[2])))
        assert.same({ "7 n 0-9000 1" }, got)
        assert.equal("", told)
      end
      for _, none in ipairs { "", '"id":null', '"id":{"a":1}', '"id":true' } do
        local got, told = zones(array(event("X", "a", 0, '"dur":1'), at("b", 0, 1, none),
          at("e", 9, 1, none)))
        assert.same({ "7 a 0-1000 0" }, got)
        assert.matches("2 events: event 2 has no id", told)
      end
    end)
  end)

  it("gives zones that overlap a lane of their own, and says so", function()
    local out, told = zones(array(event("X", "p", 0, '"dur":10'), event("X", "q", 5, '"dur":10')))
    assert.same({ "7 p 0-10000 0", "7 q 5000-15000 1" }, out)
    assert.matches("1 span overlap others of their thread", told)
  end)

  it("takes a child that was written before its parent", function()
    assert.same({ "7 parent 0-10000 0", "7 child 1000-3000 0", "7 same 1000-3000 0" },
      (zones(array(event("X", "child", 1, '"dur":2'), event("X", "same", 1, '"dur":2'),
        event("X", "parent", 0, '"dur":10')))))
  end)

  it("takes text that ends early, or with a comma too many", function()
    local one = event("X", "a", 0, '"dur":1')
    for _, trace in ipairs { "[" .. one, "[" .. one .. ",\n", "[" .. one .. ",]",
      '{"traceEvents":[' .. one .. ',{"ph":"X","na' } do
      local out, told = zones(trace)
      assert.same({ "7 a 0-1000 0" }, out)
      local within = trace:find('"na$') ~= nil
      assert.equal(within, told:find("ends within an event", 1, true) ~= nil)
    end
  end)

  it("tells what it leaves out", function()
    local out, told = zones('{"otherData":{"traceEvents":1},"traceEvents":' .. array(
      event("X", "a", 1, '"dur":-1'), event("X", "b", 1, '"dur":1,"args":{"k":[1,{}]}'),
      event("C", "c", 1), event("i", "i", 1), event("E", nil, 9), event("s", "f", 1, '"id":1'),
      event("B", "open", 2), event("O", "o", 1), "5", event("X", "t", '"never"', '"dur":1'))
      .. ',"samples":[{"sf":1},{"sf":2}]}')
    assert.same({ "7 b 0-1000 0", "7 open 1000-8000 0" }, out)
    for _, text in ipairs { "3 events: event 1 has a negative duration", "1 counter",
      "1 event with arguments", "1 instant event", "1 flow event", "1 event of other kinds",
      "2 samples" } do
      assert.is_truthy(told:find(text, 1, true), text .. " in " .. told)
    end
  end)

  it("says how many parts of V8's CPU profiles it leaves out", function()
    local _, told = zones(array(event("X", "a", 1, '"dur":1'),
      event("P", "Profile", 1, '"args":{"data":{"startTime":1}}'),
      event("P", "ProfileChunk", 2, '"args":{"data":{"timeDeltas":[10]}}'),
      event("P", "ProfileChunk", 3)))
    assert.matches("3 parts of V8's CPU profiles, whose samples are not read", told, 1, true)
  end)

  it("reads samples with their stacks, wherever they stand", function()
    local frames = '"stackFrames":{"5":{"name":"main","category":"app"},'
      .. '"a-long-key-of-a-frame-that-is-more-than-31":{"name":"work",'
      .. '"parent":"5"},"7":{"name":"leaf","parent":8},'
      .. '"8":{"name":"[depth limit]"},"9":{"name":"round","parent":"10"},'
      .. '"10":{"name":"trip","parent":"9"}}'
    local samples = '"samples":[{"cpu":3,"tid":7,"ts":12.5,"name":"cycles","weight":40,'
      .. '"sf":"a-long-key-of-a-frame-that-is-more-than-31"},{"tid":9,"ts":"10","name":"cycles",'
      .. '"sf":7},{"tid":9,"ts":11,"name":"cycles","sf":"none"}]'
    for _, text in ipairs { "{" .. samples .. "," .. frames .. ',"traceEvents":[]}',
      '{"traceEvents":' .. array(event("X", "a", 11, '"dur":1')) .. "," .. frames .. ","
        .. samples .. "}" } do
      local _, told = zones(text)
      assert.matches("1 sample$", (told:gsub("\n.*", "")))
      assert.same({ cycles = { ["main;work"] = 40, leaf = 1 } },
        kit.weights(folder .. "/a.usprof"))
      assert(capture.with(folder .. "/a.usprof", function(cap)
        assert.equal(2500ULL, cap:array("samples", "time_ns")[0])
        assert.equal(0ULL, cap:array("samples", "time_ns")[1])
        assert.equal(3, cap:array("samples", "cpu")[0])
        assert.equal(7, cap:array("threads", "tid")[cap:array("samples", "thread")[0]])
        return assert.equal("app", cap:string(cap:array("modules", "path")[0]))
      end))
    end
    local _, told = zones(("{" .. samples .. "," .. frames .. "}"):gsub('"weight":40',
      '"weight":39.6'))
    assert.matches("parts of units in 1 weights", told)
    assert.same({ cycles = { ["main;work"] = 40, leaf = 1 } }, kit.weights(folder .. "/a.usprof"))
    for from, words in pairs { ['"sf":7'] = "callers of its stack go round",
      ['"weight":40'] = "a negative weight", ['"ts":"10"'] = "no number where one must be" } do
      local to = from:gsub("7", "9"):gsub("40", "-40"):gsub('"10"', "true")
      helper.write(folder .. "/bad.json", (("{" .. samples .. "," .. frames .. "}"):gsub(from, to)))
      local err = kit.refused(folder, "--from chrome bad.json bad.usprof")
      assert.is_truthy(err:find(words, 1, true), err)
    end
  end)

  it("keeps nanoseconds, odd ids and names", function()
    local ids = '"pid":"gpu","tid":140123456789012'
    local out = zones(array(
      '{"ph":"M","name":"thread_name","args":{"name":"q\\u0000\\"x"},' .. ids .. "}",
      '{"ph":"X","name":"a","ts":1700000000000000.123,"dur":0.001,' .. ids .. "}",
      '{"ph":"X","name":"b","ts":1.700000000000000124e15,"dur":1e3,"pid":"12","tid":"13"}'))
    assert.same({ "0 a 0-1 0", "13 b 1-1000001 0" }, out)
    assert(capture.with(folder .. "/a.usprof", function(cap)
      local process, thread = cap:array("processes", "name"), cap:array("threads", "name")
      assert.equal("gpu", cap:string(process[0]))
      assert.equal('q\0"x', cap:string(thread[0]))
      return assert.equal(12, cap:array("processes", "pid")[1])
    end))
  end)

  it("refuses what is no trace, with the byte", function()
    local function refused(text)
      helper.write(folder .. "/b.json", text)
      return kit.refused(folder, "--from chrome b.json b.usprof")
    end
    assert.matches("byte %d+: no JSON: ", refused('[{"ph":"X" "name"}]'))
    assert.matches("no trace events", refused('{"a":1}'))
    assert.matches("event 1 has a negative duration",
      refused(array(event("X", "c", 1, '"dur":-5'))))
  end)

  it("comes back as it went", function()
    zones(array(event("X", "a", 10, '"dur":100,"cat":"k"'), event("B", "open", 20),
      event("X", "c", 60, '"dur":100')))
    local before = assert(capture.with(folder .. "/a.usprof", zones_query.by_site))
    kit.convert(folder, "a.usprof again.json")
    kit.convert(folder, "again.json again.usprof")
    assert.same(before, assert(capture.with(folder .. "/again.usprof", zones_query.by_site)))
  end)

  it("is reported by site", function()
    zones(array(event("X", "a", 0, '"dur":10,"cat":"k"'), event("X", "a", 20, '"dur":30'),
      event("X", "a", 60, '"dur":10,"cat":"k"'), event("B", "open", 100)))
    local out = helper.microscope("report a.usprof", folder)
    assert.matches("4 zones, no samples", out)
    assert.matches("\n +1 +30%.0 us +30%.0 us +30%.0 us +a\n", out)
    assert.matches("\n +2 +20%.0 us +10%.0 us +10%.0 us +a %(k%)\n", out)
  end)
end)
