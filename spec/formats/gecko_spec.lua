-- Gecko profiles: tables by their schemas, nested processes, and what perf's own script writes.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")

describe("convert from a Gecko profile:", function()
  local folder
  local EXAMPLE = helper.read(helper.root .. "/fixtures/fuzz/gecko/nested")
  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  local function read(text)
    helper.write(folder .. "/in.json", text)
    return kit.convert(folder, "in.json in.usprof")
  end

  it("reads stacks, times, threads and modules", function()
    local told = read(EXAMPLE)
    assert.matches("1 sample without a stack", told)
    assert.same({ ["main;work"] = 1, main = 1, f = 1 },
      kit.weights(folder .. "/in.usprof").samples)
    assert(capture.with(folder .. "/in.usprof", function(cap)
      local thread, times = cap:array("samples", "thread"), {}
      local name, tid = cap:array("threads", "name"), cap:array("threads", "tid")
      for i = 0, cap:rows("samples") - 1 do
        times[i + 1] = ("%s %d %d"):format(cap:string(name[thread[i]]), tid[thread[i]],
          tonumber(cap:array("samples", "time_ns")[i]))
      end
      assert.same({ "main 7 1500000", "main 7 3250000", "web 9 11000000" }, times)
      local paths = {}
      for i = 0, cap:rows("modules") - 1 do
        paths[i + 1] = cap:string(cap:array("modules", "path")[i])
      end
      assert.same({ "app", "lib x.so" }, paths)
      return assert.equal(12, cap:array("lines", "line")[1])
    end))
  end)

  it("reads markers that are spans as zones", function()
    local told = read(EXAMPLE)
    assert.matches("1 marker that is no span", told)
    assert(capture.with(folder .. "/in.usprof", function(cap)
      local out, site = {}, cap:array("zones", "site")
      for i = 0, cap:rows("zones") - 1 do
        out[i + 1] = ("%s %d-%d"):format(cap:string(cap:array("sites", "name")[site[i]]),
          tonumber(cap:array("zones", "start_ns")[i]), tonumber(cap:array("zones", "end_ns")[i]))
      end
      table.sort(out)
      return assert.same({ "GC 1000000-2500000", "Load 1000000-4000000" }, out)
    end))
  end)

  it("reads weights in their unit, CPU time and categories", function()
    local weighed = helper.read(helper.root .. "/fixtures/fuzz/gecko/weighed")
    assert.equal("", read(weighed))
    local weights = kit.weights(folder .. "/in.usprof")
    assert.same({ time = { main = 4500000 }, ["cpu-time-delta"] = { main = 1500000 } }, weights)
    assert(capture.with(folder .. "/in.usprof", function(cap)
      return assert.equal("Layout", cap:string(cap:array("sites", "category")[0]))
    end))
    read((weighed:gsub("tracing%-ms", "bytes"):gsub("2%.5", "25")))
    assert.same({ main = 27 }, kit.weights(folder .. "/in.usprof").bytes)
    read((weighed:gsub(',"weightType":"tracing%-ms"', ""):gsub("2%.5", "4"):gsub('"µs"', '"odd"')))
    weights = kit.weights(folder .. "/in.usprof")
    assert.same({ samples = { main = 6 }, ["cpu-cycles-delta"] = { main = 1500 } }, weights)
    for from, words in pairs { ["2.5"] = "thread 0, sample 0 ", ["-25"] = "a negative weight" } do
      helper.write(folder .. "/bad.json", (weighed:gsub("tracing%-ms", "samples")
        :gsub("2%.5", from)))
      local err = kit.refused(folder, "--from gecko bad.json bad.usprof")
      assert.is_truthy(err:find(words, 1, true), err)
    end
  end)

  it("refuses indexes that are none, with thread and row", function()
    local function refused(from, to, words)
      local at = assert(EXAMPLE:find(from, 1, true))
      helper.write(folder .. "/bad.json", EXAMPLE:sub(1, at - 1) .. to .. EXAMPLE:sub(at + #from))
      local err = kit.refused(folder, "--from gecko bad.json bad.usprof")
      assert.is_truthy(err:find(words, 1, true), err)
    end
    refused("[[1,1.5]", "[[9,1.5]", "thread 0, sample 0")
    refused("[0,1]]}", "[7,1]]}", "thread 0, stack 1")
    refused("[[0],[1,", "[[0],[99,", "thread 0, frame 1")
    refused("[[0,10]]", "[[0,true]]", "thread 1, samples 0")
    helper.write(folder .. "/bad.json", '{"meta":{},"threads":[]}')
    assert.matches("no threads", kit.refused(folder, "--from gecko bad.json bad.usprof"))
  end)

  it("has the samples of perf script report gecko", function()
    local data = helper.quote(helper.root .. "/fixtures/fuzz/perfdata/fp")
    local script = "/usr/share/perf-core/scripts/python/gecko.py"
    if not io.open(script) then
      script = helper.run("ls /usr/libexec/perf-core/scripts/python/gecko.py"):gsub("%s+$", "")
    end
    if script == "" then return pending("perf's gecko script is not installed") end
    local _, err, status = helper.run(("perf script -i %s -s %s >gecko.json"):format(data, script),
      folder)
    if status ~= 0 then return pending("perf runs no Python scripts here: " .. err:sub(1, 60)) end
    kit.convert(folder, "--from gecko gecko.json gecko.usprof")
    kit.convert(folder, data .. " data.usprof")
    local function rows(path)
      return assert(capture.with(path, function(cap) return cap:rows("samples") end))
    end
    assert.equal(rows(folder .. "/data.usprof"), rows(folder .. "/gecko.usprof"))
  end)
end)
