-- Chrome traces, speedscope and Firefox Profiler files of ours, and what their own readers say.

local cjson = require("cjson")

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")
local made = require("spec.support.made")
local utf8_length = require("microscope.report.text").utf8_length

local SPEEDSCOPE, FIREFOX_CLI, NODE = "1.25.0", "0.10.0", "24"

describe("convert to JSON:", function()
  local folder, weights

  setup(function()
    folder = helper.folder()
    assert(capture.generate { path = folder .. "/a.usprof", samples = 5000, stacks = 200,
      functions = 150, processes = 2, zones = 12, seed = 3 })
    weights = kit.weights(folder .. "/a.usprof")["cpu-clock"]
    kit.convert(folder, "a.usprof a.json")
    kit.convert(folder, "a.usprof a.speedscope.json")
    kit.convert(folder, "a.usprof a.firefox.json")
  end)
  teardown(function() helper.remove(folder) end)

  local function decode(name) return cjson.decode(helper.read(folder .. "/" .. name)) end

  -- "[reason]" stands before the frames of stacks that end short, here not there.
  local function without_reason(path) return (path:gsub("^%[[^%]]*%];", "")) end

  it("holds whatever a capture has for names", function()
    local odd = '\255"\27[2J</script>'
    made.capture(folder .. "/odd.usprof", { samples = { { odd .. " > work", n = 3 } },
      meta = { command = odd }, threads = { { tid = 1, name = odd } },
      rows = { { "modules", { kind = "elf", path = { odd }, name = { odd }, build_id = { odd },
        problem = { odd } } } } })
    for _, ending in ipairs { "json", "speedscope.json", "firefox.json" } do
      kit.convert(folder, "odd.usprof odd." .. ending)
      local file, at = helper.read(folder .. "/odd." .. ending), 1
      assert.is_nil(file:find("\27", 1, true))
      while at <= #file do at = at + assert(utf8_length(file, at), ending) end
      assert.is_truthy(cjson.decode(file))
    end
  end)

  -- One of more than 1 KiB is written by the core, without being a text of Lua's.
  it("writes long names as it does short ones", function()
    local function all_of(file)
      local out = {}
      for name in file:gmatch('"(LONG[^"]*)"') do out[name] = (out[name] or 0) + 1 end
      return out
    end
    local found = {}
    for _, size in ipairs { 10, 20000 } do
      local name = "LONG" .. ("é\255\27\xe2\x80\xae"):rep(size)
      made.capture(folder .. "/long.usprof", { samples = { { name .. " > work" } }, file = name,
        meta = { command = name, kernel = name }, threads = { { tid = 1, name = name } },
        processes = { { pid = 1, name = name } },
        rows = { { "sites", { name = { name }, category = { name .. "c" } } },
          { "zones", { site = 0, thread = 0, start_ns = 0, end_ns = 1 } },
          { "modules", { kind = "elf", path = { name }, name = { name }, build_id = { name },
            problem = { "" } } } } })
      for _, ending in ipairs { "json", "speedscope.json", "firefox.json" } do
        kit.convert(folder, "long.usprof long." .. ending)
        local names, unit = {}, ("é\xef\xbf\xbd\\u001b\\u202e"):rep(size)
        for text, count in pairs(all_of(helper.read(folder .. "/long." .. ending))) do
          assert.equal(unit, text:sub(5, 4 + #unit))
          names[text:sub(5 + #unit)] = count
        end
        assert.is_truthy(next(names))
        if found[ending] then assert.same(found[ending], names) end
        found[ending] = names
      end
    end
  end)

  -- Rows of a capture need no order: threads and sources by their numbers, then time.
  describe("of rows in any order", function()
    local TIMES = 1000 -- more than sorting a few would prove

    -- Sources and threads take turns; times go down, and come twice each.
    setup(function()
      local samples = {}
      local function add(source, thread, at, weight)
        samples[#samples + 1] = { "samples", { time_ns = at, thread = thread, stack = 1,
          weight = weight, cpu = 0, source = source } }
      end
      for i = 1, TIMES do
        for _, thread in ipairs { 2, 0 } do
          for source = 1, 0, -1 do
            add(source, thread, math.floor((TIMES - i) * 7919 % 5000 / 2), #samples + 1)
          end
        end
      end
      local rows = { { "sources", { name = { "other" }, unit = "bytes", period = 0,
        unit_name = { "" } } } }
      for _, row in ipairs(samples) do rows[#rows + 1] = row end
      made.capture(folder .. "/any.usprof", { period = 0, rows = rows,
        samples = { { "main", n = 0 } },
        threads = { { tid = 1, name = "a" }, { tid = 2, name = "b" }, { tid = 3, name = "c" } } })
    end)

    -- {weights in order, of the rows with this source and thread}
    local function wanted(source, thread)
      local rows, out = {}, {}
      local cap = assert(capture.open(folder .. "/any.usprof"))
      local of, at = cap:array("samples", "source"), cap:array("samples", "time_ns")
      local threads, weight = cap:array("samples", "thread"), cap:array("samples", "weight")
      for i = 0, cap:rows("samples") - 1 do
        if of[i] == source and threads[i] == thread then
          rows[#rows + 1] = { tonumber(at[i]), i, tonumber(weight[i]) }
        end
      end
      cap:close()
      table.sort(rows, function(a, b)
        if a[1] ~= b[1] then return a[1] < b[1] end
        return a[2] < b[2]
      end)
      for i, row in ipairs(rows) do out[i] = row[3] end
      assert.equal(TIMES, #out)
      return out
    end

    it("speedscope has a profile for each source and thread", function()
      kit.convert(folder, "any.usprof any.speedscope.json")
      local profiles, order = decode("any.speedscope.json").profiles,
        { { 0, 0 }, { 0, 2 }, { 1, 0 }, { 1, 2 } }
      assert.equal(#order, #profiles)
      for i, of in ipairs(order) do
        assert.same(wanted(of[1], of[2]), profiles[i].weights)
      end
    end)

    it("Firefox's has the samples of each thread", function()
      kit.convert(folder, "any.usprof any.firefox.json")
      local threads = decode("any.firefox.json").threads
      assert.equal(3, #threads)
      assert.equal(0, threads[2].samples.length)
      for thread = 0, 2, 2 do
        local samples = threads[thread + 1].samples
        local last, got = -1, {}
        for i, at in ipairs(samples.time) do
          assert.is_true(at >= last)
          last, got[i] = at, math.floor(samples.weight[i] * 1e6 + 0.5)
        end
        assert.same(wanted(0, thread), got)
      end
    end)
  end)

  it("says what a full disk says, and of no code", function()
    for _, format in ipairs { "chrome", "speedscope", "firefox" } do
      local said = kit.refused(folder, "--to " .. format .. " a.usprof /dev/full")
      assert.equal("microscope convert: writing /dev/full: No space left on device\n", said)
    end
  end)

  it("gives those an id of their own that have another's", function()
    made.capture(folder .. "/ids.usprof", {
      processes = { { pid = 7 }, { pid = 7 }, { pid = 2 ^ 22 }, { pid = 7 } },
      threads = { { tid = 7 }, { tid = 7, process = 1 }, { tid = 0, process = 2 },
        { tid = 0, process = 3 } },
      samples = { { "main" } } })
    local told = kit.convert(folder, "ids.usprof ids.json")
    assert.matches("processes", told)
    local ids = {}
    for _, event in ipairs(decode("ids.json").traceEvents) do
      if event.ph == "M" then
        ids[#ids + 1] = ("%s %d %d"):format(event.name, event.pid, event.tid or 0)
      end
    end
    local free = 2 ^ 22 -- no process of Linux has it
    assert.same({
      "process_name 7 0",
      ("process_name %d 0"):format(free + 1),
      ("process_name %d 0"):format(free),
      ("process_name %d 0"):format(free + 2),
      "thread_name 7 7",
      ("thread_name %d %d"):format(free + 1, free + 1),
      ("thread_name %d %d"):format(free, free),
      ("thread_name %d %d"):format(free + 2, free + 2),
    }, ids)
    kit.convert(folder, "ids.usprof ids.firefox.json")
    local pids = {}
    for i, thread in ipairs(decode("ids.firefox.json").threads) do pids[i] = thread.pid end
    assert.same({ "7", "7.1", "4194304", "7.2" }, pids)
  end)

  describe("a Chrome trace", function()
    -- What the Trace Event Format asks of each phase.
    local NEEDS = {
      X = { ts = "number", dur = "number", pid = "number", tid = "number", name = "string",
        cat = "string" },
      B = { ts = "number", pid = "number", tid = "number", name = "string" },
      M = { pid = "number", name = "string", args = "table" },
      b = { ts = "number", pid = "number", id = "string", cat = "string", name = "string" },
      e = { ts = "number", pid = "number", id = "string", cat = "string", name = "string" },
    }

    it("has events by the format's rules", function()
      local trace, counts = decode("a.json"), {}
      for _, event in ipairs(trace.traceEvents) do
        local needs = assert(NEEDS[event.ph], "phase " .. tostring(event.ph))
        for field, kind in pairs(needs) do assert.equal(kind, type(event[field]), field) end
        counts[event.ph] = (counts[event.ph] or 0) + 1
      end
      assert.same({ M = 2 + 8, X = 11, b = 1 }, counts)
      assert.equal("ns", trace.displayTimeUnit)
    end)

    it("has complete events of a thread that nest", function()
      local spans = {}
      for _, event in ipairs(decode("a.json").traceEvents) do
        if event.ph == "X" then
          local list = spans[event.tid] or {}
          spans[event.tid] = list
          list[#list + 1] = { event.ts, event.ts + event.dur }
        end
      end
      for _, list in pairs(spans) do
        for _, a in ipairs(list) do
          for _, b in ipairs(list) do
            assert.is_false(a[1] < b[1] and b[1] < a[2] and a[2] < b[2])
          end
        end
      end
    end)

    it("has all samples with their stacks", function()
      local trace, got = decode("a.json"), {}
      for _, sample in ipairs(trace.samples) do
        local path, at = {}, tostring(sample.sf)
        while at do
          local frame = assert(trace.stackFrames[at])
          table.insert(path, 1, frame.name)
          at = frame.parent and tostring(frame.parent)
        end
        local key = without_reason(table.concat(path, ";"))
        got[key] = (got[key] or 0) + sample.weight
      end
      assert.same(weights, got)
    end)
  end)

  describe("a speedscope file", function()
    it("has all samples with their stacks", function()
      local file, got = decode("a.speedscope.json"), {}
      for _, profile in ipairs(file.profiles) do
        assert.equal("sampled", profile.type)
        assert.equal("nanoseconds", profile.unit)
        local sum = 0
        for i, sample in ipairs(profile.samples) do
          local path = {}
          for _, frame in ipairs(sample) do
            path[#path + 1] = file.shared.frames[frame + 1].name
          end
          local key = without_reason(table.concat(path, ";"))
          got[key] = (got[key] or 0) + profile.weights[i]
          sum = sum + profile.weights[i]
        end
        assert.equal(sum, profile.endValue)
      end
      assert.same(weights, got)
    end)

    -- As much of JSON Schema as that file uses.
    local function fits(schema, value, root, where)
      if schema["$ref"] then
        local name = schema["$ref"]:match("^#/definitions/(.*)$")
        return fits(root.definitions[name], value, root, where)
      end
      if schema.anyOf then
        for _, one in ipairs(schema.anyOf) do
          if pcall(fits, one, value, root, where) then return end
        end
        error(where .. " fits none of the forms it may have")
      end
      if schema.const then assert(value == schema.const, where .. " is not " .. schema.const) end
      if schema.enum then
        local found = false
        for _, one in ipairs(schema.enum) do found = found or one == value end
        assert(found, where .. " is no value of its enum")
      end
      local kinds = { object = "table", array = "table", string = "string", number = "number" }
      local kind = kinds[schema.type]
      assert(not kind or type(value) == kind, where .. ": " .. tostring(schema.type))
      for _, name in ipairs(schema.required or {}) do
        assert(value[name] ~= nil, where .. "." .. name .. " is missing")
      end
      for name, one in pairs(schema.properties or {}) do
        if value[name] ~= nil then fits(one, value[name], root, where .. "." .. name) end
      end
      for i, one in ipairs(schema.items and value or {}) do
        fits(schema.items, one, root, ("%s[%d]"):format(where, i))
      end
    end

    it("fits speedscope's own schema", function()
      local path, why = kit.npm("speedscope", SPEEDSCOPE)
      if not path then pending(why) return end
      local schema = cjson.decode(helper.read(path .. "/dist/release/file-format-schema.json"))
      fits(schema, decode("a.speedscope.json"), schema, "file")
    end)

    it("is loaded by speedscope's own package", function()
      local path, why = kit.npm("speedscope", SPEEDSCOPE)
      if path and not kit.has("chromium") then path, why = nil, "chromium is missing" end
      if not path then pending(why) return end
      -- As its command line hands a file to the page.
      local text = helper.read(folder .. "/a.speedscope.json")
      helper.write(folder .. "/text", text)
      local base64 = helper.run("base64 -w0 text", folder)
      helper.write(folder .. "/load.js",
        ("speedscope.loadFileFromBase64(%q, %q)"):format("a.speedscope.json", base64))
      local command = "timeout -s KILL 60 chromium --headless --no-sandbox --disable-gpu "
        .. "--allow-file-access-from-files --user-data-dir=%s/chromium --virtual-time-budget=20000 "
        .. "--dump-dom 'file://%s/dist/release/index.html#localProfilePath=%s/load.js'"
      local dom = helper.run(command:format(folder, path, folder), folder)
      assert.is_truthy(dom:find("server%-0 / main %(1000%)"), dom:sub(1, 400))
    end)
  end)

  describe("a Firefox Profiler file", function()
    it("has all samples with their stacks, zones as markers, and modules", function()
      local profile, got, markers = decode("a.firefox.json"), {}, 0
      local shared = profile.shared
      for _, thread in ipairs(profile.threads) do
        assert.equal("samples", thread.samples.weightType)
        for i = 1, thread.samples.length do
          local path, stack = {}, thread.samples.stack[i]
          while stack ~= cjson.null do
            local func = shared.frameTable.func[shared.stackTable.frame[stack + 1] + 1]
            table.insert(path, 1, shared.stringArray[shared.funcTable.name[func + 1] + 1])
            stack = shared.stackTable.prefix[stack + 1]
          end
          local key = without_reason(table.concat(path, ";"))
          got[key] = (got[key] or 0) + 1000000
        end
        markers = markers + thread.markers.length
      end
      assert.same(weights, got)
      assert.equal(12, markers)
      assert.equal(20, #profile.libs)
      assert.equal(1, profile.meta.interval)
    end)

    it("has columns of one length in each table", function()
      local profile = decode("a.firefox.json")
      local function check(tab, name)
        for key, values in pairs(tab) do
          if type(values) == "table" and key ~= "stringArray" then
            assert.equal(tab.length, #values, name .. "." .. key)
          end
        end
      end
      for name, tab in pairs(profile.shared) do
        if name ~= "stringArray" then check(tab, name) end
      end
      for _, thread in ipairs(profile.threads) do
        check(thread.samples, "samples")
        check(thread.markers, "markers")
      end
    end)

    it("is read by the Firefox Profiler's own code, with the same share of functions", function()
      local path, why = kit.npm("@firefox-devtools/profiler-cli", FIREFOX_CLI)
      local node
      if path then node, why = kit.npm("node", NODE) end
      if not node then pending(why) return end
      local program = ("%s/bin/node %s/dist/profiler-cli.js"):format(node, path)
      local out, err, status = helper.run(([[export HOME=%s; set -e
        timeout -s KILL 60 %s load a.firefox.json >load.txt
        timeout -s KILL 60 %s profile info
        timeout -s KILL 60 %s thread functions --thread t-0 --json --limit 10000 >functions.json
        timeout -s KILL 60 %s thread markers --thread t-0
        timeout -s KILL 60 %s stop >stop.txt]]):format(helper.quote(folder), program, program,
        program, program, program), folder)
      assert(status == 0, err .. out)
      assert.matches("8 threads across 2 processes", out)
      assert.matches("handle", out)
      local text = helper.read(folder .. "/functions.json")
      local listed = cjson.decode(text)
      local of_thread, self = kit.weights_of_thread(folder .. "/a.usprof", 0), {}
      local sum = kit.total(of_thread)
      for stack, weight in pairs(of_thread) do
        local name = stack:match("([^;]*)$")
        self[name] = (self[name] or 0) + weight
      end
      -- One function inlined into several modules is as many there; each share is rounded.
      local seen, shares, parts = 0, {}, {}
      for _, entry in ipairs(listed.functions) do
        local bare = entry.name:gsub("^[%w_.]+!", "")
        shares[bare] = (shares[bare] or 0) + entry.selfPercentage
        parts[bare] = (parts[bare] or 0) + 1
      end
      for bare, share in pairs(shares) do
        if self[bare] then
          assert.near(self[bare] / sum * 100, share, 0.06 * parts[bare], bare)
          seen = seen + 1
        end
      end
      assert.is_true(seen > 20, text:sub(1, 600))
    end)
  end)

  it("names of any bytes are written as JSON can hold them", function()
    assert(require("microscope.writer").with(folder .. "/s.usprof", function(w)
      local name = w:string("a\"\\\255\0b\n")
      w:row("sources", { name = w:string("n"), unit = "bytes" })
      w:row("processes", {})
      w:row("threads", {})
      w:row("locations", { kind = "named", offset = name })
      w:row("stacks", { ["end"] = "NOT_STATED" })
      w:row("stacks", { parent = 0, location = 0 })
      w:row("samples", { stack = 1, weight = 4 })
      w:row("samples", { stack = 0, weight = 3 })
    end))
    for _, ending in ipairs { "json", "speedscope.json", "firefox.json" } do
      local said = kit.convert(folder, "s.usprof s." .. ending)
      local text = helper.read(folder .. "/s." .. ending)
      assert.is_truthy(cjson.decode(text))
      assert.is_truthy(text:find([["a\"\\]] .. "\239\191\189" .. [[\u0000b\n"]], 1, true))
      if ending == "json" then assert.matches("1 samples without a frame", said) end
    end
  end)
end)
