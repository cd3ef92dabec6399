local ffi = require("ffi")

local capture = require("microscope.capture")
local helper = require("spec.helper")
local keys = require("microscope.query.keys")
local profile = require("microscope.query.profile")
local where = require("microscope.query.where")

-- A tree in one line.
local function show(ast)
  if ast.op == "not" then return "not(" .. show(ast[1]) .. ")" end
  if ast.op ~= "test" then return ("%s(%s, %s)"):format(ast.op, show(ast[1]), show(ast[2])) end
  local value = ast.value
  if type(value) == "table" then value = ("%.0f..%.0f"):format(value[1], value[2]) end
  return (ast.scope ~= "any" and ast.scope .. " " or "") .. ast.field
    .. (ast.label and "." .. ast.label or "") .. ast.compare .. value
end

local function parsed(expression)
  local ast, err = where.parse(expression)
  return ast and show(ast) or where.explain(expression, err)
end

describe("the language of --where", function()
  it("binds not closest, then and, then or", function()
    assert.equal("or(and(cpu=1, not(cpu=2)), cpu=3)", parsed("cpu=1 and not cpu=2 or cpu=3"))
    assert.equal("and(cpu=1, not(or(cpu=2, cpu=3)))", parsed("cpu = 1 and not (cpu=2 or cpu=3)"))
    assert.equal("and(and(cpu=1, cpu=2), cpu=3)", parsed("cpu=1 and cpu=2 and cpu=3"))
    assert.equal("not(not(cpu=1))", parsed("not not cpu=1"))
  end)

  it("has words, quoted texts, numbers, times and ranges", function()
    assert.equal("thread=main", parsed("thread = main"))
    assert.equal("thread=a \"b\" c", parsed([[thread = "a \"b\" c"]]))
    assert.equal("thread=or", parsed("thread = 'or'"))
    assert.equal("thread=12", parsed("thread = 12"))
    assert.equal("time=2000000000..3500000000", parsed("time = 2s..3.5s"))
    assert.equal("time>=1500000", parsed("time >= 1.5ms"))
    assert.equal("time<20000", parsed("time < 20us"))
    assert.equal("time>7", parsed("time > 7ns"))
    assert.equal("cpu=0..3", parsed("cpu = 0..3"))
    assert.equal("module=/usr/lib/libc.so.6", parsed("module = /usr/lib/libc.so.6"))
    assert.equal("function~/a b/", parsed("function ~ /a b/"))
    assert.equal("not(function~x*)", parsed("function !~ x*"))
    assert.equal("not(label.route=/a)", parsed("label.route != /a"))
    assert.equal("label.odd name<5", parsed("label.'odd name' < 5"))
  end)

  it("knows where in the stack is meant", function()
    assert.equal("innermost function=f", parsed("innermost = f"))
    assert.equal("outermost function=f", parsed("outermost function = f"))
    assert.equal("innermost module~lib", parsed("innermost module ~ lib"))
  end)

  it("says what is wrong at its column", function()
    for expression, want in pairs {
      [""] = "^expected one of thread, .* %(column 1, at the end%)$",
      ["thread"] = "^expected = != .* %(column 7, at the end%)$",
      ["time > " .. ("9"):rep(400) .. "s"] = "is 2%^64 ns or more %(column 8, ",
      ["time = 1s..20000000000s"] = "^'20000000000s' is 2%^64 ns or more %(column 12, ",
      ["thread ="] = "^expected a value %(column 9, at the end%)$",
      ["thread = main x"] = "^expected 'and', 'or' or the end %(column 15, at 'x'%)$",
      ["(cpu = 1"] = "^expected '%)' %(column 9, at the end%)$",
      ["cpu = 1 and"] = "^expected one of .* %(column 12, at the end%)$",
      ["tread = 1"] = "^expected one of .* %(column 1, at 'tread = 1'%)$",
      ["thread > 5"] = "^thread takes = != ~ and !~ %(column 8, at '> 5'%)$",
      ["cpu ~ 3"] = "^cpu takes = != < <= > and >= %(column 5, at '~ 3'%)$",
      ["cpu = x"] = "^'x' is no whole number %(column 7, at 'x'%)$",
      ["time > 5"] = "^'5' is no time; .* %(column 8, at '5'%)$",
      ["time = 5s"] = "^time = takes a range, .* %(column 8, at '5s'%)$",
      ["time = 3s..2s"] = "ends before it begins %(column 8, at '3s..2s'%)$",
      ["time = 3s..2"] = "^'2' is no time; .* %(column 12, at '2'%)$",
      ["thread = 'ma"] = "^expected the closing ' %(column 13, at the end%)$",
      ["function ~ /(/"] = "is no regular expression: .* %(column 12, at '/%(/'%)$",
      ["label.x < y"] = "^'y' is no number %(column 11, at 'y'%)$",
    } do
      assert.matches(want, parsed(expression))
    end
  end)

  it("is not brought down by depth or length", function()
    assert.equal("it is too long, or nested too deeply (column 1, at '" .. ("("):rep(17) .. "...')",
      parsed(("("):rep(100000) .. "cpu=1" .. (")"):rep(100000)))
    assert.matches("^it has more than 60 tests", parsed(("cpu=1 or "):rep(60) .. "cpu=1"))
    assert.matches("^or%(or%(", parsed(("cpu=1 or "):rep(59) .. "cpu=1"))
  end)
end)

