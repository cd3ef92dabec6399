-- speedscope and Firefox Profiler files: there and back, odd ones, malformed ones.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")

describe("convert from", function()
  local folder, weights

  setup(function()
    folder = helper.folder()
    assert(capture.generate { path = folder .. "/a.usprof", samples = 5000, stacks = 200,
      functions = 150, processes = 2, zones = 12, seed = 3 })
    weights = kit.weights(folder .. "/a.usprof")["cpu-clock"]
  end)
  teardown(function() helper.remove(folder) end)

  local function read(format, text)
    helper.write(folder .. "/in.json", text)
    local said = kit.convert(folder, "--from " .. format .. " in.json in.usprof")
    return kit.weights(folder .. "/in.usprof"), said
  end
  local function refused(format, text, words)
    helper.write(folder .. "/bad.json", text)
    local err = kit.refused(folder, "--from " .. format .. " bad.json bad.usprof")
    assert.is_truthy(err:find(words, 1, true), err)
    assert.is_truthy(err:find("bad.json", 1, true), err)
  end
  -- What a report makes of it.
  local function reported(path)
    local out, err, status = helper.microscope("report " .. path, folder)
    assert.equal(0, status, err)
    return out
  end

  describe("speedscope", function()
    local HEAD = '{"$schema":"https://www.speedscope.app/file-format-schema.json",'
    local FRAMES = '"shared":{"frames":[{"name":"main","file":"a.c","line":3},{"name":"work"}]}'

    it("keeps stacks, weights and reasons there and back", function()
      kit.convert(folder, "a.usprof a.speedscope.json")
      kit.convert(folder, "a.speedscope.json b.usprof")
      assert.same(weights, kit.weights(folder .. "/b.usprof").time)
      assert.matches("%[no unwind information%]", reported("b.usprof"))
      kit.convert(folder, "b.usprof b.speedscope.json")
      kit.convert(folder, "b.speedscope.json c.usprof")
      assert.same(weights, kit.weights(folder .. "/c.usprof").time)
    end)

    it("takes profiles before the frames, and each unit", function()
      local got, said = read("speedscope", HEAD .. '"profiles":[{"type":"sampled",'
        .. '"samples":[[0,1],[0],[]],"weights":[1.5,0.0000015,2],"name":"one",'
        .. '"unit":"milliseconds"},{"type":"sampled","name":"two","unit":"bytes",'
        .. '"samples":[[1]],"weights":[7]},{"type":"sampled","name":"n","unit":"none",'
        .. '"samples":[[1],[1]]}],' .. FRAMES .. "}")
      assert.same({ ["main;work"] = 1500000, main = 2, [""] = 2000000 }, got.time)
      assert.same({ work = 7 }, got.bytes)
      assert.same({ work = 2 }, got.weight)
      assert.matches("parts of units in 1 weights", said)
      assert(capture.with(folder .. "/in.usprof", function(cap)
        assert.equal("one", cap:string(cap:array("threads", "name")[0]))
        assert.equal("a.c", cap:string(cap:array("files", "path")[0]))
        assert.equal(3, cap:array("lines", "line")[0])
        return true
      end))
    end)

    it("makes samples of events", function()
      local got = read("speedscope", HEAD .. FRAMES .. ',"profiles":[{"type":"evented",'
        .. '"name":"e","unit":"microseconds","startValue":0,"endValue":9,"events":['
        .. '{"type":"O","frame":0,"at":1},{"type":"O","frame":1,"at":3},'
        .. '{"type":"C","frame":1,"at":7},{"type":"C","frame":0,"at":9}]}]}')
      assert.same({ main = 4000, ["main;work"] = 4000 }, got.time)
      assert(capture.with(folder .. "/in.usprof", function(cap)
        assert.equal(3000, tonumber(cap:array("samples", "time_ns")[1]))
        return true
      end))
    end)

    it("keeps spans of time that only 64 bits without a sign hold", function()
      read("speedscope", HEAD .. FRAMES .. ',"profiles":[{"type":"evented","name":"e",'
        .. '"unit":"none","events":[{"type":"O","frame":0,"at":-9000000000000000000},'
        .. '{"type":"C","frame":0,"at":9e18}]}]}')
      assert(capture.with(folder .. "/in.usprof", function(cap)
        assert.equal(18000000000000000000ULL, cap:array("samples", "weight")[0])
        return true
      end))
    end)

    it("holds little of what a small file decompresses to", function()
      local _, _, status = helper.run("{ printf '{'; head -c 80000000 /dev/zero | tr '\\0' ' '; } "
        .. "| gzip -1 > blanks.json.gz", folder)
      assert.equal(0, status)
      assert.matches("a value of more than 16 MiB",
        kit.refused(folder, "--from speedscope blanks.json.gz x.usprof"))
    end)

    it("refuses what does not hold together, with profile and sample", function()
      local function profile(text)
        return HEAD .. FRAMES .. ',"profiles":[{"name":"p",' .. text .. "}]}"
      end
      refused("speedscope", profile('"unit":"none","samples":[[0],[2]]'),
        "profile 0, sample 1 (near byte 0): there is no frame 2")
      refused("speedscope", profile('"unit":"none","samples":[[0,-1]]'), "there is no frame -1")
      refused("speedscope", profile('"unit":"none","samples":[[0]],"weights":[1,2]'),
        "there are 1 samples and 2 weights")
      refused("speedscope", profile('"unit":"none","samples":[[0]],"weights":[-1]'),
        "weight 0 (near byte 0): a negative weight")
      for _, frame in ipairs { '"x"', "0.4" } do
        refused("speedscope", profile('"unit":"none","samples":[[' .. frame .. ']]'),
          "no number where one must be")
      end
      refused("speedscope", profile('"unit":"none","events":[{"type":"O","frame":0.6,"at":5}]'),
        "no number where one must be")
      refused("speedscope", profile('"unit":"parsecs","samples":[]'), "no unit 'parsecs'\n")
      refused("speedscope", profile('"unit":"none","events":[{"type":"O","frame":0,"at":5},'
        .. '{"type":"C","frame":1,"at":6}]'),
        "event 1 (near byte 0): it closes a frame that is not")
      refused("speedscope", profile('"unit":"none","events":[{"type":"O","frame":0,"at":5},'
        .. '{"type":"C","frame":0,"at":4}]'), "it is before the last one")
      refused("speedscope", profile('"unit":"none","events":[{"type":"O","frame":0,"at":5}]'),
        "the events end with frames open")
      refused("speedscope", '{"profiles":[]}', "no shared.frames")
      refused("speedscope", HEAD, "the text ends too early")
    end)
  end)

  describe("firefox", function()
    -- A profile of a thread in the form of a version: 59 has tables in threads, 60 in shared.
    local TABLES = [==["stackTable":{"frame":[0,1],"prefix":[null,0],"length":2},
      "frameTable":{"func":[0,1],"line":[null,7],"address":[-1,-1],"inlineDepth":[0,0]},
      "funcTable":{"name":[0,1],"fileName":[null,2],"resource":[-1,-1],"lineNumber":[null,5]},
      "resourceTable":{"name":[]},"stringArray":["main","work","w.c","GC"]]==]
    local SAMPLES = [["samples":{"weightType":"samples","stack":[1,0,null],
      "time":[0,1.5,3],
      "weight":null},"markers":{"name":[3,3,3,3],"startTime":[1,null,0,5],"endTime":[2.5,8,0,null],
      "phase":[1,3,0,2],"category":[0,0,0,0],
      "data":[null,{"type":"x","stack":{"a":[1]}},null,null]}]]
    local META = '"meta":{"preprocessedProfileVersion":%d,"startTime":1000,"categories":'
      .. '[{"name":"Mem","subcategories":["x"]}]}'

    local function old(tables, samples)
      return "{" .. META:format(47) .. ',"threads":[{"name":"T","pid":"5","tid":6,'
        .. (samples or SAMPLES) .. "," .. (tables or TABLES):gsub("stringArray", "stringTable")
        .. "}]}"
    end
    local function new(tables)
      return '{"threads":[{"name":"T","pid":"5","tid":6,' .. SAMPLES .. '}],"shared":{'
        .. (tables or TABLES) .. "}," .. META:format(60) .. "}"
    end

    it("keeps stacks, weights, reasons and zones there and back", function()
      kit.convert(folder, "a.usprof a.firefox.json")
      local said = kit.convert(folder, "a.firefox.json b.usprof")
      assert.is_nil(said:find("inlined", 1, true))
      local counts = {}
      for path, weight in pairs(weights) do counts[path] = weight / 1000000 end
      assert.same(counts, kit.weights(folder .. "/b.usprof").samples)
      local out = reported("b.usprof")
      assert.matches("%[no unwind information%]", out)
      assert.matches("6  +18.0 ms +3.00 ms +3.00 ms  handle", out)
      assert(capture.with(folder .. "/b.usprof", function(cap)
        assert.equal(8, cap:rows("threads"))
        assert.equal(2, cap:rows("processes"))
        assert.equal(12, cap:rows("zones"))
        return true
      end))
    end)

    it("reads tables of threads and shared ones, in any order", function()
      -- From version 56 on strings are shared while tables are not yet.
      local between = old():gsub(',"stringTable":(%b[])', "") .. ""
      between = between:sub(1, -2) .. ',"shared":{"stringArray":["main","work","w.c","GC"]}}'
      for _, text in ipairs { old(), between, new() } do
        local got, said = read("firefox", text)
        assert.same({ main = 1, ["main;work"] = 1 }, got.samples)
        assert.equal("microscope convert: left out of in.json: 1 samples without a stack; "
          .. "1 markers that are no spans\n", said:match("^[^\n]*\n"))
        assert(capture.with(folder .. "/in.usprof", function(cap)
          assert.equal(1500000, tonumber(cap:array("samples", "time_ns")[1]))
          assert.equal("w.c", cap:string(cap:array("files", "path")[0]))
          assert.equal(2, cap:rows("zones"))
          assert.equal(3000000, tonumber(cap:array("zones", "end_ns")[1]
            - cap:array("zones", "start_ns")[1]))
          assert.equal("GC", cap:string(cap:array("sites", "name")[0]))
          assert.equal("Mem", cap:string(cap:array("sites", "category")[0]))
          assert.equal(6, cap:array("threads", "tid")[0])
          assert.equal(5, cap:array("processes", "pid")[0])
          return true
        end))
      end
    end)

    it("reads offsets to callers, deltas of time and weights", function()
      local tables = TABLES:gsub('"prefix":%[null,0%]', '"prefixOffset":[0,1]')
      local samples = [["samples":{"stack":[1,0],"timeDeltas":[1,2],"weight":[0.5,2],
        "weightType":"tracing-ms"}]]
      local got = read("firefox", old(tables, samples))
      assert.same({ main = 2000000, ["main;work"] = 500000 }, got.time)
      assert(capture.with(folder .. "/in.usprof", function(cap)
        assert.equal(3000000, tonumber(cap:array("samples", "time_ns")[1]))
        return true
      end))
    end)

    it("rounds weights that are no whole numbers, and says so", function()
      local got, said = read("firefox", old(nil,
        '"samples":{"stack":[1,0],"time":[0,1],"weight":[0.5,2.0]}'))
      assert.same({ main = 2, ["main;work"] = 1 }, got.samples)
      assert.matches("left out of in.json: .*parts of units in 1 weights", said)
    end)

    it("refuses what does not hold together, with thread and row", function()
      refused("firefox", old((TABLES:gsub('"prefix":%[null,0%]', '"prefix":[null,1]'))),
        "thread 0, stack 1")
      refused("firefox", old((TABLES:gsub('"frame":%[0,1%]', '"frame":[0,9]'))), "it has no frame")
      refused("firefox", old((TABLES:gsub('"func":%[0,1%]', '"func":[0,9]'))), "it has no function")
      refused("firefox", old((TABLES:gsub('("funcTable":{.-"name":%[%d+,)%d+', "%199"))),
        "function 1 (near byte 0): it has no name")
      refused("firefox", old(nil, '"markers":{"name":[99],"startTime":[0],"endTime":[1],'
        .. '"phase":[1],"category":[0]},"samples":{"stack":[],"time":[]}'),
        "marker 0 (near byte 0): it has no name")
      refused("firefox", old(nil, '"samples":{"stack":[5],"time":[0]}'),
        "a stack that is not there")
      refused("firefox", old(nil, '"samples":{"stack":[0],"time":[0],"weight":[-1]}'),
        "a negative weight")
      for _, index in ipairs { '"x"', "0.4", "5e-1" } do
        refused("firefox", old(nil, '"samples":{"stack":[' .. index .. '],"time":[0]}'),
          "no number where one must be")
      end
      refused("firefox", '{"meta":{"preprocessedProfileVersion":47}}', "no threads")
      refused("firefox", '{"meta":{"version":24},"threads":[]}', "no meta.preprocessed")
      refused("firefox", old():sub(1, -9), "the text ends too early")
    end)
  end)
end)
