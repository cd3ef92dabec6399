-- What holds for any capture and any chain of transforms: random ones, the same each run.

local ffi = require("ffi")

local capture = require("microscope.capture")
local costs = require("microscope.query.costs")
local diff = require("microscope.query.diff")
local fake = require("spec.support.fake")
local focus = require("microscope.query.focus")
local helper = require("spec.helper")
local invert = require("microscope.query.invert")
local keys = require("microscope.query.keys")
local profile = require("microscope.query.profile")
local symbols = require("microscope.query.symbols")
local walk = require("microscope.query.walk")

-- Stacks over a few names, so that recursion is the rule.
local function random_capture(seed)
  math.randomseed(seed)
  local list, names = {}, {}
  for i = 1, math.random(2, 9) do names[i] = string.char(96 + i) end
  for i = 1, math.random(0, 40) do
    local frames = {}
    for k = 1, math.random(0, 12) do frames[k] = names[math.random(#names)] end
    local ending = math.random(4) == 1 and ("[%d] > "):format(math.random(1, 6)) or ""
    list[i] = { ending .. table.concat(frames, " > "), math.random(0, 5) }
  end
  return fake.stacks(list), names
end

local function random_chain(names)
  local out = {}
  for i = 1, math.random(0, 5) do
    local kind = ({ "collapse-recursion", "collapse", "merge", "drop" })[math.random(4)]
    local symbol = kind ~= "collapse-recursion" and names[math.random(#names)] or nil
    out[i] = { kind = kind, symbol = symbol }
  end
  return out
end

-- A tree as text, whatever its nodes' numbers.
local function text_of(cap, p, tree)
  local out = {}
  walk.tree(tree, { before = function(a, b)
    local x = walk.describe(cap, p.keys, tree, a).name
    local y = walk.describe(cap, p.keys, tree, b).name
    if x ~= y then return x < y end
    return tree.total[a] > tree.total[b]
  end }, function(node, depth)
    out[#out + 1] = ("%s%s %d %d"):format((" "):rep(depth),
      walk.describe(cap, p.keys, tree, node).name, tree.self[node], tree.total[node])
  end, function() end)
  return table.concat(out, "\n")
end

local function sum(values, from, to)
  local total = 0
  for i = from, to do total = total + values[i] end
  return total
end

-- What must hold for a tree by itself.
local function check_tree(tree)
  local below = ffi.new("double[?]", tree.count)
  for node = tree.count - 1, 0, -1 do
    assert.equal(tree.total[node], below[node] + tree.self[node])
    if node >= 256 then
      assert.is_true(tree.parent[node] < node)
      below[tree.parent[node]] = below[tree.parent[node]] + tree.total[node]
    end
  end
  assert.equal(tree.weight, sum(tree.self, 0, tree.count - 1))
  assert.equal(tree.weight, sum(tree.total, 0, 255))
end

-- No two nodes are of the same parent and key.
local function check_distinct(tree)
  local seen = {}
  for node = 256, tree.count - 1 do
    local id = tree.parent[node] .. "," .. tree.key[node]
    assert.is_nil(seen[id])
    seen[id] = true
  end
end

local function each_case(fn)
  for seed = 1, 150 do
    local cap, names = random_capture(seed)
    fn(cap, random_chain(names), seed)
  end
end

describe("any chain of transforms", function()
  it("conserves what was recorded", function()
    each_case(function(cap, chain)
      local p = assert(profile.of(cap, { transforms = chain, lenient = true }))
      check_tree(p.tree)
      check_distinct(p.tree)
      local removed = 0
      for _, step in ipairs(p.steps) do
        assert.is_true(step.weight >= 0)
        if step.removed then removed = removed + step.weight end
      end
      assert.equal(cap:rows("samples") * 1000, p.recorded)
      assert.equal(p.recorded, p.tree.weight + removed)
      -- Stacks follow: what each weighs is in its node.
      local self = ffi.new("double[?]", p.tree.count)
      for s = 0, cap:rows("stacks") - 1 do
        local node = p.tree.node_of[s]
        if node ~= 0xffffffff then self[node] = self[node] + p.weights.weight[s] end
      end
      for node = 0, p.tree.count - 1 do assert.equal(p.tree.self[node], self[node]) end
    end)
  end)

  it("leaves a tree whose totals are the table's, and its callers'", function()
    each_case(function(cap, chain)
      local p = assert(profile.of(cap, { transforms = chain, lenient = true }))
      local roots = sum(p.tree.self, 0, 255)
      assert.equal(p.tree.weight, roots + sum(p.costs.self, 0, p.keys.count - 1))
      local inverted = invert.build(p.tree, p.keys)
      check_tree(inverted)
      check_distinct(inverted)
      assert.equal(p.tree.weight, inverted.weight)
      for node = 256, inverted.count - 1 do
        if inverted.parent[node] == 1 and inverted.key[node] < p.keys.count then
          assert.equal(p.costs.self[inverted.key[node]], inverted.total[node])
        end
      end
      for key = 0, p.keys.count - 1 do
        assert.is_true(p.costs.self[key] <= p.costs.total[key])
        assert.is_true(p.costs.total[key] <= p.tree.weight)
      end
    end)
  end)

  it("that collapses recursion leaves none", function()
    each_case(function(cap, chain)
      table.insert(chain, { kind = "collapse-recursion" })
      local p = assert(profile.of(cap, { transforms = chain, lenient = true }))
      for node = 256, p.tree.count - 1 do
        local at = p.tree.parent[node]
        while at >= 256 do
          assert.are_not.equal(p.tree.key[node], p.tree.key[at])
          at = p.tree.parent[at]
        end
      end
      local again = assert(profile.of(cap, { transforms = { unpack(chain) }, lenient = true }))
      assert.equal(text_of(cap, p, p.tree), text_of(cap, again, again.tree))
    end)
  end)

  it("gives focus what the table has, and a subtree that weighs it", function()
    each_case(function(cap, chain)
      local p = assert(profile.of(cap, { transforms = chain, lenient = true }))
      for _, key in ipairs(p.ranked) do
        local name = keys.describe(cap, p.keys, key).name
        local mask = symbols.match(cap, p.keys, name).mask
        local f = focus.of(p.tree, p.keys, mask)
        assert.equal(p.costs.self[key], f.self)
        assert.equal(p.costs.total[key], f.total)
        local below = focus.subtree(p.tree, p.keys, mask, cap:rows("stacks"))
        check_tree(below)
        assert.equal(f.total, below.weight)
        local callers = invert.build(p.tree, p.keys, 0, focus.calls(p.tree, p.keys, mask))
        assert.equal(f.total, callers.weight)
      end
    end)
  end)

  it("of both sides of a diff of a capture with itself leaves no difference", function()
    each_case(function(cap, chain)
      local p = assert(profile.of(cap, { transforms = chain, lenient = true }))
      for _, measure in ipairs { "self", "total" } do
        assert.same({}, diff.of(cap, p, cap, p, { measure = measure }).rows)
      end
      local pairs_of = diff.of(cap, p, cap, p, {}).pairs
      local tree = diff.tree(p, p, pairs_of)
      for node = 0, tree.count - 1 do assert.equal(tree.base_total[node], tree.total[node]) end
      assert.equal(p.tree.count, tree.count)
    end)
  end)

  it("gives the same in any order of rows and size of blocks", function()
    each_case(function(cap, chain, seed)
      local p = assert(profile.of(cap, { transforms = chain, lenient = true }))
      local want = text_of(cap, p, p.tree)
      local rows = cap:rows("samples")
      for _, column in ipairs { "stack", "weight", "source" } do
        math.randomseed(seed)
        local array = cap.arrays["samples." .. column]
        for i = rows - 1, 1, -1 do
          local k = math.random(0, i)
          array[i], array[k] = array[k], array[i]
        end
      end
      for _, size in ipairs { 1, 3, 1000 } do
        fake.block_rows = size
        local q = assert(profile.of(cap, { transforms = chain, lenient = true }))
        assert.equal(want, text_of(cap, q, q.tree))
      end
      fake.block_rows = 7
    end)
  end)
end)

describe("generated captures", function()
  local folder

  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  it("have trees by line and folded that add up to the same", function()
    for seed = 1, 4 do
      local path = folder .. "/" .. seed
      assert(capture.generate { path = path, samples = 5000, stacks = 900, functions = 90,
        seed = seed })
      capture.with(path, function(cap)
        local plain = profile.of(cap, {})
        local lines = profile.of(cap, { lines = true })
        local fold = profile.of(cap, { fold = true })
        for _, p in ipairs { plain, lines, fold } do
          check_tree(p.tree)
          check_distinct(p.tree)
          assert.equal(5000 * 1e6, p.tree.weight)
        end
        -- A function's lines have its own time together; its total is at most theirs.
        local map = ffi.new("uint32_t[?]", lines.keys.count + keys.ENDS)
        ffi.copy(map, lines.keys.group, (lines.keys.count + keys.ENDS) * 4)
        local by_function = costs.flat(lines.tree, lines.keys, map, lines.keys.groups)
        for key = 0, plain.keys.count - 1 do
          assert.equal(plain.costs.self[key], by_function.self[key])
          assert.equal(plain.costs.total[key], by_function.total[key])
        end
      end)
    end
  end)

  it("give the same bytes each time", function()
    local path = folder .. "/a"
    assert(capture.generate { path = path, samples = 3000, stacks = 400, functions = 60, seed = 8 })
    assert(capture.generate { path = folder .. "/b", samples = 3000, stacks = 400, functions = 60,
      seed = 8, period_ns = 1100000 })
    for _, options in ipairs { "", "--tree", "--tree --invert", "--by thread,function",
      "--base " .. folder .. "/b", "--focus /a/ --limit 3", "--samples --limit 50",
      "--collapse-recursion --tree --min-percent 0" } do
      for _, format in ipairs { "text", "json", "csv" } do
        local command = ("report %s --format %s %s"):format(path, format, options)
        local out, err, status = helper.microscope(command)
        assert.same({ out, err, status }, { helper.microscope(command) })
      end
    end
  end)
end)

describe("extremes:", function()
  it("a capture without rows, and one sample", function()
    local empty = profile.of(fake.capture {}, { transforms = { { kind = "collapse-recursion" } } })
    assert.equal(0, empty.tree.weight)
    assert.same({}, empty.ranked)
    local cap = fake.stacks { { "main", 1 } }
    local p = profile.of(cap, {})
    assert.equal(1000, p.tree.weight)
    assert.equal(1000, invert.build(p.tree, p.keys).weight)
  end)

  it("recursion of 10,000 frames", function()
    local frames = {}
    for i = 1, 10000 do frames[i] = i % 3 == 0 and "a" or "b" end
    local cap = fake.stacks { { table.concat(frames, " > "), 2 },
      { table.concat(frames, " > ") .. " > leaf", 3 } }
    local p = profile.of(cap, { transforms = { { kind = "collapse-recursion" } } })
    local lines = {}
    walk.tree(p.tree, {}, function(node, depth)
      lines[#lines + 1] = depth .. walk.describe(cap, p.keys, p.tree, node).name
    end, function() end)
    -- "b b a" again and again, and a "b" at the end: one b, or b and then leaf.
    assert.same({ "0b", "1leaf" }, lines)
    local plain = profile.of(cap, {})
    local inverted = invert.build(plain.tree, plain.keys)
    assert.equal(5000, inverted.weight)
    assert.equal(256 + 10000 + 10001, inverted.count)
    assert.equal(256 + 1 + 1, invert.build(plain.tree, plain.keys, 6000).count)
  end)

  it("names of 64 KiB in every format", function()
    local folder = helper.folder()
    local writer = require("microscope.writer")
    local path = folder .. "/long.usprof"
    local name = ("n"):rep(65536)
    local w = assert(writer.open(path))
    local function add(tab, row) return w:row(tab, row) end
    local strings = setmetatable({}, { __index = function(t, text)
      t[text] = w:string(text)
      return t[text]
    end })
    add("sources", { name = strings["cpu-clock"], unit = 0, period = 1000,
      unit_name = strings[""] })
    add("processes", { pid = 1, ns_pid = 1, parent = 0xffffffff, name = strings["p"],
      cgroup = strings[""], start_ns = 0, end_ns = -1ULL })
    add("threads", { process = 0, tid = 1, name = strings["t"], start_ns = 0, end_ns = -1ULL })
    add("modules", { kind = 0, path = strings["m"], name = strings["m"], build_id = strings[""],
      problem = strings[""], inode = 0, size = 0 })
    add("locations", { kind = 0, evidence = 0, module = 0, offset = 1 })
    add("functions", { name = strings[name], linkage_name = strings[name], module = 0,
      file = 0xffffffff, line = 0 })
    add("lines", { location = 0, ["function"] = 0, file = 0xffffffff, line = 0, depth = 0 })
    add("stacks", { parent = 0xffffffff, location = 0xffffffff, ["end"] = 1 })
    add("stacks", { parent = 0, location = 0, ["end"] = 0 })
    add("samples", { time_ns = 5, thread = 0, stack = 1, weight = 1000, cpu = 0, source = 0 })
    assert(w:finish())
    for _, options in ipairs { "", "--tree", "--samples", "--by function", "--base " .. path } do
      for _, format in ipairs { "text", "json", "csv" } do
        local out, err, status = helper.microscope(("report %s --format %s %s"):format(path, format,
          options))
        assert.same({ "", 0 }, { err, status })
        assert.is_true(#out > 0)
      end
    end
    helper.remove(folder)
  end)
end)
