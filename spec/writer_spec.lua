-- Captures written from Lua: by rows and in bulk, right and wrong.

local ffi = require("ffi")

local capture = require("microscope.capture")
local helper = require("spec.helper")
local writer = require("microscope.writer")

describe("writer", function()
  local folder, path

  before_each(function()
    folder = helper.folder()
    path = folder .. "/out.usprof"
  end)
  after_each(function() helper.remove(folder) end)

  -- A process with a thread, a source and one root stack.
  local function basics(w)
    local empty = w:string("")
    w:row("sources", { name = w:string("cpu"), unit = "cpu_ns", period = 1000 })
    w:row("processes", { pid = 7, name = w:string("seven"), cgroup = empty })
    w:row("threads", { process = 0, tid = 7, name = w:string("seven") })
    w:row("stacks", { ["end"] = "OUTERMOST" })
  end

  it("writes rows one by one", function()
    assert(writer.with(path, function(w)
      basics(w)
      for i = 0, 2999 do
        assert.equal(i, w:row("samples", { time_ns = i, stack = 0, weight = 2 ^ 40 + i }))
      end
      assert.equal(3000, w:count("samples"))
    end))
    assert(capture.with(path, function(cap)
      assert.equal(3000, cap:rows("samples"))
      assert.equal(2 ^ 40 + 2999, tonumber(cap:array("samples", "weight")[2999]))
      assert.equal(capture.NONE, cap:array("processes", "parent")[0])
      assert.equal("seven", cap:string(cap:array("threads", "name")[0]))
      return true
    end))
  end)

  it("writes many rows at once, in order with single ones", function()
    local n = 200000
    local times, stacks = ffi.new("uint64_t[?]", n), ffi.new("uint32_t[?]", n)
    for i = 0, n - 1 do times[i] = i end
    assert(writer.with(path, function(w)
      basics(w)
      w:row("samples", { time_ns = 5 })
      assert.equal(1, w:rows("samples", n, { time_ns = times, stack = stacks }))
      assert.equal(n + 1, w:row("samples", { time_ns = 6 }))
    end))
    assert(capture.with(path, function(cap)
      local time_ns = cap:array("samples", "time_ns")
      assert.equal(5, tonumber(time_ns[0]))
      assert.equal(n - 1, tonumber(time_ns[n]))
      assert.equal(6, tonumber(time_ns[n + 1]))
      return true
    end))
  end)

  it("keeps the bytes of strings and gives equal ones one id", function()
    assert(writer.with(path, function(w)
      assert.equal(0, w:string(""))
      local id = w:string("a\0b\255")
      assert.equal(id, w:string("a\0b\255"))
      w:row("meta", { key = id, value = id })
    end))
    assert(capture.with(path, function(cap)
      assert.equal("a\0b\255", cap:string(cap:array("meta", "key")[0]))
      return true
    end))
  end)

  it("refuses rows that break the format's rules, and leaves no file", function()
    local ok, err = writer.with(path, function(w)
      basics(w)
      w:row("samples", { stack = 9 })
    end)
    assert.is_nil(ok)
    assert.equal("EFORMAT", err.code)
    assert.matches("samples.stack, row 0, .*9 is no row of stacks", err.message)
    assert.is_nil(err.message:find("damaged", 1, true))
    assert.is_nil(io.open(path))
    assert.equal("", (helper.run("ls " .. helper.quote(folder))))
  end)

  it("refuses what no column can hold", function()
    local w = assert(writer.open(path))
    for _, case in ipairs {
      { "samples", { cpu = 65536 }, "cpu cannot be 65536" },
      { "samples", { cpu = -1 }, "cpu cannot be %-1" },
      { "samples", { weight = 0.5 }, "weight cannot be 0.5" },
      { "samples", { weight = 0 / 0 }, "weight cannot be" },
      { "samples", { source = "cpu" }, "source cannot be cpu" },
      { "sources", { unit = "parsecs" }, "unit cannot be parsecs" },
      { "samples", { colour = 1 }, "samples has no column colour" },
      { "nothing", {}, "there is no table nothing" },
      { "strings", {}, "strings are added one by one", true },
    } do
      local ok, err = pcall(function()
        w:row(case[1], case[2])
        w:handle()
      end)
      assert.is_false(ok)
      assert.matches(case[3], tostring(err))
      if case[4] then w._pending[case[1]] = nil end
    end
    assert.has_error(function() w:rows("samples", 4, { stack = ffi.new("uint64_t[4]") }) end,
      "samples.stack takes an array of u32")
    assert.has_error(function() w:rows("samples", 5, { stack = ffi.new("uint32_t[4]") }) end,
      "samples.stack: the array has fewer than 5 values")
    w:discard()
    w:discard()
    assert.has_error(function() w:row("samples", {}) end, "row: the writer is closed")
    assert.has_error(function() w:string("") end, "string: the writer is closed")
    assert.is_nil(io.open(path))
  end)

  it("discards when the function raises or says false", function()
    assert.has_error(function() writer.with(path, function() error("no", 0) end) end, "no")
    local ok, why = writer.with(path, function() return false, "because" end)
    assert.is_nil(ok)
    assert.equal("because", why)
    assert.equal("", (helper.run("ls " .. helper.quote(folder))))
  end)

  it("copies any capture", function()
    local from = folder .. "/from.usprof"
    assert(capture.generate { path = from, samples = 70000, stacks = 300, functions = 100 })
    assert(capture.with(from, function(cap)
      return writer.with(path, function(w)
        for id = 0, cap:rows("strings") - 1 do assert.equal(id, w:string(cap:string(id))) end
        for _, name in ipairs(capture.tables()) do
          if name ~= "strings" and name ~= "string_bytes" then
            local columns = {}
            for _, column in ipairs(cap:columns(name)) do columns[column.name] = column.data end
            w:rows(name, cap:rows(name), columns)
          end
        end
      end)
    end))
    -- The same rows give the same tables, if not blocks in the same order.
    local sizes = helper.run("stat -c %s from.usprof out.usprof", folder)
    local one, other = sizes:match("(%d+)\n(%d+)")
    assert.equal(one, other)
  end)
end)
