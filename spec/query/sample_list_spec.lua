local ffi = require("ffi")

local capture = require("microscope.capture")
local helper = require("spec.helper")
local list_query = require("microscope.query.sample_list")
local summary = require("microscope.query.summary")

local function columns_of(rows, seed)
  math.randomseed(seed)
  local c = { time = ffi.new("uint64_t[?]", rows), thread = ffi.new("uint32_t[?]", rows),
    cpu = ffi.new("uint16_t[?]", rows), stack = ffi.new("uint32_t[?]", rows),
    weight = ffi.new("uint64_t[?]", rows) }
  for i = 0, rows - 1 do
    c.time[i], c.thread[i] = math.random(rows), math.random(3)
    c.cpu[i], c.stack[i], c.weight[i] = math.random(2), math.random(4), math.random(2)
  end
  return c
end

describe("the list of samples", function()
  local folder, path

  setup(function()
    folder = helper.folder()
    path = folder .. "/a"
    assert(capture.generate { path = path, samples = 5000, stacks = 50, threads = 3, seed = 2 })
  end)

  teardown(function() helper.remove(folder) end)

  it("is in order of time, with all samples once", function()
    capture.with(path, function(cap)
      local seen, last = {}, -1
      for s in list_query.each(list_query.of(cap, summary.cpu_source(cap))) do
        assert.is_true(s.time_ns >= last)
        last = s.time_ns
        assert.is_nil(seen[s.row])
        seen[s.row] = true
        assert.equal(cap:array("threads", "tid")[s.thread], s.tid)
      end
      local count = 0
      for _ in pairs(seen) do count = count + 1 end
      assert.equal(5000, count)
    end)
  end)

  it("walks stacks from the innermost frame to their end", function()
    capture.with(path, function(cap)
      local list = list_query.of(cap, summary.cpu_source(cap))
      for s in list_query.each(list) do
        local locations, ending = cap:stack(s.stack)
        local walked = {}
        assert.equal(ending, list_query.walk(list, s.stack, function(l)
          walked[#walked + 1] = l
        end))
        assert.same(locations, walked)
      end
    end)
  end)

  it("sorts rows of any order as a plain sort does", function()
    for seed, rows in ipairs { 1, 2, 15, 16, 17, 33, 100, 1000, 4097 } do
      local c = columns_of(rows, seed)
      local function less(a, b)
        for _, name in ipairs { "time", "thread", "cpu", "stack", "weight" } do
          if c[name][a] ~= c[name][b] then return c[name][a] < c[name][b] end
        end
        return false
      end
      local order = list_query._order_of(c, rows)
      local taken = {}
      for i = 0, rows - 1 do
        local row = order and order[i] or i
        assert.is_nil(taken[row])
        taken[row] = true
        if i > 0 then assert.is_false(less(row, order and order[i - 1] or i - 1)) end
      end
    end
  end)

  it("is sorted in loops that stay compiled", function()
    local rows = 30000
    local c = columns_of(rows, 7)
    local index, other = ffi.new("uint32_t[?]", rows), ffi.new("uint32_t[?]", rows)
    for i = 0, rows - 1 do index[i] = i end
    local ascending = ffi.new("uint64_t[?]", rows)
    for i = 0, rows - 1 do ascending[i] = i end
    assert.same({}, helper.interpreted(list_query._first_disorder, ascending, rows))
    assert.same({}, helper.interpreted(list_query._merge_runs, c, index, other, 0, rows / 2, rows))
  end)
end)
