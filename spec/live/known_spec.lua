-- Programs that know where their CPU time went (fixtures/known/shares.c): what is reported of them
-- holds the truth within a 99.999 % interval.

local cjson = require("cjson")

local helper = require("spec.helper")

-- 4.417 standard errors on each side leave out 1 in 100,000.
local Z = 4.417
-- Not 1,000 or 5,000, so that samples do not beat with a program's own round numbers.
local RATE = 4999

-- Wilson's interval (lua/microscope/query/interval.lua) for that.
local function wilson(k, n)
  local share, z2 = k / n, Z * Z
  local middle = share + z2 / (2 * n)
  local half = Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
  return (middle - half) / (1 + z2 / n), (middle + half) / (1 + z2 / n)
end

describe("known shares", function()
  local folder

  setup(function()
    folder = helper.folder()
    local _, err, status = helper.run(("gcc -O2 -g -o %s/shares %s/shares.c -lpthread"):format(
      helper.quote(folder), helper.quote(helper.root .. "/fixtures/known")))
    assert.same({ "", 0 }, { err, status })
  end)

  teardown(function() helper.remove(folder) end)

  -- Record a mode: what it says of itself, and the report.
  local function record(mode)
    local out, err, status = helper.microscope(
      ("record -q -F %d -o %s.usprof ./shares %s 600"):format(RATE, mode, mode), folder)
    assert.same({ "", 0 }, { err, status })
    local truth = {}
    for name, what, ns in out:gmatch("(%S+) (%S+) (%d+)\n") do
      truth[#truth + 1] = { name = name, what = what, ns = tonumber(ns) }
    end
    local json
    json, err, status = helper.microscope("report --format json " .. mode .. ".usprof", folder)
    assert.same({ "", 0 }, { err, status })
    return truth, cjson.decode(json)
  end

  local function check(mode, least)
    local truth, report = record(mode)
    local n, functions = report.summary.samples, {}
    for _, f in ipairs(report.functions) do functions[f.name] = f end
    local all = table.remove(truth)
    assert.equal("all", all.name)
    assert.is_true(n > 1000, n .. " samples")
    assert.equal(least, #truth)
    for _, t in ipairs(truth) do
      local f = assert(functions[t.name], mode .. ": no function " .. t.name)
      local low, high = wilson(f[t.what .. "_samples"], n)
      local share = t.ns / all.ns
      assert.is_true(low <= share and share <= high,
        ("%s: %s %s: %.2f %% in truth, %.2f to %.2f %% recorded"):format(mode, t.name, t.what,
          share * 100, low * 100, high * 100))
    end
    return functions, report
  end

  it("of four functions with 10, 20, 30 and 40 %", function() check("split", 4) end)

  it("of a function itself and with what it calls", function()
    local functions = check("nested", 3)
    assert.equal(functions.inner.self_samples, functions.inner.total_samples)
  end)

  it("of a function that calls itself: once, however deep", function()
    local functions = check("recursion", 3)
    assert.is_true(functions.descend.total_samples <= functions.main.total_samples)
  end)

  it("of a function inlined into another", function() check("inlined", 2) end)

  it("of two threads", function() check("threads", 2) end)

  it("of a parent and its child", function()
    local _, report = check("child", 2)
    assert.equal(2, report.summary.processes)
  end)
end)
