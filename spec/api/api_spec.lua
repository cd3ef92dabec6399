-- The public API: selections, sums, lanes, trees, neighbours, intervals, results.

local helper = require("spec.helper")
local made = require("spec.support.made")
local microscope = require("microscope")
local group = require("microscope.api.group")
local neighbours = require("microscope.api.neighbours")
local select_query = require("microscope.api.select")

describe("the API", function()
  local folder, cap

  setup(function()
    folder = helper.folder()
    cap = assert(microscope.open(made.capture(folder .. "/a.usprof", {
      duration_ns = 1e9,
      processes = { { pid = 100 }, { pid = 200, parent = 0, name = "child" } },
      threads = { { tid = 100, name = "main" }, { tid = 101, name = "worker", end_ns = 5e8 },
        { tid = 200, process = 1, name = "child", start_ns = 1e8 } },
      samples = {
        { "main > parse > read", n = 10, at = 0, every = 1e6 },
        { "main > work", n = 30, at = 2e8, every = 1e6, thread = 1, cpu = 1 },
        { "main > work > work > leaf", n = 20, at = 6e8, every = 1e6, thread = 2, cpu = 1 },
        { "[3] > lost", n = 5, at = 9e8, every = 1e6, thread = 2 },
      },
    })))
  end)

  teardown(function()
    cap:close()
    helper.remove(folder)
  end)

  local function totals(selection) return { selection.count, selection.weight } end

  it("selects by thread, process, CPU and time", function()
    assert.same({ 65, 65e6 }, totals(microscope.selection(cap)))
    assert.same({ 30, 30e6 }, totals(microscope.selection(cap, { thread = 1 })))
    assert.same({ 40, 40e6 }, totals(microscope.selection(cap, { process = 0 })))
    assert.same({ 25, 25e6 }, totals(microscope.selection(cap, { process = 1 })))
    assert.same({ 50, 50e6 }, totals(microscope.selection(cap, { cpu = 1 })))
    assert.same({ 35, 35e6 }, totals(microscope.selection(cap, { thread = { 0, 2 } })))
    assert.same({ 0, 0 }, totals(microscope.selection(cap, { process = 0, thread = 2 })))
    assert.same({ 30, 30e6 }, totals(microscope.selection(cap, { from_ns = 2e8, to_ns = 6e8 })))
    assert.same({ 1, 1e6 }, totals(microscope.selection(cap, { from_ns = 2e8, to_ns = 2e8 + 1 })))
    assert.has_error(function() microscope.selection(cap, { thread = 3 }) end,
      "selection: thread 3 is none of 3")
    assert.has_error(function() microscope.selection(cap, { source = "wall" }) end)
  end)

  it("sums by each dimension, and the sums are the whole", function()
    for by, want in pairs { thread = { [0] = 10, 30, 25 }, process = { [0] = 40, 25 },
      cpu = { [0] = 15, 50 }, all = { [0] = 65 } } do
      local sums, all = microscope.sums(cap, by), 0
      for id, samples in pairs(want) do
        assert.equal(samples, sums.samples[id])
        assert.equal(samples * 1e6, sums.weight[id])
      end
      for id = 0, sums.count - 1 do all = all + sums.samples[id] end
      assert.equal(65, all)
    end
    local by_stack, all = microscope.sums(cap, "stack"), 0
    for id = 0, by_stack.count - 1 do all = all + by_stack.samples[id] end
    assert.equal(65, all)
    assert.has_error(function() microscope.sums(cap, "colour") end)
  end)

  it("puts samples into buckets of time", function()
    local lanes = microscope.lanes(cap, { buckets = 10 })
    assert.equal(1e8, lanes.bucket_ns)
    assert.equal("ns", lanes.unit)
    local ids, sum = {}, 0
    for _, lane in ipairs(lanes.lanes) do
      ids[#ids + 1] = lane.id
      for b = 0, 9 do sum = sum + lane.samples[b] end
    end
    assert.same({ 0, 1, 2 }, ids)
    assert.equal(65, sum)
    assert.equal(10, lanes.lanes[1].samples[0])
    local alone = microscope.lanes(cap, { buckets = 10 }).lanes[1].samples
    for _ = 1, 20 do
      collectgarbage()
      microscope.zeros("double", 1000)
    end
    assert.equal(10, alone[0])
    assert.equal(30e6, lanes.lanes[2].weight[2])
    assert.equal(20, lanes.lanes[3].samples[6])
    assert.equal(5, lanes.lanes[3].samples[9])
    local part = microscope.lanes(cap, { by = "all", buckets = 2, from_ns = 2e8, to_ns = 7e8 })
    assert.same({ 30, 20 }, { part.lanes[1].samples[0], part.lanes[1].samples[1] })
    assert.has_error(function() microscope.lanes(cap, { buckets = 0 }) end)
  end)

  it("makes trees of selections whose costs add up", function()
    local keys = microscope.keys(cap)
    local whole = microscope.tree(cap, keys)
    assert.equal(65, whole.samples)
    local sum = 0
    for thread = 0, 2 do
      sum = sum + microscope.tree(cap, keys, microscope.selection(cap, { thread = thread })).weight
    end
    assert.equal(whole.weight, sum)
    local costs = microscope.costs(whole, keys)
    local work = microscope.match(cap, keys, "work").keys[1]
    assert.equal(50e6, costs.total[work])
    assert.equal(30e6, costs.self[work])
    assert.is_nil(microscope.match(cap, keys, "wor"))
    assert.equal(2, microscope.match(cap, keys, "/^[lr]ea/").count)
    assert.equal("work (app)", microscope.label(cap, keys, work))
  end)

  it("tells a function's callers and callees, which add up, also through recursion", function()
    local keys = microscope.keys(cap)
    local tree = microscope.tree(cap, keys)
    local around = microscope.neighbours(tree, keys, microscope.match(cap, keys, "work").keys[1])
    assert.same({ 50e6, 30e6 }, { around.total, around.self })
    assert.equal(1, #around.callers)
    assert.equal("main", microscope.describe(cap, keys, around.callers[1].key).name)
    assert.equal(50, around.callers[1].samples)
    assert.equal(1, #around.callees)
    assert.equal("leaf", microscope.describe(cap, keys, around.callees[1].key).name)
    local top = microscope.neighbours(tree, keys, microscope.match(cap, keys, "main").keys[1])
    assert.is_nil(top.callers[1].key)
    assert.equal(60, top.callers[1].samples)
  end)

  it("gives the same neighbours as costs, whatever the stacks are", function()
    assert(microscope.generate { path = folder .. "/g.usprof", samples = 3000, stacks = 400,
      functions = 12, modules = 2, depth_max = 30, seed = 11 })
    assert(microscope.with_capture(folder .. "/g.usprof", function(g)
      local keys = microscope.keys(g)
      local tree = microscope.tree(g, keys)
      local costs = microscope.costs(tree, keys)
      for key = 0, keys.count - 1 do
        local around, callers = microscope.neighbours(tree, keys, key), 0
        for _, caller in ipairs(around.callers) do callers = callers + caller.samples end
        assert.equal(costs.total_count[key], around.total_samples)
        assert.equal(costs.total_count[key], callers)
      end
      return true
    end))
  end)

  it("lists frames, threads and processes", function()
    local keys = microscope.keys(cap)
    local stack = cap:array("samples", "stack")[45]
    local names, frames, ending = {}, microscope.frames(cap, keys, stack)
    for i, key in ipairs(frames) do names[i] = microscope.describe(cap, keys, key).name end
    assert.same({ "leaf", "work", "work", "main" }, names)
    assert.equal("outermost frame", microscope.ending(ending).text)
    local threads, processes = microscope.threads(cap), microscope.processes(cap)
    assert.same({ id = 2, tid = 200, name = "child", process = 1, pid = 200, start_ns = 1e8 },
      threads[3])
    assert.equal(5e8, threads[2].end_ns)
    assert.same({ id = 1, pid = 200, name = "child", parent = 0, start_ns = 0 }, processes[2])
  end)

  it("bounds a difference of shares by Newcombe's intervals", function()
    -- Table II of the paper, method 10: 56/70 against 48/80, and 9/10 against 3/10.
    local low, high = microscope.difference(48, 80, 56, 70)
    assert.near(0.0524, low, 5e-5)
    assert.near(0.3339, high, 5e-5)
    low, high = microscope.difference(3, 10, 9, 10)
    assert.near(0.1705, low, 5e-5)
    assert.near(0.8090, high, 5e-5)
    assert.same({ -1, 1 }, { microscope.difference(0, 0, 1, 2) })
  end)

  it("checks results and prints them", function()
    local result = microscope.result({ { name = "name" }, { name = "time", unit = "ns" } },
      { { "a", 1.5e6 }, { "\27[31m", nil } }, { title = "title", notes = { "note" } })
    assert.equal("title\n\nNAME         TIME\na         1.50 ms\n\\x1b[31m        -\n\nnote\n",
      tostring(result))
    assert.has_error(function() microscope.result({ { name = "a", unit = "miles" } }, {}) end)
    assert.has_error(function() microscope.result({}, {}) end)
  end)

  it("keeps its row loops compiled", function()
    assert(microscope.generate { path = folder .. "/l.usprof", samples = 50000, stacks = 500,
      seed = 5 })
    local big = assert(microscope.open(folder .. "/l.usprof"))
    local keys = microscope.keys(big)
    local tree, all = microscope.tree(big, keys), microscope.selection(big)
    assert.same({}, helper.interpreted(select_query._mark,
      big:array("samples", "time_ns"), big:array("samples", "thread"), big:array("samples", "cpu"),
      big:array("samples", "source"), 50000, 0ULL, 1e18, 0, microscope.zeros("uint8_t", 100),
      microscope.zeros("uint8_t", 65536), microscope.zeros("uint8_t", 50001)))
    assert.same({}, helper.interpreted(select_query._add_weight, big:array("samples", "weight"),
      50000, all.rows))
    assert.same({}, helper.interpreted(group._add, big:array("samples", "thread"),
      big:array("samples", "weight"), all.rows, 50000, microscope.zeros("double", 100),
      microscope.zeros("double", 100)))
    assert.same({}, helper.interpreted(microscope.lanes, big, { buckets = 50, select = all }))
    assert.same({}, helper.interpreted(neighbours._split, tree.parent, tree.key, tree.self,
      tree.self_count, tree.total, tree.total_count, tree.count, microscope.zeros("uint8_t", 9999),
      microscope.zeros("uint8_t", tree.count), keys.count,
      microscope.zeros("double", keys.count + 1), microscope.zeros("double", keys.count + 1),
      microscope.zeros("double", keys.count + 1), microscope.zeros("double", keys.count + 1)))
    big:close()
  end)
end)

describe("trees of the API", function()
  local folder, cap, keys, tree

  setup(function()
    folder = helper.folder()
    assert(microscope.generate { path = folder .. "/g.usprof", samples = 4000, stacks = 500,
      functions = 40, modules = 3, depth_max = 25, seed = 17 })
    cap = assert(microscope.open(folder .. "/g.usprof"))
    keys = microscope.keys(cap)
    tree = microscope.tree(cap, keys)
  end)

  teardown(function()
    cap:close()
    helper.remove(folder)
  end)

  it("keep weights and samples together through transforms", function()
    local costs = microscope.costs(tree, keys)
    local period = microscope.source(cap).period
    local function check(t)
      local sum, samples = 0, 0
      for node = 0, t.count - 1 do
        assert.equal(t.self[node], t.self_count[node] * period)
        sum, samples = sum + t.self[node], samples + t.self_count[node]
      end
      assert.same({ t.weight, t.samples }, { sum, samples })
    end
    for i, key in ipairs(microscope.ranked(costs, keys)) do
      if i > 8 then break end
      local mask = microscope.zeros("uint8_t", keys.count + 256)
      mask[key] = 1
      local dropped, gone = microscope.transform(tree, keys, "drop", mask)
      assert.equal(tree.weight, dropped.weight + gone)
      assert.equal(costs.total[key], gone)
      check(dropped)
      local merged, moved = microscope.transform(tree, keys, "merge", mask)
      assert.same({ tree.weight, costs.self[key] }, { merged.weight, moved })
      check(merged)
      local below = microscope.subtree(tree, keys, mask)
      assert.same({ costs.total[key], costs.total_count[key] }, { below.weight, below.samples })
      check(below)
    end
    local collapsed = microscope.transform(tree, keys, "collapse")
    assert.equal(tree.weight, collapsed.weight)
    check(collapsed)
    assert.equal(tree.weight, microscope.invert(tree, keys).weight)
    assert.has_error(function() microscope.transform(tree, keys, "shake") end)
    assert.has_error(function() microscope.transform(tree, keys, "drop") end)
  end)

  it("choose by expressions as reports do", function()
    local where = "thread ~ worker and time < 30ms"
    local chosen = microscope.selection(cap, { where = where })
    local profile = assert(microscope.profile(cap, { where = where }))
    assert.is_true(chosen.count > 0 and chosen.count < 4000)
    assert.same({ profile.tree.weight, profile.weights.samples }, { chosen.weight, chosen.count })
    local narrower = microscope.selection(cap, { where = where, thread = 1 })
    assert.is_true(narrower.count <= chosen.count)
    local ok, err = pcall(microscope.selection, cap, { where = "thread ~" })
    assert.is_false(ok)
    assert.matches("selection: .*column", err)
  end)

  it("list samples in order of time", function()
    local last, count, weight = 0, 0, 0
    collectgarbage("setpause", 10) -- what is only pointed at would be gone soon
    finally(function() collectgarbage("setpause", 200) end)
    for sample in microscope.each_sample(cap, microscope.selection(cap, { thread = 2 })) do
      assert.is_true(sample.time_ns >= last)
      assert.equal(2, sample.thread)
      last, count, weight = sample.time_ns, count + 1, weight + sample.weight
      if count % 50 == 0 then collectgarbage() end
    end
    local sums = microscope.sums(cap, "thread")
    assert.same({ sums.samples[2], sums.weight[2] }, { count, weight })
  end)

  it("compare and group as reports do", function()
    local profile = microscope.profile(cap)
    local diff = microscope.diff(cap, profile, cap, profile)
    for _, row in ipairs(diff.rows) do assert.equal(0, row.difference) end
    local groups = microscope.groups(cap, profile, { "module" })
    local sum = 0
    for _, row in ipairs(groups.rows) do sum = sum + row.self end
    assert.equal(profile.tree.weight, sum)
  end)
end)
