local fake = require("spec.support.fake")
local keys = require("microscope.query.keys")
local pattern = require("microscope.query.pattern")
local symbols = require("microscope.query.symbols")

local NONE = fake.NONE

-- Functions: name, module, file, line.
local function capture_of(list)
  local fns = { name = {}, module = {}, file = {}, line = {} }
  local modules, files, module_ids, file_ids = { name = {}, problem = {} }, { path = {} }, {}, {}
  local locations = { kind = {}, evidence = {}, module = {}, offset = {} }
  local lines = { location = {}, ["function"] = {}, file = {}, line = {}, depth = {} }
  for i, fn in ipairs(list) do
    if not module_ids[fn[2]] then
      table.insert(modules.name, fn[2])
      table.insert(modules.problem, "")
      module_ids[fn[2]] = #modules.name - 1
    end
    if fn[3] and not file_ids[fn[3]] then
      table.insert(files.path, fn[3])
      file_ids[fn[3]] = #files.path - 1
    end
    fns.name[i], fns.module[i] = fn[1], module_ids[fn[2]]
    fns.file[i], fns.line[i] = fn[3] and file_ids[fn[3]] or NONE, fn[4] or 0
    locations.kind[i], locations.evidence[i], locations.module[i] = 0, 0, module_ids[fn[2]]
    locations.offset[i] = i
    lines.location[i], lines["function"][i], lines.depth[i] = i - 1, i - 1, 0
    lines.file[i], lines.line[i] = fns.file[i], fns.line[i]
  end
  return fake.capture { functions = fns, modules = modules, files = files, locations = locations,
    lines = lines }
end

local cap = capture_of {
  { "main", "app", "/src/main.c", 3 },
  { "init", "app", "/src/a.c", 10 },
  { "init", "app", "/src/b.c", 20 },
  { "init", "libx.so" },
  { "std::vector<int*>::push(int*)", "app", "/src/v.h", 5 },
  { "memcpy@GLIBC_2.14", "libc.so.6" },
  { "parse?", "app", "/src/p.c", 1 },
}

local function names(symbol, options)
  local k = keys.build(cap)
  local found, why = symbols.match(cap, k, symbol, options)
  return found and found.names or why
end

