local ffi = require("ffi")

local capture = require("microscope.capture")
local groups = require("microscope.query.groups")
local helper = require("spec.helper")
local keys = require("microscope.query.keys")
local profile = require("microscope.query.profile")

local THINGS = { "function", "module", "file", "line", "thread", "process", "cpu" }

describe("groups", function()
  local folder, cap

  setup(function()
    folder = helper.folder()
    assert(capture.generate { path = folder .. "/a", samples = 1200, stacks = 200, functions = 60,
      modules = 5, threads = 6, processes = 2, seed = 11 })
    cap = assert(capture.open(folder .. "/a"))
  end)

  teardown(function()
    cap:close()
    helper.remove(folder)
  end)

  -- What things of a sample and of a frame are called, as text.
  local function thing(name, value)
    local out = {}
    for _, field in ipairs { "name", "module", "file", "line", "tid", "pid", "cpu" } do
      if value[field] then out[#out + 1] = field .. "=" .. value[field] end
    end
    return name .. " " .. table.concat(out, " ")
  end

  local function by_query(by, options)
    options.lines = groups.needs_lines(by)
    local p = assert(profile.of(cap, options))
    local out, found = {}, groups.of(cap, p, by)
    local sum = 0
    for _, row in ipairs(found.rows) do
      local names = {}
      for i, name in ipairs(by) do names[i] = thing(name, row.values[i]) end
      local id = table.concat(names, "; ")
      assert.is_nil(out[id])
      out[id] = { row.self / 1e6, row.total / 1e6 }
      sum = sum + row.self
    end
    assert.equal(p.tree.weight, sum)
    return out
  end

  -- The same, sample by sample.  drop is the name of a function whose samples are left out.
  local function by_hand(by, drop)
    local k, out = keys.build(cap, { lines = true }), {}
    local column = {}
    for _, name in ipairs { "thread", "cpu", "stack" } do
      column[name] = cap:array("samples", name)
    end
    local process = cap:array("threads", "process")
    local function text(tab, col, row) return cap:string(cap:array(tab, col)[row]) end
    local function of_sample(name, row)
      local t = column.thread[row]
      local pid = cap:array("processes", "pid")[process[t]]
      if name == "cpu" then return thing(name, { cpu = column.cpu[row] }) end
      if name == "process" then
        return thing(name, { name = text("processes", "name", process[t]), pid = pid })
      end
      return thing(name, { name = text("threads", "name", t), tid = cap:array("threads", "tid")[t],
        pid = pid })
    end
    local known = {}
    local function describe(key)
      known[key] = known[key] or keys.describe(cap, k, key)
      return known[key]
    end
    local function of_frame(name, key)
      local what = describe(key)
      if name == "function" then return thing(name, { name = what.name, module = what.module }) end
      if name == "module" then return thing(name, { name = what.module }) end
      if name == "file" then return thing(name, { file = what.file }) end
      return thing(name, { file = what.file, line = what.line })
    end
    for row = 0, cap:rows("samples") - 1 do
      local frames, dropped = {}, false
      for _, l in ipairs((cap:stack(column.stack[row]))) do
        for f = k.start[l + 1] - 1, k.start[l], -1 do
          frames[#frames + 1] = k.frame[f]
          if drop and describe(k.frame[f]).name == drop then dropped = true end
        end
      end
      local seen = {}
      for i, key in ipairs(dropped and {} or frames) do
        local names = {}
        for at, name in ipairs(by) do
          names[at] = groups.OF_SAMPLES[name] and of_sample(name, row) or of_frame(name, key)
        end
        local id = table.concat(names, "; ")
        out[id] = out[id] or { 0, 0 }
        if i == 1 then out[id][1] = out[id][1] + 1 end
        if not seen[id] then out[id][2] = out[id][2] + 1 end
        seen[id] = true
      end
    end
    return out
  end

  it("of one thing are what going through all samples gives", function()
    for _, name in ipairs(THINGS) do assert.same(by_hand { name }, by_query({ name }, {})) end
  end)

  it("of two things too", function()
    for i, first in ipairs(THINGS) do
      for _, second in ipairs(THINGS) do
        if second ~= first and (i % 2 == 0 or second == "function" or second == "cpu") then
          assert.same(by_hand { first, second }, by_query({ first, second }, {}))
        end
      end
    end
  end)

  it("hold what filters and transforms leave", function()
    local drop = keys.describe(cap, keys.build(cap), 7).name
    local want = by_hand({ "thread", "function" }, drop)
    assert.same(want, by_query({ "thread", "function" },
      { transforms = { { kind = "drop", symbol = drop } } }))
    assert.same(by_hand({ "cpu" }, drop), by_query({ "cpu" },
      { transforms = { { kind = "drop", symbol = drop } } }))
    local main = {}
    for id, row in pairs(by_hand { "thread" }) do
      if id:find("name=main", 1, true) then main[id] = row end
    end
    assert.same(main, by_query({ "thread" }, { where = "thread = main" }))
  end)

  it("are the same by paths and by passes over the tree", function()
    local nodes, count = 50000, 3000
    local parent, class_of = ffi.new("uint32_t[?]", nodes), ffi.new("uint32_t[?]", nodes)
    local outermost, list = ffi.new("uint8_t[?]", nodes), ffi.new("uint32_t[?]", count)
    for i = 256, nodes - 1 do
      parent[i] = i < 300 and 1 or 256 + (i * 7919) % (i - 256)
      class_of[i], outermost[i] = i % 40, i % 3 == 0 and 0 or 1
    end
    local function sums_of()
      local sums = ffi.new("double[?]", nodes)
      for i = 0, count - 1 do
        list[i] = 300 + i * 13
        sums[list[i]] = i + 1
      end
      return sums
    end
    local self, total = ffi.new("double[?]", 40), ffi.new("double[?]", 40)
    local sums = sums_of()
    groups._add_by_paths(list, count, sums, parent, class_of, outermost, self, total)
    local self2, total2 = ffi.new("double[?]", 40), ffi.new("double[?]", 40)
    sums = sums_of()
    groups._add_selves(list, count, sums, class_of, self2)
    groups._add_by_nodes(nodes, sums, parent, class_of, outermost, total2)
    for class = 0, 39 do
      assert.equal(self[class], self2[class])
      assert.equal(total[class], total2[class])
    end
    assert.same({}, helper.interpreted(groups._add_by_paths, list, count, sums_of(), parent,
      class_of, outermost, self, total))
    assert.same({}, helper.interpreted(groups._add_selves, list, count, sums_of(), class_of, self))
    assert.same({}, helper.interpreted(groups._add_by_nodes, nodes, sums_of(), parent, class_of,
      outermost, total))
  end)

  it("are added up in loops that stay compiled", function()
    local rows = 1200
    local function column(name) return cap:array("samples", name) end
    local thread, cpu, weight, source, stack = column("thread"), column("cpu"), column("weight"),
      column("source"), column("stack")
    local of_thread, of_cpu = ffi.new("uint32_t[?]", 100), ffi.new("uint32_t[?]", 65536)
    for t = 0, 5 do of_thread[t] = t end
    local keep, node_of = ffi.new("uint8_t[?]", rows, 1), ffi.new("uint32_t[?]", 100000)
    local out, nodes = ffi.new("double[?]", rows), ffi.new("uint32_t[?]", 4 * rows)
    local weights, at = ffi.new("double[?]", 4 * rows), ffi.new("double[?]", 100)
    assert.same({}, helper.interpreted(groups._add_rows, thread, cpu, weight, source, rows, 0,
      of_thread, of_cpu, out))
    assert.same({}, helper.interpreted(groups._add_some_rows, thread, cpu, weight, source, rows, 0,
      of_thread, of_cpu, out, keep, stack, node_of))
    assert.same({}, helper.interpreted(groups._count_rows, thread, cpu, source, rows, 0, of_thread,
      of_cpu, keep, stack, node_of, out))
    assert.same({}, helper.interpreted(groups._place_rows, thread, cpu, weight, source, rows, 0,
      of_thread, of_cpu, keep, stack, node_of, at, nodes, weights))
    assert.same({}, helper.interpreted(groups._gather, nodes, weights, 0, rows,
      ffi.new("double[?]", 100000), ffi.new("uint32_t[?]", rows)))
    assert.same({}, helper.interpreted(groups._note_cpus, cpu, source, rows, 0,
      ffi.new("uint8_t[?]", 65536)))
  end)
end)
