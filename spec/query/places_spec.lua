-- What single places in functions cost (query/places.lua).

local ffi = require("ffi")

local fake = require("spec.support.fake")
local helper = require("spec.helper")
local places = require("microscope.query.places")
local samples = require("microscope.query.samples")

local NONE = fake.NONE

-- main calls work at two places (1 and 2); work has one place of its own (3), one (4) where leaf,
-- which is inlined into it, runs; work calls itself from place 5.
local function capture()
  return fake.capture {
    functions = { name = { "main", "work", "leaf" }, linkage_name = { "main", "work", "leaf" },
      module = { 0, 0, 0 } },
    modules = { name = { "app" }, problem = { "" } },
    files = { path = { "a.c", "b.h" } },
    locations = { kind = { 0, 0, 0, 0, 0, 0 }, evidence = { 0, 0, 0, 0, 0, 0 },
      module = { 0, 0, 0, 0, 0, 0 }, offset = { 0, 100, 110, 200, 210, 220 } },
    lines = {
      location = { 1, 2, 3, 4, 4, 5 },
      ["function"] = { 0, 0, 1, 2, 1, 1 },
      depth = { 0, 0, 0, 0, 1, 0 },
      file = { 0, 0, 0, 1, 0, NONE },
      line = { 10, 10, 20, 5, 21, 0 },
    },
    --           0     1        2        3           4           5              6
    stacks = {
      parent = { NONE, 0, 0, 1, 2, 3, 5, 2 },
      location = { NONE, 1, 2, 5, 4, 5, 3, 3 },
      ["end"] = { 1, 0, 0, 0, 0, 0, 0, 0 },
    },
    samples = {
      stack = { 6, 6, 4, 7, 7, 7 },
      weight = { 10, 10, 10, 10, 10, 10 },
      source = { 0, 0, 0, 0, 0, 1 },
    },
    sources = { name = { "cpu-clock" }, unit = { 0 }, period = { 10 } },
  }
end

local function cost(cap, wanted, unit_of)
  return places.costs(cap, samples.weights(cap, 0), places.find(cap, wanted), unit_of)
end

local function line(list, number)
  for _, entry in ipairs(list) do
    if entry.line == number then return entry end
  end
end

describe("places", function()
  it("cost what ran there, and once what a stack passes several times", function()
    local cap = capture()
    local costs = cost(cap, { [1] = true })
    assert.equal(1, #costs)
    local work = costs[1]
    assert.equal(50, work.total)
    assert.equal(50, work.self)
    assert.same({ self = 40, total = 40 }, work.units[200])
    assert.same({ self = 10, total = 10 }, work.units[210])
    -- It is on the stack twice.
    assert.same({ self = 0, total = 20 }, work.units[220])
    -- Without file and line first.
    assert.same({ self = 0, total = 20 }, work.lines[1])
    assert.same({ file = 0, line = 20, self = 40, total = 40 }, line(work.lines, 20))
    assert.same({ file = 0, line = 21, self = 10, total = 10 }, line(work.lines, 21))
  end)

  it("of a line are one, and of callers too", function()
    local cap = capture()
    local main = cost(cap, { [0] = true })[1]
    assert.same({ { file = 0, line = 10, self = 0, total = 50 } }, main.lines)
    assert.equal(20, main.units[100].total)
    assert.equal(30, main.units[110].total)
  end)

  it("hold inlined functions and what they are inlined into", function()
    local cap = capture()
    local costs = cost(cap, { [1] = true, [2] = true })
    assert.equal(2, #costs)
    assert.equal(10, costs[2].total)
    assert.same({ { file = 1, line = 5, self = 10, total = 10 } }, costs[2].lines)
    assert.same({ self = 10, total = 10 }, costs[1].units[210])
  end)

  it("are put together as the caller says", function()
    local cap = capture()
    local work = cost(cap, { [1] = true }, function()
      return "all"
    end)[1]
    assert.same({ all = { self = 50, total = 50 } }, work.units)
  end)

  it("of nothing are none", function()
    local cap = capture()
    assert.same({}, cost(cap, {}))
  end)

  it("keep their row loops compiled", function()
    local rows = 50000
    local fn, out = ffi.new("uint32_t[?]", rows), ffi.new("uint32_t[?]", rows)
    local wanted = ffi.new("uint8_t[?]", 100)
    local weight, costs = ffi.new("double[?]", rows), ffi.new("double[?]", rows)
    wanted[7] = 1
    for i = 0, rows - 1 do fn[i], weight[i] = i * 31 % 100, 5 end
    assert.same({}, helper.interpreted(places._pick, fn, rows, wanted, out))
    assert.same({}, helper.interpreted(places._lay_out, fn, rows - 1, out))
    assert.same({}, helper.interpreted(places._add_self, weight, fn, rows, costs))
  end)
end)