describe("symbols", function()
  it("match names exactly before all else", function()
    assert.same({ "main@/src/main.c:3" }, names("main"))
    assert.same({ "std::vector<int*>::push(int*)@/src/v.h:5" },
      names("std::vector<int*>::push(int*)"))
    assert.same({ "memcpy@GLIBC_2.14@libc.so.6" }, names("memcpy@GLIBC_2.14"))
    assert.same({ "parse?@/src/p.c:1" }, names("parse?"))
  end)

  it("tell functions of one name apart by module, file, or file and line", function()
    assert.same({ "init@/src/a.c:10", "init@/src/b.c:20", "init@libx.so" }, names("init"))
    assert.same({ "init@libx.so" }, names("init@libx.so"))
    assert.same({ "init@/src/b.c:20" }, names("init@b.c"))
    assert.same({ "init@/src/b.c:20" }, names("init@b.c:20"))
    assert.same({ "init@/src/b.c:20" }, names("init@/src/b.c:20"))
    assert.same({ "memcpy@GLIBC_2.14@libc.so.6" }, names("memcpy@GLIBC_2.14@libc.so.6"))
    assert.matches("^no function 'init@c'", names("init@c"))
  end)

  it("match globs, and regular expressions anywhere in a name", function()
    assert.same({ "main@/src/main.c:3" }, names("m*n"))
    assert.same({ "main@/src/main.c:3", "memcpy@GLIBC_2.14@libc.so.6" }, names("m*"))
    assert.same({ "init@/src/a.c:10", "init@/src/b.c:20", "init@libx.so" }, names("?nit"))
    assert.same({ "main@/src/main.c:3" }, names("/^ma.n$/"))
    assert.same({ "std::vector<int*>::push(int*)@/src/v.h:5" }, names("/vector.*push/"))
  end)

  it("that are ambiguous or absent list what could be meant", function()
    assert.equal("'init' names 3 functions: init@/src/a.c:10, init@/src/b.c:20, init@libx.so",
      names("init", { one = true }))
    assert.equal("no function 'MAI'; near to it: main@/src/main.c:3", names("MAI"))
    assert.equal("no function 'zzz'", names("zzz"))
    assert.equal("no function 'z*'", names("z*"))
  end)

  it("that are no regular expressions are refused with the place", function()
    assert.equal("'/a(/' is no regular expression: missing closing parenthesis (at byte 3)",
      names("/a(/"))
  end)

  it("give up a regular expression that backtracks without end", function()
    local slow = capture_of { { ("a"):rep(60) .. "b", "app" } }
    local found, why = symbols.match(slow, keys.build(slow), "/(a+)+$/")
    assert.is_nil(found)
    assert.matches("^/%(a%+%)%+%$/ is too costly to match: ", why)
  end)

  it("bound a regular expression's steps from all places of a name", function()
    local name = ("a"):rep(65536) .. "bc"
    local slow = assert(pattern.regex("(?:a|a){0,17}c"))
    local began = os.clock()
    local ok, why = pcall(slow, name)
    assert.is_false(ok)
    assert.matches("^/%(%?:a|a%){0,17}c/ is too costly to match: ", why)
    -- 2^17 steps from each of 65536 places take some minutes.
    assert.is_true(os.clock() - began < 30)
  end)

  it("refuse a name that a plain expression could take minutes for", function()
    local name, expression = ("a"):rep(2 ^ 20) .. "bc", assert(pattern.regex("a+c"))
    local began = os.clock()
    local ok, why = pcall(expression, name)
    assert.is_false(ok)
    assert.equal("/a+c/ is too costly to match: a name of 1048578 bytes, the most is 131072", why)
    assert.is_true(expression(("a"):rep(2 ^ 16) .. "c"))
    assert.is_true(os.clock() - began < 30)
  end)

  it("look at all of a long name", function()
    local name = ("foo"):rep(3) .. ("a"):rep(65536) .. "xd"
    for expression, want in pairs { ["f.*x.*c$"] = false, ["f.*x.*d$"] = true, ["^o.*d$"] = false,
      ["x.$"] = true, ["(?:a|a){0,3}xe"] = false, ["(?:a|a){0,3}xd"] = true, ["$"] = true,
      ["(?<=f)oof.*z|a.*z"] = false, ["(?<=f)oof.*z|a.*d"] = true } do
      assert.equal(want, assert(pattern.regex(expression))(name), expression)
    end
    local anchored = assert(pattern.regex("\\Ga.*x|\\Gfoo.*z"))
    assert.matches("too costly", select(2, pcall(anchored, name)))
  end)

  it("match C++ names without their parameters, after whole names", function()
    local k = keys.build(cap)
    assert.same({ "std::vector<int*>::push(int*)@/src/v.h:5" }, names("std::vector<int*>::push"))
    assert.same({ "std::vector<int*>::push(int*)@/src/v.h:5" },
      names("std::vector<int*>::push@v.h:5"))
    assert.is_nil((symbols.match(cap, k, "push")))
    local before = cap
    finally(function() cap = before end)
    cap = capture_of { { "f(int)", "app" }, { "f(long) const && [clone .cold] [clone .a]", "app" },
      { "my_operator()", "app" }, { "g", "app" }, { "g()", "app" },
      { "A::operator()(void (*)(int)) const", "app" },
      { "B::operator()", "app" }, { "(anonymous namespace)::h(int)", "app" }, { "(odd)", "app" },
      { "broken)", "app" }, { "x[1]", "app" }, { "run(int)::{lambda(int)#1}", "app" } }
    assert.same({ "f(int)@app", "f(long) const && [clone .cold] [clone .a]@app" }, names("f"))
    assert.same({ "my_operator()@app" }, names("my_operator"))
    assert.same({ "g@app" }, names("g"))
    assert.same({ "A::operator()(void (*)(int)) const@app" }, names("A::operator()"))
    assert.same({ "B::operator()@app" }, names("B::operator()"))
    assert.same({ "(anonymous namespace)::h(int)@app" }, names("(anonymous namespace)::h"))
    for _, symbol in ipairs { "B::operator", "run", "", "broken", "x" } do
      assert.matches("^no function", names(symbol))
    end
  end)

  it("of 64 KiB match", function()
    local long = capture_of { { ("x"):rep(65536), "app" }, { "y", "app" } }
    for _, symbol in ipairs { ("x"):rep(65536), "x*", "/^x.*x$/", "*" .. ("x*"):rep(50) } do
      local found = symbols.match(long, keys.build(long), symbol)
      assert.equal(1, found.count)
    end
  end)

  it("mark all keys of a function's lines", function()
    local k = keys.build(cap, { lines = true })
    local found = symbols.match(cap, k, "init@app")
    assert.equal(2, found.count)
    local count = 0
    for key = 0, k.count - 1 do count = count + found.mask[key] end
    assert.equal(2, count)
  end)
end)

describe("globs", function()
  it("match whole texts", function()
    for glob, texts in pairs {
      ["a*c"] = { abc = true, ac = true, abcd = false, abcbc = true },
      ["*"] = { [""] = true, x = true }, ["a?"] = { a = false, ab = true },
      ["*.so*"] = { ["libc.so.6"] = true, ["libcso"] = false },
      ["a.c"] = { ["a.c"] = true, abc = false }, ["**b"] = { b = true, ab = true, ba = false },
    } do
      for text, want in pairs(texts) do
        assert.equal(want, pattern._glob_matches(glob, text), glob .. " on " .. text)
      end
    end
  end)
end)
