local fake = require("spec.support.fake")
local diff = require("microscope.query.diff")
local interval = require("microscope.query.interval")
local profile = require("microscope.query.profile")
local walk = require("microscope.query.walk")

local NONE = fake.NONE

-- A capture whose samples ran each in one function: {name, samples, module=, file=, line=,
-- build=, offset= (no name)}.
local function capture_of(list)
  local t = {
    modules = { name = {}, problem = {}, build_id = {}, path = {} }, files = { path = {} },
    functions = { name = {}, module = {}, file = {}, line = {} },
    locations = { kind = {}, evidence = {}, module = {}, offset = {} },
    lines = { location = {}, ["function"] = {}, file = {}, line = {}, depth = {} },
    stacks = { parent = { NONE }, location = { NONE }, ["end"] = { 1 } },
    samples = { stack = {}, weight = {}, source = {} },
    sources = { name = { "cpu-clock" }, unit = { 0 }, period = { list.period or 1000 } },
  }
  local ids = {}
  local function id_of(tab, column, text)
    ids[tab .. text] = ids[tab .. text] or #t[tab][column]
    t[tab][column][ids[tab .. text] + 1] = text
    return ids[tab .. text]
  end
  for i, it in ipairs(list) do
    local module = id_of("modules", "name", it.module or "app")
    t.modules.problem[module + 1], t.modules.path[module + 1] = "", ""
    t.modules.build_id[module + 1] = it.build or ""
    t.locations.kind[i], t.locations.evidence[i] = it.kind or 0, 0
    t.locations.module[i], t.locations.offset[i] = module, it.offset or i
    if it[1] then
      local file = it.file and id_of("files", "path", it.file) or NONE
      table.insert(t.functions.name, it[1])
      table.insert(t.functions.module, module)
      table.insert(t.functions.file, file)
      table.insert(t.functions.line, it.line or 0)
      for column, value in pairs { location = i - 1, ["function"] = #t.functions.name - 1,
        file = file, line = it.at or it.line or 0, depth = 0 } do
        table.insert(t.lines[column], value)
      end
    end
    t.stacks.parent[i + 1], t.stacks.location[i + 1], t.stacks["end"][i + 1] = 0, i - 1, 0
    for _ = 1, it[2] do
      table.insert(t.samples.stack, i)
      table.insert(t.samples.weight, 1000)
      table.insert(t.samples.source, 0)
    end
  end
  return fake.capture(t)
end

local function compare(base_cap, other_cap, options, profile_options)
  local base = assert(profile.of(base_cap, profile_options or {}))
  local other = assert(profile.of(other_cap, profile_options or {}))
  local d = diff.of(base_cap, base, other_cap, other, options or {})
  return d, function(class)
    return diff.describe(base_cap, base, other_cap, other, d.pairs, class)
  end, base, other
end

