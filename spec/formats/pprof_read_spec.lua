-- pprof files of others: round trips, profiles that Go's runtime writes, and malformed ones.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")
local wire = require("spec.formats.wire")

-- A right profile that cases change a part of.
local function right(changes)
  local p = {
    types = { { "samples", "count" }, { "cpu", "nanoseconds" } },
    functions = { { id = 7, name = "main", file = "a.c", line = 3 }, { id = 9, name = "work" } },
    mappings = { { id = 2, start = 0x400000, limit = 0x500000, offset = 0x1000, file = "/bin/a" } },
    locations = {
      { id = 30, mapping = 2, address = 0x400010, lines = { { 7, 12 } } },
      { id = 40, lines = { { 9, 5 }, { 7, 13 } } },
    },
    samples = { { stack = { 40, 30 }, values = { 2, 20 } } },
    period = { "cpu", "nanoseconds", 10 },
  }
  for key, value in pairs(changes or {}) do p[key] = value end
  return p
end

describe("convert from pprof", function()
  local folder

  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  local function make(changes, name)
    helper.write(folder .. "/" .. (name or "in.pb"), wire.profile(right(changes)))
  end
  local function read(changes)
    make(changes)
    local said = kit.convert(folder, "in.pb in.usprof")
    return folder .. "/in.usprof", said
  end
  local function refused(changes, words)
    make(changes)
    local err = kit.refused(folder, "in.pb bad.usprof")
    assert.is_truthy(err:find(words, 1, true), err)
    assert.matches("in.pb: byte %d+: ", err)
    assert.is_nil(io.open(folder .. "/bad.usprof"))
  end

  it("takes mappings for those of the only process there is", function()
    local function processes(...)
      local samples = {}
      for i, pid in ipairs { ... } do
        samples[i] = { stack = { 30 }, values = { 1, 10 },
          labels = { { "pid", number = pid }, { "process", text = "app" } } }
      end
      return assert(capture.with(read { samples = samples,
        comments = { "written by microscope" } }, function(cap)
        assert.equal(1, cap:rows("mappings"))
        local process, out = cap:array("mappings", "process")[0], {}
        for i = 0, cap:rows("processes") - 1 do out[i + 1] = cap:array("processes", "pid")[i] end
        out.mapped = cap:array("processes", "pid")[process]
        return out
      end))
    end
    assert.same({ 41, mapped = 41 }, processes(41, 41))
    assert.same({ 41, 42, 0, mapped = 0 }, processes(41, 42))
  end)

  it("keeps functions, lines, inlines, values, labels and ends there and back", function()
    assert(capture.generate { path = folder .. "/a.usprof", samples = 30000, stacks = 500,
      functions = 200, processes = 2, labelled = 3, seed = 5 })
    kit.convert(folder, "a.usprof a.pb.gz")
    kit.convert(folder, "a.pb.gz b.usprof")
    local a, b = kit.weights(folder .. "/a.usprof"), kit.weights(folder .. "/b.usprof")
    assert.same(a["cpu-clock"], b["cpu-clock"])
    assert.equal(30000, (kit.total(b.samples)))
    -- All the rest: what go tool pprof sees of both files is the same.
    kit.convert(folder, "b.usprof b.pb.gz")
    for _, form in ipairs { "-raw", "-traces", "-top" } do
      assert.equal(kit.pprof(folder, form .. " a.pb.gz"), kit.pprof(folder, form .. " b.pb.gz"))
    end
    assert(capture.with(folder .. "/b.usprof", function(cap)
      assert.equal("generated", cap:meta().host)
      assert.equal(8, cap:rows("threads"))
      assert.equal(2, cap:rows("processes"))
      assert.equal(7501000000, tonumber(cap:array("clocks", "duration_ns")[0]))
      return true
    end))
    local out = helper.microscope("report b.usprof", folder)
    assert.matches("%[no unwind information%]", out)
  end)

  it("has the totals of profiles that Go's runtime writes", function()
    local go = helper.root .. "/fixtures/formats/profiled.go"
    local _, err, status = helper.run(("HOME=%s GOCACHE=%s/gocache GOFLAGS=-mod=mod go build -o "
      .. "profiled %s && ./profiled ."):format(helper.quote(folder), helper.quote(helper.build),
      helper.quote(go)), folder)
    assert(status == 0, err)
    for _, case in ipairs {
      { "cpu", { "samples", "cpu" } },
      { "heap", { "alloc_objects", "alloc_space", "inuse_objects", "inuse_space" } },
      { "mutex", { "contentions", "delay" } },
      { "block", { "contentions", "delay" } },
    } do
      local name = case[1]
      kit.convert(folder, ("%s.pb.gz %s.usprof"):format(name, name))
      kit.convert(folder, ("%s.usprof %s-2.pb.gz"):format(name, name))
      local weights = kit.weights(folder .. "/" .. name .. ".usprof")
      for _, source in ipairs(case[2]) do
        -- Exact: every line of every sample in the smallest unit.
        local options = ("-sample_index=%s -unit=%s -raw "):format(source, "minimum")
        local theirs, sum, index = kit.pprof(folder, options .. name .. ".pb.gz"), 0, nil
        local column = 0
        for word in theirs:match("\nSamples:\n([^\n]*)"):gmatch("%S+") do
          column = column + 1
          if word:match("^([^/]+)/") == source then index = column end
        end
        local samples = theirs:match("\nSamples:\n[^\n]*(.-)\nLocations")
        for line in samples:gmatch("\n([%s%d]+): [%d ]*") do
          local at = 0
          for digits in line:gmatch("%d+") do
            at = at + 1
            if at == index then sum = sum + tonumber(digits) end
          end
        end
        assert.equal(sum, (kit.total(weights[source] or {})), name .. " " .. source)
      end
      for _, form in ipairs { "-top", "-traces" } do
        local theirs = kit.pprof(folder, form .. " " .. name .. ".pb.gz")
        local ours = kit.pprof(folder, form .. " " .. name .. "-2.pb.gz")
        ours = ours:gsub("written by microscope\n", ""):gsub("where stacks end [^\n]*\n", "")
        assert.equal(theirs, ours)
      end
      local out, why, code = helper.microscope("report " .. name .. ".usprof", folder)
      assert.equal(0, code, why)
      assert.is_true(#out > 100)
    end
    assert.is_truthy(kit.pprof(folder, "-traces cpu-2.pb.gz"):find("route:  /a b", 1, true))
  end)

  it("reads values, periods, places and several values a sample", function()
    local path = read()
    assert(capture.with(path, function(cap)
      assert.equal(2, cap:rows("samples"))
      assert.equal(2, tonumber(cap:array("samples", "weight")[0]))
      assert.equal(20, tonumber(cap:array("samples", "weight")[1]))
      assert.equal(1, cap:array("samples", "source")[1])
      assert.equal(0, tonumber(cap:array("sources", "period")[0]))
      assert.equal(10, tonumber(cap:array("sources", "period")[1]))
      assert.equal("cpu_ns", capture.enum("mic_unit", cap:array("sources", "unit")[1]))
      assert.equal("file", capture.enum("mic_location", cap:array("locations", "kind")[0]))
      assert.equal(0x1010, tonumber(cap:array("locations", "offset")[0]))
      assert.equal("named", capture.enum("mic_location", cap:array("locations", "kind")[1]))
      return true
    end))
    assert.same({ ["main;main;work"] = 20 }, kit.weights(path).cpu)
  end)

  it("reads records in any order, numbers packed or not, and what it does not know", function()
    local path = read {
      strings_first = true,
      samples = { { stack = { 40, 30 }, values = { 2, 20 }, unpacked = true } },
    }
    assert.same({ ["main;main;work"] = 20 }, kit.weights(path).cpu)
    helper.write(folder .. "/in.pb", wire.profile(right()) .. wire.number(99, 5)
      .. wire.bytes(15, "unknown") .. wire.varint(16 * 8 + 1) .. "12345678"
      .. wire.varint(17 * 8 + 5) .. "1234")
    kit.convert(folder, "--from pprof in.pb in.usprof")
    assert.same({ ["main;main;work"] = 20 }, kit.weights(path).cpu)
  end)

  it("keeps labels of any bytes, and labels named as ours", function()
    local path = read { samples = { { stack = { 40 }, values = { 1, 1 }, labels = {
      { "a\0\255", text = "b\n\0" }, { "tid", number = -5, unit = "" },
      { "thread", text = "t" } } } } }
    assert(capture.with(path, function(cap)
      assert.equal(3, cap:rows("labels"))
      assert.equal(6, cap:rows("sample_labels"))
      assert.equal("a\0\255", cap:string(cap:array("labels", "key")[0]))
      assert.equal("b\n\0", cap:string(cap:array("labels", "text")[0]))
      assert.equal(-5, tonumber(require("ffi").cast("int64_t", cap:array("labels", "number")[1])))
      return true
    end))
    kit.convert(folder, "in.usprof out.pb")
    assert.is_truthy(helper.read(folder .. "/out.pb"):find("a\0\255", 1, true))
  end)

  it("counts samples whose values are all 0", function()
    local path, said = read { samples = { { stack = { 30 }, values = { 0, 0 } },
      { stack = { 40 }, values = { 0, 3 } } } }
    assert.equal("microscope convert: left out of in.pb: 1 of 2 samples, "
      .. "all of whose values are 0\n", said)
    assert(capture.with(path, function(cap)
      assert.equal(1, cap:rows("samples"))
      return true
    end))
  end)

  it("reads an empty stack as one, and a reason in brackets as the reason", function()
    local path = read {
      functions = { { id = 7, name = "main" }, { id = 9, name = "[depth limit]" } },
      locations = { { id = 30, lines = { { 7, 1 } } }, { id = 40, lines = { { 9, 0 } } } },
      samples = { { stack = {}, values = { 1, 1 } }, { stack = { 30, 40 }, values = { 1, 1 } } },
    }
    assert(capture.with(path, function(cap)
      local stack = cap:array("samples", "stack")
      local frames, ending = cap:stack(stack[0])
      assert.same({}, frames)
      assert.equal("not stated", capture.ending(ending).text)
      frames, ending = cap:stack(stack[2])
      assert.equal(1, #frames)
      assert.equal("depth limit", capture.ending(ending).text)
      return true
    end))
  end)

  it("refuses what names nothing, or something twice", function()
    local f, l, m = right().functions, right().locations, right().mappings
    refused({ samples = { { stack = { 31 }, values = { 1, 1 } } } },
      "sample 1: there is no location 31")
    refused({ samples = { { stack = { 30 }, values = { 1 } } } },
      "sample 1: it has 1 values, the profile has 2 types")
    refused({ samples = { { stack = { 30 }, values = { 1, 1 } }, { stack = { 30 },
      values = { 1, -4 } } } }, "sample 2: a negative value")
    refused({ samples = { { stack = { 30 }, values = { 1, 1 },
      labels = { { 400, number = 1 } } } } },
      "sample 1: a label names a string that the profile does not have")
    refused({ functions = { f[1], f[2], f[1] } }, "function 7 is there twice")
    refused({ functions = { f[1] } }, "location 40: there is no function 9")
    refused({ functions = { f[1], { id = 9, name = 77 } } }, "it names string 77, the profile has")
    refused({ functions = { f[1], f[2], { name = "x" } } }, "a function with the id 0")
    refused({ locations = { l[1], l[2], l[1] } }, "location 30 is there twice")
    refused({ mappings = { m[1], m[1] } }, "mapping 2 is there twice")
    refused({ mappings = {} }, "location 30: there is no mapping 2")
    refused({ mappings = { { id = 2, start = 9, limit = 5 } } }, "mapping 2 ends before its start")
    refused({ first_string = "x" }, "the first string is not the empty one")
  end)

  it("refuses what is cut short or no profile", function()
    local bytes = wire.profile(right())
    for _, size in ipairs { 1, 5, #bytes - 1, #bytes - 9 } do
      helper.write(folder .. "/cut.pb", bytes:sub(1, size))
      kit.refused(folder, "--from pprof cut.pb bad.usprof")
    end
    helper.write(folder .. "/empty.pb", "")
    kit.refused(folder, "--from pprof empty.pb bad.usprof")
    helper.write(folder .. "/text.pb", "hello, this is text\n")
    assert.matches("known format", kit.refused(folder, "text.pb bad.usprof"))
    helper.run("head -c 300 in.pb.gz > cut.pb.gz; gzip -c in.pb > in.pb.gz; head -c 60 in.pb.gz "
      .. "> cut.pb.gz", folder)
    local err = kit.refused(folder, "--from pprof cut.pb.gz x.usprof")
    assert.matches("the gzip data is cut short", err)
  end)

  it("holds little of what a small file decompresses to", function()
    -- A field of a claimed gigabyte, and 256 MiB of zeros: both end soon and take no memory.
    helper.write(folder .. "/claim.pb", wire.profile(right()) .. wire.varint(5 * 8 + 2)
      .. wire.varint(2 ^ 30) .. "x")
    local said = kit.refused(folder, "--from pprof claim.pb x.usprof")
    assert.matches("a function: it is malformed", said)
    helper.write(folder .. "/claim.pb", wire.profile(right()) .. wire.varint(6 * 8 + 2)
      .. wire.varint(2 ^ 30) .. "x")
    said = kit.refused(folder, "--from pprof claim.pb x.usprof")
    assert.matches("a field of more than 64 MiB", said)
    local _, _, status = helper.run("head -c 268435456 /dev/zero | gzip -1 > bomb.pb.gz", folder)
    assert.equal(0, status)
    local _, err, code = helper.run("ulimit -v 600000; " .. helper.quote(helper.stage)
      .. "/bin/microscope convert --from pprof bomb.pb.gz x.usprof", folder)
    assert.equal(1, code)
    assert.matches("no field of a protocol buffer", err)
  end)
end)
