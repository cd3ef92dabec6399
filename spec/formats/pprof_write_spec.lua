-- pprof files of ours, as go tool pprof reads them.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")
local made = require("spec.support.made")

local function first_number(text, pattern)
  local digits = text:match(pattern)
  return tonumber(digits)
end

describe("convert to pprof", function()
  local folder, weights

  setup(function()
    folder = helper.folder()
    assert(capture.generate { path = folder .. "/a.usprof", samples = 20000, stacks = 400,
      functions = 300, processes = 2, seed = 3 })
    kit.convert(folder, "a.usprof a.pb.gz")
    weights = kit.weights(folder .. "/a.usprof")
  end)
  teardown(function() helper.remove(folder) end)

  it("has the totals of the capture", function()
    local out = kit.pprof(folder, "-top -unit=ns a.pb.gz")
    local total = kit.total(weights["cpu-clock"])
    assert.equal(total, first_number(out, "Total samples = (%d+)ns"))
    assert.matches("Type: cpu%-clock\n", out)
    local counts = kit.pprof(folder, "-top -sample_index=samples a.pb.gz")
    assert.equal(20000, first_number(counts, "of (%d+) total"))
  end)

  it("has the costs of each function", function()
    -- Each function's own cost and its cost with callees, from the capture's stacks.
    local self, total = {}, {}
    for path, weight in pairs(weights["cpu-clock"]) do
      local seen, last = {}, nil
      for name in (path .. ";"):gmatch("([^;]*);") do
        if not seen[name] then total[name] = (total[name] or 0) + weight end
        seen[name], last = true, name
      end
      self[last] = (self[last] or 0) + weight
    end
    local out, found = kit.pprof(folder, "-top -cum -unit=ns -nodecount=100000 -nodefraction=0 "
      .. "-edgefraction=0 a.pb.gz"), 0
    local row = "\n%s*(%d+)%a*%s+[%d.]+%%%s+[%d.]+%%%s+(%d+)%a*%s+[%d.]+%%%s+([^\n]+)"
    for flat, cum, name in out:gmatch(row) do
      name = name:gsub(" %(inline%)$", ""):gsub(" %(partial%-inline%)$", "")
      if not name:match("^%[") then
        assert.equal(self[name] or 0, tonumber(flat), name)
        assert.equal(total[name], tonumber(cum), name)
        found = found + 1
      end
    end
    local functions = 0
    for _ in pairs(total) do functions = functions + 1 end
    assert.equal(functions, found)
  end)

  it("says why stacks end short", function()
    local out = kit.pprof(folder, "-traces a.pb.gz")
    assert.is_truthy(out:find("[no unwind information]", 1, true))
    assert.is_nil(out:find("[outermost frame]", 1, true))
    assert.is_nil(out:find("[program entry]", 1, true))
  end)

  it("has threads, processes, labels, build IDs and times", function()
    local out = kit.pprof(folder, "-raw a.pb.gz")
    assert.is_truthy(out:find("thread:[worker-2]", 1, true))
    assert.is_truthy(out:find("tid:[1002]", 1, true))
    assert.is_truthy(out:find("process:[server-1]", 1, true))
    assert.is_truthy(out:find("route:[/route/0]", 1, true))
    assert.is_truthy(out:find("request_bytes:[1000 bytes]", 1, true))
    assert.is_truthy(out:find("PeriodType: cpu-clock nanoseconds", 1, true))
    assert.is_truthy(out:find("Period: 1000000", 1, true))
    assert.is_truthy(out:find("Time: 2023-11-14 22:13:20", 1, true))
    local id = assert(capture.with(folder .. "/a.usprof", function(cap)
      return cap:string(cap:array("modules", "build_id")[0])
    end))
    assert.is_truthy(out:find("/usr/bin/generated " .. id .. " [FN][FL][LN][IN]", 1, true))
  end)

  it("tells once what it cannot hold, and nothing that was not there", function()
    local said = kit.convert(folder, "a.usprof b.pb.gz")
    assert.matches("^microscope convert: pprof cannot hold: [^\n]*\n$", said)
    assert.matches("when each sample was taken", said)
    assert.matches("8 zones", said)
    assert.is_nil(said:find("label", 1, true))
    assert.is_nil(said:find("build ID", 1, true))
  end)

  it("gives the same bytes each time, plain where the name says so", function()
    kit.convert(folder, "a.usprof c.pb.gz")
    assert.equal(helper.read(folder .. "/a.pb.gz"), helper.read(folder .. "/c.pb.gz"))
    kit.convert(folder, "a.usprof c.pb")
    local _, _, status = helper.run("gzip -dc c.pb.gz | cmp - c.pb", folder)
    assert.equal(0, status)
  end)

  it("keeps the period of an imported profile, and takes no other text for one", function()
    for given, want in pairs {
      ["9223372036854775807"] = "9223372036854775807", ["12"] = "12",
      ["9223372036854775808"] = false,
      ["1x"] = false, ["-1"] = false, ["\200\200\200\200\200\200\200\200\200"] = false,
    } do
      made.capture(folder .. "/period.usprof", { period = 0, samples = { { "main", weight = 5 } },
        meta = { ["pprof.period"] = given, ["pprof.period_type"] = "wall",
          ["pprof.period_unit"] = "nanoseconds" } })
      kit.convert(folder, "period.usprof period.pb")
      kit.convert(folder, "period.pb back.usprof")
      local cap = assert(capture.open(folder .. "/back.usprof"))
      assert.equal(want or nil, cap:meta()["pprof.period"], given)
      cap:close()
    end
  end)

  it("refuses what a value cannot hold, of a sample or of some added up", function()
    local most = 0x7fffffffffffffffULL
    for of, row in pairs { [{ most + 1 }] = 0, [{ most, 1 }] = 1, [{ most, 0 }] = 1 } do
      local samples = {}
      for i, weight in ipairs(of) do samples[i] = { "main", weight = weight } end
      made.capture(folder .. "/large.usprof", { period = 1, samples = samples })
      assert.matches(("sample %d: a value of more than 2^63 %%- 1"):format(row):gsub("%^", "%%^"),
        (kit.refused(folder, "large.usprof large.pb")))
    end
  end)

  it("leaves no file when it fails", function()
    kit.refused(folder, "missing.usprof d.pb.gz")
    helper.write(folder .. "/broken.usprof", helper.read(folder .. "/a.usprof"):sub(1, -9))
    assert.matches("broken.usprof", kit.refused(folder, "broken.usprof d.pb.gz"))
    assert.equal("", (helper.run("ls | grep '^d'", folder)))
  end)
end)
