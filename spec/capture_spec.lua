-- capture_spec.lua - the Lua view of a capture.

local ffi = require("ffi")

local capture = require("microscope.capture")
local helper = require("spec.helper")

-- A global of a spec is looked up through busted's environment: in a row loop, a local.
local tonumber = tonumber

-- A row loop as a query would write it.
local function add_up(rows, stack, weight, total)
  for i = 0, rows - 1 do
    local id = stack[i]
    total[id] = total[id] + tonumber(weight[i])
  end
end

describe("capture", function()
  local folder, path, cap
  local SAMPLES = 200000 -- four blocks

  setup(function()
    folder = helper.folder()
    path = folder .. "/a.usprof"
    assert(capture.generate { path = path, samples = SAMPLES, stacks = 500, functions = 200,
      period_ns = 1000 })
    cap = assert(capture.open(path))
  end)

  teardown(function()
    cap:close()
    helper.remove(folder)
  end)

  it("lists every table and column with its type, unit and reference", function()
    local tables = capture.tables()
    assert.equal("string_bytes", tables[1])
    for _, name in ipairs(tables) do
      assert.is_string(capture.table_doc(name))
      local columns = cap:columns(name)
      assert.is_true(#columns > 0)
      for _, column in ipairs(columns) do
        assert.matches("^u%d+$", column.type)
        assert.equal(cap:rows(name), column.rows)
        assert.equal(column.unit == "id" or column.unit == "enum", column.ref ~= nil)
      end
    end
    local parent = assert(cap:column("stacks", "parent"))
    assert.same({ "u32", "id", "stacks", true },
      { parent.type, parent.unit, parent.ref, parent.optional })
  end)

  it("gives strings whole, in pieces and where they are", function()
    local made = require("spec.support.made")
    local long = ("0123456789abcdef"):rep(8192) .. "end" -- twice 64 KiB, and 3
    made.capture(folder .. "/long.usprof", { samples = { { "work" } }, meta = { long = long } })
    assert(capture.with(folder .. "/long.usprof", function(long_cap)
      local pieces, value = {}, long_cap:array("meta", "value")[0]
      for piece in long_cap:pieces(value) do pieces[#pieces + 1] = piece end
      assert.same({ 65536, 65536, 3 }, { #pieces[1], #pieces[2], #pieces[3] })
      assert.equal(long, table.concat(pieces))
      assert.equal(long, long_cap:string(value))
      local bytes, size = long_cap:bytes(value)
      assert.equal(long, ffi.string(bytes, size))
      assert.is_nil(long_cap:bytes(capture.NONE))
      assert.is_nil(long_cap:pieces(capture.NONE)())
      assert.equal(#long, long_cap:size(value))
      assert.equal(0, long_cap:size(capture.NONE))
      return true
    end))
  end)

  it("tells whether strings have the same bytes, and gives facts by name", function()
    local made = require("spec.support.made")
    local long = ("x"):rep(70000)
    made.capture(folder .. "/facts.usprof", { samples = { { "work" } },
      meta = { a = long .. "1", b = long .. "2", c = "short" } })
    assert(capture.with(folder .. "/facts.usprof", function(facts)
      local a, b, c = facts:fact("a"), facts:fact("b"), facts:fact("c")
      assert.equal(long .. "1", facts:string(a))
      assert.equal("short", facts:string(c))
      assert.is_nil(facts:fact("none"))
      assert.has_error(function() facts:fact(1) end)
      assert.is_true(facts:same(a, a))
      assert.is_false(facts:same(a, b))
      assert.is_false(facts:same(a, c))
      assert.is_false(facts:same(a, capture.NONE))
      return true
    end))
  end)

  it("gives the same rows by block and in one piece", function()
    local whole, rows = cap:array("samples", "time_ns")
    assert.equal(SAMPLES, rows)
    local seen, blocks = 0, 0
    for count, data, first in assert(cap:column("samples", "time_ns")):blocks() do
      assert.equal(seen, first)
      assert.equal(whole[first], data[0])
      assert.equal(whole[first + count - 1], data[count - 1])
      seen, blocks = seen + count, blocks + 1
    end
    assert.equal(SAMPLES, seen)
    assert.equal(4, blocks)
  end)

  it("takes blocks of several columns at once", function()
    local total = ffi.new("double[?]", cap:rows("stacks"))
    for rows, stack, weight in cap:blocks("samples", "stack", "weight") do
      add_up(rows, stack, weight, total)
    end
    local sum = 0
    for i = 0, cap:rows("stacks") - 1 do sum = sum + total[i] end
    assert.equal(SAMPLES * 1000, sum)
    assert.has_error(function() cap:blocks("samples", "nothing") end,
      "table samples has no column nothing")
    assert.has_error(function() cap:blocks("samples") end, "blocks: name at least one column")
  end)

  it("takes short tables and absent ones", function()
    local small = folder .. "/small.usprof"
    assert(capture.generate { path = small, samples = 1, stacks = 1 })
    assert.equal("1 1", capture.with(small, function(c)
      local blocks, rows = 0, 0
      for count in c:blocks("samples", "cpu") do blocks, rows = blocks + 1, rows + count end
      return blocks .. " " .. rows
    end))
    assert.error_matches(function() cap:rows("nothing") end, "^rows: there is no table 'nothing'$")
    for _, name in ipairs(capture.tables()) do assert.is_true(cap:rows(name) >= 0, name) end
    local column, err = cap:column("nothing", "x")
    assert.is_nil(column)
    assert.equal("ENOENT", err.code)
  end)

  it("gives strings by id", function()
    local name = cap:array("sources", "name")[0]
    assert.equal("cpu-clock", cap:string(name))
    assert.equal("", cap:string(0))
    assert.is_nil(cap:string(capture.NONE))
    assert.is_nil(cap:string(cap:rows("strings")))
    assert.has_error(function() cap:string("x") end, "string: not an id")
    assert.equal("generated", cap:meta().host)
    assert.equal("0", cap:settings().seed)
  end)

  it("walks stacks to their roots", function()
    local parent, location = cap:array("stacks", "parent"), cap:array("stacks", "location")
    local id = cap:array("samples", "stack")[0]
    local frames, ending = cap:stack(id)
    local n = 0
    while parent[id] ~= capture.NONE do
      n = n + 1
      assert.equal(location[id], frames[n])
      id = parent[id]
    end
    assert.equal(n, #frames)
    assert.equal(cap:array("stacks", "end")[id], ending)
    assert.is_nil(cap:stack(capture.NONE))
    assert.has_error(function() cap:stack(cap:rows("stacks")) end, "stack: not an id")
  end)

  it("has words for enums and ends", function()
    assert.equal("records", capture.enum("mic_loss", 1))
    assert.is_nil(capture.enum("mic_loss", 99))
    assert.is_nil(capture.enum("mic_nothing", 0))
    assert.equal("outermost frame", capture.ending(1).text)
    assert.matches("stack%-bytes", capture.ending(3).advice)
    assert.is_nil(capture.ending(0))
    assert.equal("unknown reason 200", capture.ending(200).text)
  end)

  it("names every value of every enum of a column", function()
    for _, name in ipairs(capture.tables()) do
      for _, column in ipairs(cap:columns(name)) do
        if column.unit == "enum" then
          for i = 0, math.min(column.rows, 100) - 1 do
            assert.is_string(capture.enum(column.ref, column.data[i]))
          end
        end
      end
    end
  end)

  it("refuses a closed capture instead of reading freed memory", function()
    local other = assert(capture.open(path))
    other:close()
    other:close()
    for _, method in ipairs { "column", "columns", "rows", "string", "stack", "meta", "settings",
      "info" } do
      assert.error_matches(function() other[method](other, "samples", "cpu") end,
        "the capture is closed$")
    end
  end)

  it("closes in `with` also when the function raises", function()
    local kept
    assert.has_error(function()
      capture.with(path, function(c)
        kept = c
        error("no", 0)
      end)
    end, "no")
    assert.error_matches(function() kept:rows("samples") end, "closed")
    assert.same({ 1, 2 }, { capture.with(path, function() return 1, 2 end) })
  end)

  it("says what is wrong with a damaged file, and where", function()
    local text = helper.read(path)
    local bad = folder .. "/bad.usprof"
    helper.write(bad, text:sub(1, -2))
    local got, err = capture.open(bad)
    assert.is_nil(got)
    assert.equal("EFORMAT", err.code)
    assert.equal(#text - 1, err.offset)
    assert.matches("record again or copy it again", tostring(err))
    helper.write(bad, text:sub(1, 64) .. "\255" .. text:sub(66))
    got, err = capture.open(bad)
    assert.is_nil(got)
    assert.matches("^samples%.time_ns, block at byte 64: its checksum is wrong", tostring(err))
    assert.is_nil((capture.with(folder .. "/none", function() end)))
  end)

  it("generates the same bytes from the same options", function()
    local twin = folder .. "/twin.usprof"
    assert(capture.generate { path = twin, samples = SAMPLES, stacks = 500, functions = 200,
      period_ns = 1000 })
    assert.is_true(helper.read(path) == helper.read(twin))
    local ok, err = capture.generate { path = twin, depth_max = 1 }
    assert.is_nil(ok)
    assert.equal("EARG", err.code)
  end)

  it("keeps row loops over its columns compiled", function()
    local total = ffi.new("double[?]", cap:rows("stacks"))
    local _, stack = assert(cap:column("samples", "stack")):blocks()()
    local rows, weight = assert(cap:column("samples", "weight")):blocks()()
    assert.same({}, helper.interpreted(add_up, rows, stack, weight, total))
  end)

  it("keeps the stack walk compiled", function()
    local rows = 5000
    local parent, location = ffi.new("uint32_t[?]", rows), ffi.new("uint32_t[?]", rows)
    for i = 0, rows - 1 do parent[i], location[i] = i == 0 and capture.NONE or i - 1, i end
    local out = {}
    assert.same({}, helper.interpreted(capture._walk, parent, location, rows - 1, out))
    assert.equal(rows - 1, #out)
  end)
end)

describe("capture.lua", function()
  it("documents every public function", function()
    local previous
    for line in io.lines(helper.root .. "/lua/microscope/capture.lua") do
      local name = line:match("^function ([%w_.:]+)")
      if name then assert(previous:match("^%-%-"), name .. " has no comment") end
      previous = line
    end
  end)
end)
