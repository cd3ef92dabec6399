-- Chrome traces of others: each oddity that real ones have, and malformed text.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")

describe("convert from a Chrome trace", function()
  local folder

  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  -- The zones of a capture in their order: {name, start, end (or "open"), lane, thread's name}.
  local function zones_of(path)
    return assert(capture.with(path, function(cap)
      local out, open = {}, 0xffffffffffffffffULL
      local stop = cap:array("zones", "end_ns")
      for i = 0, cap:rows("zones") - 1 do
        local site, thread = cap:array("zones", "site")[i], cap:array("zones", "thread")[i]
        out[#out + 1] = {
          cap:string(cap:array("sites", "name")[site]),
          tonumber(cap:array("zones", "start_ns")[i]),
          stop[i] == open and "open" or tonumber(stop[i]),
          cap:array("zones", "lane")[i],
          cap:string(cap:array("threads", "name")[thread]),
        }
      end
      return out
    end))
  end

  local function read(text)
    helper.write(folder .. "/in.json", text)
    local said = kit.convert(folder, "--from chrome in.json in.usprof")
    return zones_of(folder .. "/in.usprof"), said
  end

  -- Events of thread 2 of process 1, unless they say another.
  local function trace(...)
    local events = {}
    for _, event in ipairs { ... } do
      if not event:find('"pid"') then event = event .. ',"pid":1' end
      if not event:find('"tid"') then event = event .. ',"tid":2' end
      events[#events + 1] = "{" .. event .. "}"
    end
    return "[" .. table.concat(events, ",\n") .. "]"
  end

  it("reads complete events mixed with begins and ends", function()
    assert.same({
      { "outer", 0, 20000, 0, "" }, { "be", 1250, 2750, 0, "" }, { "x", 1500, 2500, 0, "" },
    }, (read(trace('"ph":"X","name":"outer","ts":100,"dur":20', '"ph":"B","name":"be","ts":101.25',
      '"ph":"X","name":"x","ts":101.5,"dur":1', '"ph":"E","name":"be","ts":102.75'))))
  end)

  it("takes events that are not sorted, also those that end together", function()
    assert.same({
      { "a", 0, 10000, 0, "" }, { "b", 5000, 10000, 0, "" }, { "c", 7000, 10000, 0, "" },
    }, (read(trace('"ph":"E","name":"a","ts":10', '"ph":"E","name":"c","ts":10',
      '"ph":"B","name":"c","ts":7', '"ph":"B","name":"a","ts":0', '"ph":"E","name":"b","ts":10',
      '"ph":"B","name":"b","ts":5'))))
  end)

  it("takes the length that a begin gives, and its end too", function()
    assert.same({ { "a", 0, 3000, 0, "" }, { "b", 4000, 6000, 0, "" } }, (read(trace(
      '"ph":"B","name":"a","ts":0,"dur":3', '"ph":"B","name":"b","ts":4,"dur":2',
      '"ph":"E","name":"b","ts":6'))))
  end)

  it("keeps asynchronous spans that overlap, by their ids", function()
    assert.same({ { "job", 0, 10000, 1, "" }, { "job", 5000, 15000, 2, "" },
      { "old", 20000, 21000, 1, "" } }, (read(trace(
      '"ph":"b","cat":"c","name":"job","id":"0x1","ts":0',
      '"ph":"b","cat":"c","name":"job","id":2,"ts":5',
      '"ph":"e","cat":"c","name":"job","id":"0x1","ts":10',
      '"ph":"e","cat":"c","name":"job","id":2,"ts":15',
      '"ph":"S","cat":"c","name":"old","id":"o","ts":20',
      '"ph":"F","cat":"c","name":"old","id":"o","ts":21'))))
  end)

  it("gives spans that overlap a lane of their own, and says so", function()
    local zones, said = read(trace('"ph":"X","name":"a","ts":0,"dur":10',
      '"ph":"X","name":"b","ts":5,"dur":10', '"ph":"X","name":"c","ts":6,"dur":2'))
    assert.same({
      { "a", 0, 10000, 0, "" }, { "b", 5000, 15000, 1, "" }, { "c", 6000, 8000, 0, "" },
    }, zones)
    assert.equal("microscope convert: in.json: 1 span overlap others of their thread: they have "
      .. "lanes of their own\n", said)
  end)

  it("takes a child that is written before its parent", function()
    assert.same({ { "parent", 0, 10000, 0, "" }, { "child", 0, 4000, 0, "" } }, (read(trace(
      '"ph":"X","name":"child","ts":0,"dur":4', '"ph":"X","name":"parent","ts":0,"dur":10'))))
  end)

  it("does without the last bracket, and with a comma before it", function()
    local event = '{"ph":"X","name":"a","ts":1,"dur":1,"pid":1,"tid":1}'
    for _, text in ipairs { "[" .. event, "[" .. event .. ",", "[" .. event .. ",\n\n",
      "[" .. event .. ",]", "[" .. event .. ",\n]\n", '{"traceEvents":[' .. event,
      '{"traceEvents":[' .. event .. "]", '{"a":{"b":[1]},"traceEvents":[' .. event .. '],"c":2}',
      "[]", '{"traceEvents":[]}' } do
      local zones = read(text)
      assert.equal(text:find("ph", 1, true) and 1 or 0, #zones, text)
    end
  end)

  it("keeps nanoseconds, and times that are negative, large or texts", function()
    assert.same({ { "a", 0, 1, 0, "" }, { "b", 100000000123001, 100000000123003, 0, "" } },
      (read(trace('"ph":"X","name":"a","ts":-0.001,"dur":0.001',
        '"ph":"X","name":"b","ts":"100000000123.000","dur":2e-3'))))
    assert(capture.with(folder .. "/in.usprof", function(cap)
      assert.equal(0, tonumber(cap:array("clocks", "monotonic_ns")[0]))
      return true
    end))
  end)

  it("names threads and processes, whatever their ids are", function()
    local zones = read(trace('"ph":"X","name":"a","ts":0,"dur":1,"pid":"gpu","tid":140737488355327',
      '"ph":"X","name":"b","ts":0,"dur":1,"pid":7,"tid":"7"',
      '"ph":"X","name":"c","ts":0,"dur":1,"pid":7,"tid":8',
      '"ph":"M","name":"thread_name","pid":7,"tid":8,"args":{"name":"worker"}',
      '"ph":"M","name":"process_name","pid":7,"args":{"name":"server","x":{"name":"no"}}'))
    assert.same({ "140737488355327", "", "worker" }, { zones[1][5], zones[2][5], zones[3][5] })
    assert(capture.with(folder .. "/in.usprof", function(cap)
      assert.equal("gpu", cap:string(cap:array("processes", "name")[0]))
      assert.equal("server", cap:string(cap:array("processes", "name")[1]))
      assert.equal(7, cap:array("processes", "pid")[1])
      assert.equal(8, cap:array("threads", "tid")[2])
      return true
    end))
  end)

  it("leaves what is no span out, and says how much", function()
    local zones, said = read(trace('"ph":"C","name":"c","ts":0,"args":{"v":1}',
      '"ph":"i","name":"i","ts":0', '"ph":"I","name":"i","ts":0', '"ph":"E","ts":3',
      '"ph":"X","name":"a","dur":1', '"name":"none"', '"ph":"X","name":"n","ts":0,"dur":-1',
      '"ph":"X","name":"a","ts":1,"dur":1,"args":{"k":[1,{"ph":"X"}]}', '"ph":"Q","ts":1'))
    assert.equal(1, #zones)
    assert.equal("microscope convert: left out of in.json: 3 events: event 5 has no time; "
      .. "1 end of nothing that began; 1 event with arguments; 2 instant events; 1 counter; "
      .. "1 event of other kinds\n", said)
  end)

  it("says what begins and does not end", function()
    local zones, said = read(trace('"ph":"B","name":"a","ts":0', '"ph":"B","name":"b","ts":1',
      '"ph":"E","name":"b","ts":2', '"ph":"X","name":"c","ts":5'))
    assert.same({
      { "a", 0, "open", 0, "" }, { "b", 1000, 2000, 0, "" }, { "c", 5000, "open", 0, "" },
    }, zones)
    assert.matches("2 spans begin and do not end", said)
  end)

  it("refuses text that is no JSON or no trace, with the place", function()
    for text, words in pairs {
      ['[{"ph":"X",,}]'] = "byte %d+: no JSON: ",
      ['[{"ph":"X","ts":1'] = "byte 17: the text ends too early",
      ['[{"ph":"X"}] x'] = "byte %d+: no JSON",
      ["17"] = "no trace events in it",
      ['{"a":[{"ph":"X"}]}'] = "no trace events in it",
      [("["):rep(200000)] = "byte 200000: the text ends too early",
      [""] = "ends too early",
    } do
      helper.write(folder .. "/bad.json", text)
      local err = kit.refused(folder, "--from chrome bad.json bad.usprof")
      assert.matches("bad.json", err)
      assert.matches(words, err)
    end
  end)

  it("is known by its first bytes, and goes back as it came", function()
    local path = folder .. "/a.usprof"
    assert(capture.generate { path = path, samples = 100, stacks = 10, zones = 40 })
    kit.convert(folder, "a.usprof a.json")
    local said = kit.convert(folder, "a.json b.usprof")
    assert.matches("spans? begin and do not end", said)
    kit.convert(folder, "b.usprof b.json")
    local _, _, status = helper.run([[for f in a b; do grep '"ph":"[XB]"' $f.json |
      sed 's/,$//' | sort > $f.txt; done; cmp a.txt b.txt]], folder)
    assert.equal(0, status)
    local out, err, code = helper.microscope("report b.usprof", folder)
    assert.equal(0, code, err)
    assert.matches("query", out)
  end)

  it("reads a million events in little more than its tables", function()
    local _, err, status = helper.run(([[awk 'BEGIN { printf "["; for (i = 0; i < 1000000; i++)
      printf "%%s{\"name\":\"n%%d\",\"ph\":\"X\",\"ts\":%%d,\"dur\":1,\"pid\":1,\"tid\":%%d}\n",
        i ? "," : "", i %% 100, i * 2, i %% 8 }' > big.json;
      (ulimit -v 400000; %s/bin/microscope convert big.json big.usprof); rm big.json]]):format(
      helper.quote(helper.stage)), folder)
    assert.equal("", err)
    assert.equal(0, status)
    assert(capture.with(folder .. "/big.usprof", function(cap)
      assert.equal(1000000, cap:rows("zones"))
      return true
    end))
  end)
end)