describe("a bound expression", function()
  local folder, cap

  setup(function()
    folder = helper.folder()
    assert(capture.generate { path = folder .. "/a", samples = 20000, stacks = 300, functions = 60,
      modules = 5, threads = 6, processes = 2, seed = 9 })
    cap = assert(capture.open(folder .. "/a"))
  end)

  teardown(function()
    cap:close()
    helper.remove(folder)
  end)

  -- Facts of a sample, asked one by one.
  local function facts_of(row)
    local k = keys.build(cap)
    local thread = cap:array("samples", "thread")[row]
    local process = cap:array("threads", "process")[thread]
    local out = { time = tonumber(cap:array("samples", "time_ns")[row]),
      cpu = cap:array("samples", "cpu")[row],
      thread = cap:string(cap:array("threads", "name")[thread]),
      tid = cap:array("threads", "tid")[thread],
      process = cap:string(cap:array("processes", "name")[process]),
      pid = cap:array("processes", "pid")[process], frames = {}, modules = {}, labels = {} }
    for _, l in ipairs((cap:stack(cap:array("samples", "stack")[row]))) do
      for f = k.start[l + 1] - 1, k.start[l], -1 do
        out.frames[#out.frames + 1] = keys.describe(cap, k, k.frame[f]).name
      end
      out.modules[#out.modules + 1] =
        cap:string(cap:array("modules", "name")[cap:array("locations", "module")[l]])
    end
    local sample, label = cap:array("sample_labels", "sample"), cap:array("sample_labels", "label")
    for i = 0, cap:rows("sample_labels") - 1 do
      if sample[i] == row then
        local key = cap:string(cap:array("labels", "key")[label[i]])
        out.labels[key] = cap:string(cap:array("labels", "text")[label[i]])
        if cap:array("labels", "kind")[label[i]] == 1 then
          out.labels[key] = tonumber(ffi.cast("int64_t",
            cap:array("labels", "number")[label[i]]))
        end
      end
    end
    return out
  end

  local function any(list, wanted)
    for _, item in ipairs(list) do
      if item == wanted then return true end
    end
    return false
  end

  it("chooses what asking each sample chooses", function()
    local some = {}
    for row = 0, 19999, 997 do some[row] = facts_of(row) end
    local frame = some[0].frames[2]
    local label, label_value = next(some[0].labels)
    for row = 0, 19999, 997 do
      if not label then label, label_value = next(some[row].labels) end
    end
    local quoted = ("'%s'"):format(frame)
    local cases = {
      ["thread = main"] = function(s) return s.thread == "main" end,
      ["thread ~ worker and cpu = 1..2"] = function(s)
        return s.thread:find("worker") ~= nil and (s.cpu == 1 or s.cpu == 2)
      end,
      ["thread = 1003 or cpu >= 3"] = function(s) return s.tid == 1003 or s.cpu >= 3 end,
      ["process = server-1"] = function(s) return s.process == "server-1" end,
      ["process != 1000"] = function(s) return s.pid ~= 1000 end,
      ["time = 1s..2.5s"] = function(s) return s.time >= 1e9 and s.time < 2.5e9 end,
      ["not time < 900ms"] = function(s) return s.time >= 9e8 end,
      ["function = " .. quoted] = function(s) return any(s.frames, frame) end,
      ["innermost = " .. quoted] = function(s) return s.frames[1] == frame end,
      ["outermost ~ /^part/"] = function(s) return s.frames[#s.frames]:find("^part") ~= nil end,
      ["module = libpart1.so.1"] = function(s) return any(s.modules, "libpart1.so.1") end,
      ["innermost module ~ lib*"] = function(s) return s.modules[1]:find("^lib") ~= nil end,
      ["outermost module = /usr/bin/generated"] = function(s)
        return s.modules[#s.modules] == "generated"
      end,
    }
    if type(label_value) == "string" then
      cases[("label.'%s' = '%s'"):format(label, label_value)] = function(s)
        return s.labels[label] == label_value
      end
    elseif label then
      cases[("label.'%s' >= 1"):format(label)] = function(s)
        return s.labels[label] ~= nil and s.labels[label] >= 1
      end
    end
    for expression, expected in pairs(cases) do
      local bound = assert(where.bind(cap, assert(where.parse(expression))))
      local keep = bound.filter(0, 20000)
      for row, facts in pairs(some) do
        assert.equal(expected(facts), keep[row] == 1, expression .. " of sample " .. row)
      end
      -- The same by blocks.
      local first, second = bound.filter(0, 5000)[4999], bound.filter(4999, 15001)[0]
      assert.equal(first, second)
    end
  end)

  it("leaves out the rest, by weight and in number", function()
    local all, some = profile.of(cap, {}), profile.of(cap, { where = "thread = main" })
    local rest = profile.of(cap, { where = "not thread = main" })
    assert.equal(all.recorded, some.recorded)
    assert.equal(all.tree.weight, some.tree.weight + rest.tree.weight)
    assert.equal(rest.tree.weight, some.steps[1].weight)
    assert.is_true(some.steps[1].removed)
  end)

  it("refuses functions and labels that are not there, with what is", function()
    local _, why = profile.of(cap, { where = "cpu = 1 and function = part0" })
    assert.matches("^no function 'part0'; near to it: .*%(column 13, at 'function = part0'%)$", why)
    _, why = profile.of(cap, { where = "label.none = 1" })
    assert.matches("^no sample has a label 'none'.*%(column 1, ", why)
    assert.is_truthy(profile.of(cap, { where = "function = part0", lenient = true }))
  end)

  it("takes as many tests as it says, however they nest, and no more", function()
    local flat, nested = {}, "cpu = 0"
    for i = 1, 60 do flat[i] = i % 2 == 0 and "not cpu = " .. i or "time < " .. i .. "ns" end
    for i = 1, 59 do nested = ("cpu < %d and not (%s)"):format(i, nested) end
    for _, expression in ipairs { table.concat(flat, " or "), table.concat(flat, " and "),
      nested:gsub("[()]", ""), ("not "):rep(100) .. "cpu = 0" } do
      assert.is_truthy(where.bind(cap, assert(where.parse(expression))).filter(0, 10))
    end
    local function row(tests) return "cpu = 0" .. (" or cpu = 0"):rep(tests - 1) end
    assert.matches("^it has more than 60 tests", parsed(row(61)))
    assert.matches("^it has more than 60 tests", parsed(row(5000)))
    assert.matches("^it is too long, or nested too deeply", parsed(row(100000)))
    assert.matches("^it is too long, or nested too deeply", parsed(("not "):rep(1000) .. "cpu = 0"))
  end)

  it("gives the same for an expression as for its parts", function()
    local samples = cap:rows("samples")
    local function chosen(expression)
      local keep, out = where.bind(cap, assert(where.parse(expression))).filter(0, samples), {}
      for i = 0, samples - 1 do out[i + 1] = keep[i] == 1 end
      return out
    end
    local a, b, c = chosen("thread ~ worker"), chosen("cpu = 2"), chosen("time > 100us")
    local all, none = chosen("not (thread ~ worker or not (cpu = 2 and time > 100us))"),
      chosen("(thread ~ worker or cpu = 2) and not (time > 100us and cpu = 2)")
    for i = 1, samples do
      assert.equal(not (a[i] or not (b[i] and c[i])), all[i])
      assert.equal((a[i] or b[i]) and not (c[i] and b[i]), none[i])
    end
  end)

  it("stays compiled", function()
    local bound = assert(where.bind(cap, assert(where.parse(
      "thread ~ worker and (time = 1s..3s or cpu = 2) and not innermost ~ x"))))
    assert.same({}, helper.interpreted(bound.row_loop, 20000, 0, cap:array("samples", "thread"),
      cap:array("samples", "cpu"), cap:array("samples", "stack"), cap:array("samples", "time_ns"),
      ffi.new("uint8_t[?]", 20000)))
  end)
end)

describe("the loops that mark stacks and samples", function()
  it("stay compiled", function()
    local stacks = 40000
    local parent, location = ffi.new("uint32_t[?]", stacks), ffi.new("uint32_t[?]", stacks)
    local marks, out = ffi.new("uint8_t[?]", 100), ffi.new("uint8_t[?]", stacks)
    for i = 0, stacks - 1 do
      parent[i], location[i] = i < 4 and 0xffffffff or math.floor(i / 3), i % 100
    end
    marks[7] = 1
    for _, loop in ipairs { where._mark_any, where._mark_innermost, where._mark_outermost } do
      assert.same({}, helper.interpreted(loop, parent, location, marks, stacks, out))
    end
    assert.same({}, helper.interpreted(where._mark_samples, location, location, marks, stacks,
      ffi.new("uint8_t[?]", 100)))
  end)
end)
