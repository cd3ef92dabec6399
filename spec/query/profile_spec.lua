local ffi = require("ffi")

local fake = require("spec.support.fake")
local helper = require("spec.helper")
local capture = require("microscope.capture")
local costs = require("microscope.query.costs")
local ends = require("microscope.query.ends")
local keys = require("microscope.query.keys")
local profile = require("microscope.query.profile")
local profile_text = require("microscope.report.profile_text")
local samples = require("microscope.query.samples")
local tree = require("microscope.query.tree")

local NONE = fake.NONE

-- name -> {self samples, total samples}
local function costs_of(cap, options)
  local p, out = profile.of(cap, options or {}), {}
  for _, key in ipairs(p.ranked) do
    local what = keys.describe(cap, p.keys, key)
    local name = what.name .. (what.line and ":" .. what.line or "")
    assert.is_nil(out[name])
    out[name] = { profile.samples(p, p.costs.self[key]), profile.samples(p, p.costs.total[key]) }
    assert.equal(out[name][1] * 1000, p.costs.self[key])
    assert.equal(out[name][2] * 1000, p.costs.total[key])
  end
  return out
end

-- The tree as lines of text.
local function lines_of(cap, least)
  local p, out = profile.of(cap, {}), {}
  local hidden = profile.walk(p, least or 0, function(node, depth)
    out[#out + 1] = ("%s%s %d/%d"):format((" "):rep(depth),
      profile.describe_node(cap, p, node).name,
      p.tree.self[node] / 1000, p.tree.total[node] / 1000)
  end, function() end)
  return out, hidden
end

describe("costs", function()
  it("give each function what it ran itself and with what it called", function()
    assert.same({ main = { 1, 10 }, work = { 3, 9 }, leaf = { 6, 6 } }, costs_of(fake.stacks {
      { "main", 1 }, { "main > work", 3 }, { "main > work > leaf", 6 },
    }))
  end)

  it("count a recursive function once a stack", function()
    assert.same({ main = { 0, 9 }, f = { 5, 9 }, g = { 4, 7 } }, costs_of(fake.stacks {
      { "main > f", 1 }, { "main > f > f", 1 }, { "main > f > g > f", 3 },
      { "main > f > f > g", 1 }, { "main > f > g", 3 },
    }))
  end)

  it("count only samples of the source of CPU time", function()
    local cap = fake.stacks { { "main > a", 2 }, { "main > b", 2 } }
    cap.arrays["samples.source"][0] = 1
    assert.same({ main = { 0, 3 }, a = { 1, 1 }, b = { 2, 2 } }, costs_of(cap))
  end)

  it("are empty without samples", function()
    assert.same({}, costs_of(fake.capture {}))
  end)

  it("agree with a naive walk of every sample of a generated capture", function()
    local folder = helper.folder()
    local path = folder .. "/a.usprof"
    assert(capture.generate { path = path, samples = 5000, stacks = 700, seed = 7 })
    capture.with(path, function(cap)
      local p = profile.of(cap, {})
      local self, total = {}, {}
      local stack = cap:array("samples", "stack")
      for i = 0, cap:rows("samples") - 1 do
        local seen, innermost = {}, nil
        for _, location in ipairs((cap:stack(stack[i]))) do
          for f = p.keys.start[location + 1] - 1, p.keys.start[location], -1 do
            local key = p.keys.frame[f]
            innermost = innermost or key
            seen[key] = true
          end
        end
        self[innermost] = (self[innermost] or 0) + 1
        for key in pairs(seen) do total[key] = (total[key] or 0) + 1 end
      end
      for key = 0, p.keys.count - 1 do
        assert.equal(self[key] or 0, p.costs.self[key] / 1e6)
        assert.equal(total[key] or 0, p.costs.total[key] / 1e6)
      end
      assert.equal(5000, p.weights.samples)
      assert.equal(5000 * 1e6, p.tree.weight)
    end)
    helper.remove(folder)
  end)
end)

