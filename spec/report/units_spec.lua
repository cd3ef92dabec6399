-- Sources of different units, and of none: nothing mixes, and nothing is made up.

local cjson = require("cjson")

local fake = require("spec.support.fake")
local helper = require("spec.helper")
local profile = require("microscope.query.profile")
local profile_json = require("microscope.report.profile_json")
local profile_text = require("microscope.report.profile_text")

local function written(writer, cap, options, presentation)
  local out = {}
  presentation = presentation or {}
  presentation.limit = presentation.limit or 30
  presentation.min_percent = 0
  writer.write(cap, assert(profile.of(cap, options)), presentation, function(...)
    out[#out + 1] = table.concat { ... }
  end)
  return table.concat(out)
end

-- main > a of CPU time, main > b in allocated bytes, without a period.
local function two_sources()
  local cap = fake.stacks { { "main > a", 3 }, { "main > b", 2 }, { "[19] > c", 1 } }
  local sources = fake.capture { sources = { name = { "cpu-clock", "alloc_space", "faults" },
    unit = { 0, 3, 5 }, period = { 1000, 0, 0 }, unit_name = { "", "", "page faults" } } }
  for i = 3, 4 do
    cap.arrays["samples.source"][i] = 1
    cap.arrays["samples.weight"][i] = 5 * 2 ^ 20
  end
  cap.arrays["samples.source"][5] = 2
  for column, array in pairs(sources.arrays) do cap.arrays[column] = array end
  cap.counts.sources = 3
  -- The names' ids are of the other capture: moved behind the strings of this one.
  local moved = #cap.strings
  for _, text in ipairs(sources.strings) do table.insert(cap.strings, text) end
  for _, column in ipairs { "sources.name", "sources.unit_name" } do
    for i = 0, 2 do cap.arrays[column][i] = cap.arrays[column][i] + moved end
  end
  return cap
end

describe("a report", function()
  it("is of one source, and names the others", function()
    local text = written(profile_text, two_sources(), {})
    assert.matches("3 samples of cpu%-clock, one each 1.00 us: 3.00 us of CPU time", text)
    assert.matches("also measured %(%-%-source%): alloc_space, faults", text)
    assert.not_matches("%f[%w]b %(app%)", text)
  end)

  it("calls CPU time that is not taken by a period samples too", function()
    local cap = two_sources()
    cap.arrays["sources.period"][0] = 0
    assert.matches("3 samples of cpu%-clock: 3.00 us of CPU time", written(profile_text, cap, {}))
  end)

  it("of bytes has no interval and no samples where there is no period", function()
    local text = written(profile_text, two_sources(), { source = "alloc_space" })
    assert.matches("2 values of alloc_space: 10.0 MiB\n", text)
    assert.matches(" SELF +AMOUNT +TOTAL +AMOUNT +FUNCTION\n", text)
    assert.matches("100.0 %% +10.0 MiB +100.0 %% +10.0 MiB  b %(app%)\n", text)
    assert.not_matches("95 %%", text)
    assert.not_matches("too short", text)
    local report = cjson.decode(written(profile_json, two_sources(), { source = "alloc_space" }))
    assert.equal(cjson.null, report.summary.samples)
    assert.equal(cjson.null, report.functions[1].self_ci_value)
    assert.equal(2 * 5 * 2 ^ 20, report.functions[1].self_value)
    assert.equal(0, report.summary.source.period)
    assert.equal("page faults", report.summary.sources[3].unit_name)
  end)

  it("has a unit's own name, and says nothing of ends that are not stated", function()
    local text = written(profile_text, two_sources(), { source = "faults" }, { tree = true })
    assert.matches("1 value of faults: 1,000 page faults\n", text)
    assert.matches("of 100.0 %% of stacks it is not stated whether they are whole\n", text)
    assert.matches("AMOUNT  CALL TREE\n", text)
    assert.matches("1,000 page faults  c %(app%)\n", text)
    assert.not_matches("end short", text)
  end)

  it("says how much has no frame, which no row of functions tells of", function()
    local cap = fake.stacks { { "[19]", 3 }, { "main > a", 1 } }
    assert.matches("75.0 %% of stacks have no frame: they stand in no function\n",
      written(profile_text, cap, {}))
    assert.not_matches("no frame", written(profile_text, two_sources(), {}))
  end)

  it("of a source that is not there names those that are", function()
    local p, why = profile.of(two_sources(), { source = "cycles" })
    assert.is_nil(p)
    assert.equal("no source 'cycles'; it has cpu-clock, alloc_space, faults", why)
  end)

  it("counts samples by weight and period", function()
    local cap = fake.stacks { { "main > a", 2 } }
    cap.arrays["samples.weight"][0] = 99000
    local p = profile.of(cap, {})
    assert.equal(100, profile.samples(p, p.tree.weight))
    assert.equal(2, p.weights.samples)
  end)
end)

describe("callers", function()
  it("are none above whole stacks, whatever makes them so, or where nothing is stated", function()
    local ends = require("microscope.query.ends")
    local invert = require("microscope.query.invert")
    for code = 1, 30 do
      local cap = fake.stacks { { ("[%d] > a"):format(code), 2 } }
      local p = assert(profile.of(cap, {}))
      local tree = invert.build(p.tree, p.keys)
      local is_end = tree.count > 257 and tree.key[257] - p.keys.count or nil
      assert.equal(not ends.is_silent(code) and code or nil, is_end)
    end
  end)
end)

describe("stacks of whose ends nothing is stated", function()
  it("are called neither whole nor short", function()
    local folder = helper.folder()
    helper.write(folder .. "/a.folded", "main;a 3\n")
    assert.equal(0, select(3, helper.microscope("convert a.folded a.usprof", folder)))
    local ends = cjson.decode((helper.microscope("query ends --format json a.usprof", folder)))
    local losses = cjson.decode((helper.microscope("query losses --format json a.usprof", folder)))
    helper.remove(folder)
    assert.equal("unknown", ends.rows[1].stacks)
    assert.equal("stacks, maybe short", losses.rows[1].what)
  end)
end)

describe("a comparison", function()
  it("of different units is refused", function()
    local folder = helper.folder()
    helper.write(folder .. "/a.folded", "main;a 3\n")
    assert.equal(0, select(3, helper.microscope("convert a.folded a.usprof", folder)))
    local capture = require("microscope.capture")
    assert(capture.generate { path = folder .. "/b.usprof", samples = 10, stacks = 5 })
    local _, err, status = helper.microscope("report b.usprof --base a.usprof", folder)
    local microscope = require("microscope")
    local a, b = assert(capture.open(folder .. "/a.usprof")),
      assert(capture.open(folder .. "/b.usprof"))
    local counts, times = assert(microscope.profile(a)), assert(microscope.profile(b))
    assert.has_error(function() microscope.diff(a, counts, b, times) end,
      "diff: the base measured 'samples' and the other 'cpu-clock': their units do not compare")
    local lines = assert(microscope.profile(b, { lines = true }))
    assert.has_error(function() microscope.diff(b, times, b, lines) end,
      "diff: one profile tells functions apart by line, the other does not")
    a:close()
    b:close()
    helper.remove(folder)
    assert.equal(1, status)
    assert.matches("^microscope report: a.usprof measured 'samples' and b.usprof 'cpu%-clock'", err)
  end)
end)