-- "name base->other" in samples, by name.
local function changes(base, other, profile_options)
  local d, describe = compare(capture_of(base), capture_of(other), {}, profile_options)
  local out = {}
  for _, row in ipairs(d.rows) do
    local what = describe(row.class)
    out[#out + 1] = ("%s %d->%d"):format(what.name, row.base / 1000, row.other / 1000)
  end
  table.sort(out)
  return out, d.same
end

describe("functions of two captures pair", function()
  it("by module and name, wherever they lie", function()
    assert.same({ "f 5->7" }, (changes({ { "f", 5 } }, { { "g", 0 }, { "f", 7 } })))
    assert.same({ "f 0->7", "f 5->0" },
      (changes({ { "f", 5, module = "a" } }, { { "f", 7, module = "b" } })))
  end)

  it("when their file or line moved, or only symbols tell of them", function()
    assert.same({ "f 5->7" }, (changes({ { "f", 5, file = "/a/x.c", line = 3 } },
      { { "f", 7, file = "/b/x.c", line = 9 } })))
    assert.same({ "f 5->7" }, (changes({ { "f", 5 } }, { { "f", 7, file = "x.c", line = 9 } })))
    assert.same({ "f 5->7" }, (changes({ { "f", 2 }, { "f", 3, file = "x.c", line = 9 } },
      { { "f", 7, file = "x.c", line = 12 } })))
  end)

  it("by file, then by line, where several have one name", function()
    assert.same({ "f 1->3", "f 2->5" }, (changes(
      { { "f", 1, file = "a.c", line = 1 }, { "f", 2, file = "b.c", line = 1 } },
      { { "f", 5, file = "b.c", line = 8 }, { "f", 3, file = "a.c", line = 9 } })))
    assert.same({ "f 0->5", "f 1->3", "f 2->0" }, (changes(
      { { "f", 1, file = "a.c", line = 1 }, { "f", 2, file = "a.c", line = 7 } },
      { { "f", 3, file = "a.c", line = 1 }, { "f", 5, file = "a.c", line = 8 } })))
  end)

  it("without a name only by their declaration", function()
    assert.same({ "<anonymous x.js:3> 1->2" }, (changes(
      { { "<anonymous x.js:3>", 1 } }, { { "<anonymous x.js:3>", 2 } })))
    assert.same({ "<anonymous> 0->2", "<anonymous> 1->0" }, (changes(
      { { "<anonymous>", 1, file = "x.js", line = 3 } },
      { { "<anonymous>", 2, file = "x.js", line = 4 } })))
    assert.same({ "<anonymous> 1->2" }, (changes(
      { { "<anonymous>", 1, file = "x.js", line = 3 } },
      { { "<anonymous>", 2, file = "x.js", line = 3 } })))
  end)

  it("by line from their first line on", function()
    assert.same({ "f 1->3", "f 2->4" }, (changes(
      { { "f", 1, file = "a.c", line = 10, at = 11 },
        { "f", 2, file = "a.c", line = 10, at = 12 } },
      { { "f", 3, file = "a.c", line = 20, at = 21 },
        { "f", 4, file = "a.c", line = 20, at = 22 } },
      { lines = true })))
  end)

  it("as code without a name by offset in one build, else as one", function()
    assert.same({ "app+0x10 1->3", "app+0x20 2->5" }, (changes(
      { { nil, 1, offset = 16, build = "aa" }, { nil, 2, offset = 32, build = "aa" } },
      { { nil, 3, offset = 16, build = "aa" }, { nil, 5, offset = 32, build = "aa" } })))
    local out = changes(
      { { nil, 1, offset = 16, build = "aa" }, { nil, 2, offset = 32, build = "aa" } },
      { { nil, 3, offset = 48, build = "bb" }, { nil, 5, offset = 64, build = "bb" } })
    assert.equal(1, #out)
    assert.matches(" 3%->8$", out[1])
  end)
end)

describe("a difference", function()
  it("of a capture with itself is none", function()
    local cap = capture_of { { "f", 5 }, { "g", 3, file = "a.c", line = 2 }, { nil, 4, kind = 2 },
      { "<anonymous>", 2 }, { "h", 2, file = "b.c", line = 1 } }
    for _, options in ipairs { {}, { share = true }, { measure = "total" } } do
      local d = compare(cap, cap, options)
      assert.same({}, d.rows)
      assert.equal(5, d.same)
    end
  end)

  it("has the larger first, and noise marked", function()
    local base, other = capture_of { { "f", 500 }, { "g", 300 }, { "h", 200 } },
      capture_of { { "f", 900 }, { "g", 310 }, { "i", 3 } }
    local d, describe = compare(base, other)
    local out = {}
    for i, row in ipairs(d.rows) do
      out[i] = ("%s %+d %s"):format(describe(row.class).name, row.difference / 1000,
        row.noise and "~" or "")
    end
    assert.same({ "f +400 ", "h -200 ", "g +10 ~", "i +3 ~" }, out)
  end)

  it("of shares is of each side's own total", function()
    assert.same({}, (compare(capture_of { { "f", 10 }, { "g", 90 } },
      capture_of { { "f", 20 }, { "g", 180 } }, { share = true })).rows)
    local d, describe = compare(capture_of { { "f", 10 }, { "g", 90 } },
      capture_of { { "f", 60 }, { "g", 140 } }, { share = true })
    for _, row in ipairs(d.rows) do
      local want = describe(row.class).name == "f" and 0.2 or -0.2
      assert.is_true(math.abs(row.difference - want) < 1e-12)
    end
  end)

  it("has no interval where the source has no period", function()
    local d = compare(capture_of { { "f", 10 }, period = 0 },
      capture_of { { "f", 20 }, period = 0 })
    assert.is_nil(d.rows[1].low)
    assert.is_false(d.rows[1].noise)
  end)

  -- What is left after a choice is itself known from samples alone.
  it("of times is as sure as all that was recorded, whatever was left out", function()
    local base_cap, other_cap = capture_of { { "f", 100 }, { "g", 9900 } },
      capture_of { { "f", 120 }, { "g", 9880 } }
    local all, of = compare(base_cap, other_cap)
    local function row_of(d, describe)
      for _, row in ipairs(d.rows) do
        if describe(row.class).name == "f" then return row end
      end
    end
    local want = row_of(all, of)
    assert.is_true(want.noise)
    local transforms = { { kind = "drop", symbol = "g" } }
    local row = row_of(compare(base_cap, other_cap, {}, { transforms = transforms }))
    assert.same({ want.difference, want.low, want.high, true },
      { row.difference, row.low, row.high, row.noise })
    -- Shares are of what is left: f is all of it.
    local shares = compare(base_cap, other_cap, { share = true }, { transforms = transforms })
    assert.same({}, shares.rows)
  end)

  it("of trees joins both, by name", function()
    local base_cap, other_cap = fake.stacks { { "main > a > x", 3 }, { "main > b", 2 } },
      fake.stacks { { "main > b > y", 4 }, { "main > a > x", 3 } }
    local d, describe, base, other = compare(base_cap, other_cap)
    local tree, out = diff.tree(base, other, d.pairs), {}
    walk.tree(tree, { weight = function(n) return math.max(tree.total[n], tree.base_total[n]) end },
      function(node, depth)
        out[#out + 1] = ("%s%s %d->%d"):format((" "):rep(depth), describe(tree.key[node]).name,
          tree.base_total[node] / 1000, tree.total[node] / 1000)
      end, function() end)
    assert.same({ "main 5->7", " b 2->4", "  y 0->4", " a 3->3", "  x 3->3" }, out)
  end)
end)

-- Newcombe's own examples (1998, table II, method 10): a/m against b/n.
describe("the interval of a difference of shares", function()
  it("is Newcombe's hybrid score interval", function()
    for _, case in ipairs {
      { 56, 70, 48, 80, 0.0524, 0.3339 }, { 9, 10, 3, 10, 0.1705, 0.8090 },
      { 6, 7, 2, 7, 0.0582, 0.8062 }, { 5, 56, 0, 29, -0.0381, 0.1926 },
      { 0, 10, 0, 20, -0.1611, 0.2775 }, { 0, 10, 0, 10, -0.2775, 0.2775 },
      { 10, 10, 0, 20, 0.6791, 1.0000 }, { 10, 10, 0, 10, 0.6075, 1.0000 },
    } do
      local a, m, b, n, want_low, want_high = unpack(case)
      local a_low, a_high = interval.wilson(a, m)
      local b_low, b_high = interval.wilson(b, n)
      local low, high = interval.of_difference(b / n, b_low, b_high, a / m, a_low, a_high)
      assert.is_true(math.abs(low - want_low) < 6e-5, ("%g for %g"):format(low, want_low))
      assert.is_true(math.abs(high - want_high) < 6e-5, ("%g for %g"):format(high, want_high))
    end
  end)

  it("holds the truth in 95 % of many repeats", function()
    local function look(n, p)
      local k = 0
      for _ = 1, n do if math.random() < p then k = k + 1 end end
      return k
    end
    math.randomseed(4)
    for _, case in ipairs { { 0.2, 0.25, 300, 200 }, { 0.02, 0.01, 500, 500 },
      { 0.9, 0.8, 60, 90 } } do
      local p, q, m, n = unpack(case)
      local held = 0
      for _ = 1, 2000 do
        local a, b = look(m, p), look(n, q)
        local a_low, a_high = interval.wilson(a, m)
        local b_low, b_high = interval.wilson(b, n)
        local low, high = interval.of_difference(a / m, a_low, a_high, b / n, b_low, b_high)
        if low <= q - p and q - p <= high then held = held + 1 end
      end
      -- 1,900 are expected; five standard deviations are 49.
      assert.is_true(held > 1850, ("%d of 2000"):format(held))
    end
  end)
end)
