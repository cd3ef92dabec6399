-- A folder of captures read as one.

local helper = require("spec.helper")
local made = require("spec.support.made")
local microscope = require("microscope")

describe("a folder of captures", function()
  local folder

  before_each(function()
    folder = helper.folder()
    os.execute("mkdir " .. helper.quote(folder .. "/all"))
  end)
  after_each(function() helper.remove(folder) end)

  local function segment(name, t) return made.capture(folder .. "/all/" .. name .. ".usprof", t) end

  local function open()
    local cap = assert(microscope.open(folder .. "/all"))
    finally(function() cap:close() end)
    return cap
  end

  -- A table's column as a list of numbers.
  local function list(cap, tab, column)
    local out, data = {}, cap:array(tab, column)
    for i = 0, cap:rows(tab) - 1 do out[i + 1] = tonumber(data[i]) end
    return out
  end

  local NEVER = tonumber(0xffffffffffffffffULL)

  it("has all samples on one axis of time, in the order of the clocks", function()
    -- Names say nothing of the order.
    segment("b", { monotonic_ns = 10e9, realtime_ns = 1e18, duration_ns = 1e9,
      samples = { { "main > work", n = 2, at = 1e8, every = 1e8 } } })
    segment("a", { monotonic_ns = 11e9, realtime_ns = 1e18 + 1e9, duration_ns = 5e8,
      samples = { { "main > work", n = 1, at = 0 }, { "main > rest", at = 3e8 } } })
    local cap = open()
    assert.same({ 1e8, 2e8, 1e9, 1.3e9 }, list(cap, "samples", "time_ns"))
    assert.same({ 10e9 }, list(cap, "clocks", "monotonic_ns"))
    assert.same({ 1.5e9 }, list(cap, "clocks", "duration_ns"))
    local meta = cap:meta()
    assert.same({ "2", "0" }, { meta.segments, meta.gap_ns })
    assert.equal(0, cap:rows("problems"))
    -- A block for each segment: rows are pulled as they were written.
    local blocks = {}
    for rows in cap:blocks("samples", "stack") do blocks[#blocks + 1] = rows end
    assert.same({ 2, 2 }, blocks)
  end)

  it("keeps what is the same once: the profile is that of all samples", function()
    for i = 1, 3 do
      segment("s" .. i, { monotonic_ns = i * 1e9, samples = { { "main > work > leaf", n = i },
        { "main > only" .. i }, { "[3] > cut" } } })
    end
    local cap = open()
    assert.equal(1, cap:rows("modules"))
    assert.equal(1, cap:rows("sources"))
    local keys = microscope.keys(cap)
    local tree = microscope.tree(cap, keys)
    local costs = microscope.costs(tree, keys)
    local function total(name)
      return costs.total_count[microscope.match(cap, keys, name, { one = true }).keys[1]]
    end
    assert.same({ 9, 6, 6, 3 }, { total("main"), total("work"), total("leaf"), total("cut") })
    assert.equal(1, total("only2"))
    assert.equal(12, tree.samples)
  end)

  it("equals a capture of its only segment", function()
    assert(microscope.generate { path = folder .. "/all/x.usprof", samples = 5000, stacks = 300,
      functions = 100, seed = 9 })
    local one = assert(microscope.open(folder .. "/all/x.usprof"))
    local all = open()
    for _, tab in ipairs(microscope.tables()) do
      if tab ~= "meta" and tab ~= "strings" and tab ~= "string_bytes" then
        for _, column in ipairs(one:columns(tab)) do
          if column.ref ~= "strings" then
            assert.same(list(one, tab, column.name), list(all, tab, column.name),
              tab .. "." .. column.name)
          end
        end
      end
    end
    local function report(path)
      return (helper.microscope("report --lines --tree --format json " .. path, folder)
        :gsub('"meta":%b{}', ""))
    end
    assert.equal(report("all/x.usprof"), report("all"))
    one:close()
  end)

  it("follows a process and its threads from one segment to the next", function()
    segment("1", { monotonic_ns = 1e9, duration_ns = 1e9,
      processes = { { pid = 100, name = "sh", start_ns = 1e8 }, { pid = 200, parent = 0 } },
      threads = { { tid = 100, name = "sh", start_ns = 1e8 }, { tid = 200, process = 1 },
        { tid = 201, process = 1, start_ns = 5e8, end_ns = 6e8 } },
      samples = { { "main", thread = 1 } } })
    segment("2", { monotonic_ns = 2e9, duration_ns = 1e9,
      processes = { { pid = 200 }, { pid = 100, name = "server", end_ns = 3e8 },
        { pid = 300, start_ns = 4e8 } },
      threads = { { tid = 200 }, { tid = 100, process = 1, name = "server", end_ns = 3e8 },
        { tid = 201, start_ns = 7e8 }, { tid = 300, process = 2, start_ns = 4e8 } },
      samples = { { "main", thread = 0 }, { "main", thread = 3 } } })
    local cap = open()
    assert.same({ 100, 200, 300 }, list(cap, "processes", "pid"))
    assert.same({ 1e8, 0, 1.4e9 }, list(cap, "processes", "start_ns"))
    assert.same({ 1.3e9, NEVER, NEVER }, list(cap, "processes", "end_ns"))
    assert.equal("server", microscope.processes(cap)[1].name)
    assert.equal(0, microscope.processes(cap)[2].parent)
    assert.same({ 100, 200, 201, 201, 300 }, list(cap, "threads", "tid"))
    assert.same({ 6e8, 1.7e9 }, { list(cap, "threads", "end_ns")[3],
      list(cap, "threads", "start_ns")[4] })
    assert.same({ 1, 1, 4 }, list(cap, "samples", "thread"))
  end)

  it("takes an id that begins anew, or comes back under another name, for another", function()
    local function thread(name, start_ns)
      return { processes = { { pid = 7, name = name, start_ns = start_ns } },
        threads = { { tid = 7, name = name, start_ns = start_ns } }, samples = { { "main" } },
        duration_ns = 1e9 }
    end
    local t = thread("one", 0)
    t.monotonic_ns = 1e9
    segment("1", t)
    t = thread("one", 5e8) -- began in this segment
    t.monotonic_ns = 2e9
    segment("2", t)
    t = thread("two", 0) -- seven seconds later, another name
    t.monotonic_ns = 10e9
    segment("3", t)
    t = thread("two", 0) -- seven seconds later, the same name
    t.monotonic_ns = 18e9
    segment("4", t)
    local cap = open()
    assert.same({ 7, 7, 7 }, list(cap, "threads", "tid"))
    assert.same({ 1.5e9, 9e9, NEVER }, list(cap, "threads", "end_ns"))
    assert.same({ 0, 1, 2, 2 }, list(cap, "samples", "thread"))
    assert.equal("14000000000", cap:meta().gap_ns)
    assert.matches("gaps of a second and more", microscope.summary(cap).problems[1].text)
  end)

  it("places other boots by the wall clock, and says so", function()
    segment("1", { monotonic_ns = 500e9, realtime_ns = 1e18, duration_ns = 1e9, boot = "first",
      samples = { { "main", at = 5 } } })
    segment("2", { monotonic_ns = 3e9, realtime_ns = 1e18 + 60e9, duration_ns = 1e9,
      boot = "second", samples = { { "main", at = 7 } } })
    local cap = open()
    assert.same({ 5, 60e9 + 7 }, list(cap, "samples", "time_ns"))
    assert.matches("several boots", microscope.summary(cap).problems[1].text)
    assert.equal(2, cap:rows("threads"))
  end)

  it("takes captures that name no boot, as imported ones, for several machines'", function()
    for i = 1, 2 do
      segment(tostring(i), { monotonic_ns = 5e9, realtime_ns = 1e18 + i * 1e9, duration_ns = 1e9,
        boot = "", processes = { { pid = 7, name = "same" } },
        threads = { { tid = 7, name = "same" } }, samples = { { "main", at = 5 } } })
    end
    local cap = open()
    assert.equal(2, cap:rows("processes"))
    assert.equal(2, cap:rows("threads"))
    assert.same({ 5, 1e9 + 5 }, list(cap, "samples", "time_ns"))
  end)

  it("says of several periods that they are several sources", function()
    segment("1", { samples = { { "main" } } })
    segment("2", { monotonic_ns = 2e9, period = 2e6, samples = { { "main" } } })
    local cap = open()
    assert.equal(2, cap:rows("sources"))
    assert.matches("several periods", microscope.summary(cap).problems[1].text)
  end)

  it("leaves out what cannot be read, and says which and why", function()
    segment("good", { samples = { { "main", n = 4 } } })
    local bytes = helper.read(segment("half", { samples = { { "main" } } }))
    helper.write(folder .. "/all/half.usprof", bytes:sub(1, #bytes / 2))
    helper.write(folder .. "/all/empty.usprof", "")
    helper.write(folder .. "/all/x.usprof.tmp.123", "not yet a segment")
    os.execute("ln -s gone " .. helper.quote(folder .. "/all/gone.usprof"))
    os.execute("mkdir " .. helper.quote(folder .. "/all/folder.usprof"))
    local out, err, status = helper.microscope("report all", folder)
    assert.same({ "", 0 }, { err, status })
    assert.matches("4 samples", out)
    out = out:gsub("\n    ", " ")
    for _, name in ipairs { "half", "empty", "gone", "folder" } do
      assert.matches("problem: segment " .. name .. ".usprof is left out: ", out)
    end
    assert.not_matches("tmp", out)
  end)

  it("without one that can be read is an error", function()
    local _, err = microscope.open(folder .. "/all")
    assert.matches("there is no capture %(NAME.usprof%) in ", tostring(err))
    helper.write(folder .. "/all/a.usprof", "x")
    _, err = microscope.open(folder .. "/all")
    assert.matches("none of the 1 captures in .* can be read", tostring(err))
  end)

  it("survives hostile clocks: an error or a capture, never worse", function()
    local most = 0xfffffffffffffff0ULL
    segment("1", { monotonic_ns = most, realtime_ns = 5, duration_ns = most,
      threads = { { tid = 1, start_ns = most, end_ns = most } },
      samples = { { "main", at = most } } })
    segment("2", { monotonic_ns = 1, realtime_ns = most, duration_ns = most,
      threads = { { tid = 1, start_ns = 0, end_ns = 3 } }, samples = { { "main", at = most } } })
    segment("3", { monotonic_ns = 0, realtime_ns = 0, duration_ns = 0,
      threads = { { tid = 1, start_ns = 0 } }, samples = { { "main", at = 1 } } })
    local cap, err = microscope.open(folder .. "/all")
    assert.is_truthy(cap or err)
    if cap then
      assert.equal(3, cap:rows("samples"))
      cap:close()
    end
  end)
end)