describe("keys", function()
  -- Location 0: helper inlined into work; 1: unnamed; 2: anonymous; 3: a signal frame with a
  -- name; 4: unmapped; 5: a name alone; 6: the same function as 0's outer, another line.
  local cap = fake.capture {
    modules = { name = { "app" }, problem = { "" } },
    files = { path = { "/src/work.c" } },
    functions = { name = { "helper", "work", "restore" }, module = { 0, 0, 0 } },
    locations = {
      kind = { 0, 0, 2, 1, 3, 4, 0 },
      evidence = { 0, 0, 0, 0, 0, 0, 0 },
      module = { 0, 0, NONE, 0, NONE, NONE, 0 },
      offset = { 0x10, 0xffffffff81234567ULL, 0x7f0000001000ULL, 0x30, 0x1000, "imported", 0x20 },
    },
    lines = {
      location = { 0, 0, 3, 6 },
      ["function"] = { 0, 1, 2, 1 },
      file = { 0, 0, NONE, 0 },
      line = { 7, 20, 0, 21 },
      depth = { 0, 1, 0, 0 },
    },
  }

  local function frames(k, location)
    local out = {}
    for f = k.start[location], k.start[location + 1] - 1 do
      local what = keys.describe(cap, k, k.frame[f])
      out[#out + 1] = what.name .. (what.line and (" " .. what.file .. ":" .. what.line) or "")
    end
    return table.concat(out, ", ")
  end

  it("make inlined functions frames of their own, outermost first", function()
    local k = keys.build(cap)
    assert.equal("work, helper", frames(k, 0))
    assert.equal("work", frames(k, 6))
    assert.equal(k.frame[k.start[0]], k.frame[k.start[6]])
  end)

  it("tell functions apart by line when asked", function()
    local k = keys.build(cap, { lines = true })
    assert.equal("work /src/work.c:20, helper /src/work.c:7", frames(k, 0))
    assert.equal("work /src/work.c:21", frames(k, 6))
  end)

  it("keep unnamed code as a frame that says where it is", function()
    local k = keys.build(cap)
    assert.equal("app+0xffffffff81234567", frames(k, 1))
    assert.equal("[anon 0x7f0000001000]", frames(k, 2))
    assert.equal("[signal]", frames(k, 3))
    assert.equal("[unmapped 0x1000]", frames(k, 4))
    assert.equal("imported", frames(k, 5))
  end)

  it("take no offset of a newer version's kind for the id of a string", function()
    local newer = fake.capture {
      modules = { name = { "app" }, problem = { "" } },
      locations = { kind = { 9 }, evidence = { 0 }, module = { 0 }, offset = { -1ULL } },
    }
    local k = keys.build(newer)
    assert.same({ name = "[place of kind 9]", module = "app" },
      keys.describe(newer, k, k.frame[0]))
  end)
end)

describe("the tree", function()
  it("merges call sites of one function and orders by cost", function()
    assert.same({ "main 0/6", " b 1/4", "  c 3/3", " a 2/2" }, (lines_of(fake.stacks {
      { "main > a", 2 }, { "main > b", 1 }, { "main > b > c", 3 },
    })))
  end)

  it("shows why stacks end short as their root", function()
    local lines = lines_of(fake.stacks { { "main > a", 3 }, { "[3] > a", 2 } })
    assert.same({ "main 0/3", " a 3/3", "[stack copy exhausted] 0/2", " a 2/2" }, lines)
  end)

  it("leaves out what is under the least and counts it", function()
    local lines, hidden = lines_of(fake.stacks {
      { "main > a", 90 }, { "main > b", 4 }, { "main > b > c", 3 }, { "other", 3 },
    }, 10000)
    assert.same({ "main 0/97", " a 90/90" }, lines)
    assert.equal(2, hidden)
  end)

  it("is as wide as programs are: thousands of callees of one function, apart", function()
    local list = {}
    for i = 1, 6000 do list[i] = { "main > f" .. i .. " > g" .. i % 7, 1 + i % 3 } end
    local cap = fake.stacks(list)
    local p = profile.of(cap, {})
    assert.equal(256 + 1 + 6000 * 2, p.tree.count)
    local seen = {}
    for node = 256, p.tree.count - 1 do
      local id = p.tree.parent[node] .. "," .. p.tree.key[node]
      assert.is_nil(seen[id])
      seen[id] = true
    end
    assert.equal(cap:rows("samples") * 1000, p.tree.weight)
  end)

  it("goes as deep as stacks do", function()
    local deep = {}
    for i = 1, 20000 do deep[i] = "f" .. i end
    local cap = fake.stacks { { table.concat(deep, " > "), 1 } }
    local count, leaves = 0, 0
    profile.walk(profile.of(cap, {}), 0, function() count = count + 1 end,
      function() leaves = leaves + 1 end)
    assert.equal(20000, count)
    assert.equal(20000, leaves)
  end)

  it("is written in lines that do not grow with its depth", function()
    local deep = {}
    for i = 1, 1000 do deep[i] = "f" .. i end
    local cap, longest = fake.stacks { { table.concat(deep, " > "), 1 } }, 0
    for _, columns in ipairs { 40, 100, 1000 } do
      local p, lines = profile.of(cap, {}), {}
      profile_text.tree(cap, p, { min_percent = 0, columns = columns < 1000 and columns or nil },
        function(...) lines[#lines + 1] = table.concat { ... } end)
      for _, line in ipairs(lines) do longest = math.max(longest, #line) end
      assert.matches("%(999%) f", lines[#lines])
    end
    assert.is_true(longest < 300)
  end)

  it("that a few rows blow up is refused before it takes the memory", function()
    local stacks = { parent = {}, location = {}, ["end"] = {} }
    local lines = { location = {}, ["function"] = {}, file = {}, line = {}, depth = {} }
    for i = 1, 20000 do
      stacks.parent[i] = i == 1 and NONE or i - 2
      stacks.location[i] = i == 1 and NONE or 0
      stacks["end"][i] = i == 1 and 1 or 0
      for _, column in ipairs { "location", "function", "file", "line" } do lines[column][i] = 0 end
      lines.depth[i] = i - 1
    end
    local p, why = profile.of(fake.capture {
      sources = { name = { "cpu-clock" }, unit = { 0 }, period = { 1 } },
      files = { path = { "" } }, modules = { name = { "app" }, problem = { "" } },
      functions = { name = { "f" }, module = { 0 } },
      locations = { kind = { 0 }, evidence = { 0 }, module = { 0 }, offset = { 0 } },
      lines = lines, stacks = stacks,
    }, {})
    assert.is_nil(p)
    assert.matches("^its stacks have more than 134217728 frames", why)
  end)
end)

describe("ends", function()
  it("are counted in samples, most first, with their advice", function()
    local list = ends.of(profile.of(fake.stacks { { "main", 2 }, { "[3] > a", 5 } }, {}).tree)
    assert.equal("stack copy exhausted", list[1].reason)
    assert.equal(5000, list[1].weight)
    assert.is_false(list[1].whole)
    assert.matches("%-%-stack%-bytes", list[1].advice)
    assert.equal("outermost frame", list[2].reason)
    assert.is_true(list[2].whole)
    assert.is_nil(list[2].advice)
  end)

  it("of a newer version are numbers", function()
    local list = ends.of(profile.of(fake.stacks { { "[200] > a", 1 } }, {}).tree)
    assert.equal("reason 200", list[1].reason)
  end)

  it("tell how many stacks only frame pointers prove", function()
    local cap = fake.stacks { { "main > a", 2 }, { "main > b", 3 } }
    cap.arrays["locations.evidence"][1] = 2
    assert.equal(2000, profile.of(cap, {}).frame_pointer_weight)
  end)
end)

describe("row loops stay compiled:", function()
  -- A tree as real ones are: several children, several frames a location, shared keys.
  local stacks, locations = 40000, 500
  local parent, location = ffi.new("uint32_t[?]", stacks), ffi.new("uint32_t[?]", stacks)
  local ends_of, start = ffi.new("uint8_t[?]", stacks), ffi.new("uint32_t[?]", locations + 1)
  local frame = ffi.new("uint32_t[?]", locations * 3)
  for l = 0, locations - 1 do
    start[l + 1] = start[l] + 1 + l % 3
    for f = start[l], start[l + 1] - 1 do frame[f] = (l * 7 + f) % 300 end
  end
  for i = 0, stacks - 1 do
    parent[i], location[i] = i < 4 and NONE or math.floor(i / 3), i * 31 % locations
    ends_of[i] = i < 4 and 1 + i or 0
    if i < 4 then location[i] = NONE end
  end
  local most = tree._most_nodes(location, stacks, start)
  local parents, node_keys = ffi.new("uint32_t[?]", most), ffi.new("uint32_t[?]", most)
  local room = 262144
  local only = ffi.new("uint32_t[?]", most)
  local slots, node_of = ffi.new("uint32_t[?]", room), ffi.new("uint32_t[?]", stacks)

  local function merge()
    ffi.fill(slots, room * 4)
    ffi.fill(only, most * 4)
    return tree._merge(parent, location, ends_of, stacks, start, frame, parents, node_keys, only,
      slots, room - 1, room, node_of)
  end

  it("most_nodes", function()
    assert.same({}, helper.interpreted(tree._most_nodes, location, stacks, start))
  end)

  it("merge", function()
    ffi.fill(slots, room * 4)
    ffi.fill(only, most * 4)
    assert.same({}, helper.interpreted(tree._merge, parent, location, ends_of, stacks, start, frame,
      parents, node_keys, only, slots, room - 1, room, node_of))
  end)

  it("those of samples", function()
    local rows = 30000
    local stack, weight = ffi.new("uint32_t[?]", rows), ffi.new("uint64_t[?]", rows)
    local source, keep = ffi.new("uint8_t[?]", rows), ffi.new("uint8_t[?]", rows)
    for i = 0, rows - 1 do
      stack[i], weight[i], source[i] = i * 17 % stacks, 1000, i % 5 == 0 and 1 or 0
      keep[i] = i % 3
    end
    local out = ffi.new("double[?]", stacks)
    assert.same({}, helper.interpreted(samples._add, stack, weight, source, rows, 0, out))
    assert.same({}, helper.interpreted(samples._add_kept, stack, weight, source, rows, 0, keep,
      out))
    assert.same({}, helper.interpreted(samples.sum, out, 0, stacks))
  end)

  it("add_weights, add_up, link and sum", function()
    local count = merge()
    local weight = ffi.new("double[?]", stacks, 1)
    local self = ffi.new("double[?]", count)
    assert.same({}, helper.interpreted(tree._add_weights, weight, stacks, node_of, self))
    assert.same({}, helper.interpreted(tree._add_up, parents, count, self))
    assert.same({}, helper.interpreted(tree._sum, self, 0, count))
    local first, next_one = ffi.new("uint32_t[?]", count), ffi.new("uint32_t[?]", count)
    assert.same({}, helper.interpreted(tree._link, parents, count, first, next_one))
    local marks = ffi.new("uint8_t[?]", stacks)
    local evidence = ffi.new("uint8_t[?]", locations)
    evidence[3] = 2
    assert.same({}, helper.interpreted(ends._mark, parent, location, evidence, stacks, marks))
    assert.same({}, helper.interpreted(ends._weigh_marked, weight, stacks, node_of, marks))
  end)

  it("those of costs", function()
    local count = merge()
    local self, total = ffi.new("double[?]", count, 1), ffi.new("double[?]", count, 1)
    local order, nodes, past = tree.preorder { parent = parents, count = count }
    local events = tree.events { parent = parents, count = count }
    assert.equal(2 * nodes, select(2, tree.events { parent = parents, count = count }))
    local map, mark = ffi.new("uint32_t[?]", 300), ffi.new("uint8_t[?]", count)
    for key = 0, 299 do map[key] = key end
    local out, on_path = ffi.new("double[?]", 300), ffi.new("uint32_t[?]", 300)
    assert.same({}, helper.interpreted(costs._add_self, node_keys, map, self, count, out))
    assert.same({}, helper.interpreted(costs._mark_outermost, order, past, nodes, node_keys,
      map, on_path, mark))
    local size, at = ffi.new("uint32_t[?]", count), ffi.new("uint32_t[?]", count)
    assert.same({}, helper.interpreted(tree._count_below, parents, count, size))
    ffi.fill(size, count * 4)
    tree._count_below(parents, count, size)
    -- Each run goes on where the one before ended.
    assert.same({}, helper.interpreted(tree._place_nodes, parents, count, size, at,
      ffi.new("uint32_t[?]", count * 8)))
    ffi.fill(at, count * 4)
    assert.is_true(events[0] % 2 == 0)
    assert.same({}, helper.interpreted(tree._place_events, parents, count, size, at,
      ffi.new("uint32_t[?]", count * 8)))
    assert.same({}, helper.interpreted(costs._add_totals, node_keys, map, total, mark, count,
      out))
  end)

  it("those of keys", function()
    local lines = 9000
    local of, depth = ffi.new("uint32_t[?]", lines), ffi.new("uint32_t[?]", lines)
    local key, kind = ffi.new("uint32_t[?]", lines), ffi.new("uint8_t[?]", 5000)
    for i = 0, lines - 1 do of[i], depth[i] = math.floor(i / 3), i % 3 end
    local starts = ffi.new("uint32_t[?]", 5001)
    assert.same({}, helper.interpreted(keys._count_frames, of, lines, kind, 5000, starts))
    for l = 0, 5000 do starts[l] = l < 3000 and 3 or 1 end
    starts[0] = 0
    assert.same({}, helper.interpreted(keys._add_up, ffi.new("uint32_t[?]", 5001), 5000))
    keys._add_up(starts, 5000)
    local frames = ffi.new("uint32_t[?]", starts[5000] + 1)
    assert.same({}, helper.interpreted(keys._fill_frames, of, depth, key, lines, kind, starts,
      frames))
    local ref = ffi.new("uint32_t[?]", 20000)
    assert.same({}, helper.interpreted(keys._fill_places, kind, 5000, starts, frames, ref, 10))
  end)
end)
