-- The command line of `microscope query`: what it is given, where the answer goes.

local cjson = require("cjson")

local helper = require("spec.helper")
local made = require("spec.support.made")

describe("microscope query", function()
  local folder

  setup(function()
    folder = helper.folder()
    made.capture(folder .. "/microscope.usprof", { samples = { { "main > work", n = 3 } } })
    made.capture(folder .. "/other.usprof", { samples = { { "main", n = 5 } } })
  end)

  teardown(function() helper.remove(folder) end)

  local function query(arguments) return helper.microscope("query " .. arguments, folder) end

  it("evaluates expressions and statements over the captures", function()
    assert.same({ "3\n", "", 0 }, { query([[-e 'cap:rows("samples")']]) })
    assert.same({ "5\n", "", 0 }, { query([[-e 'cap:rows("samples")' other.usprof]]) })
    assert.equal("2\tother.usprof\n",
      (query("-e 'print(#caps, caps[2].path)' microscope.usprof other.usprof")))
    assert.equal("", (query("-e 'local x = 1'")))
    assert.equal("1\n2\n", (query("-e '1, 2'")))
    assert.equal("nil\nno\n", (query("-e 'nil, \"no\"'")))
    assert.equal("{\n  a = {\n    [1] = \"x\\x1b\"\n  }\n}\n",
      (query("-e '{ a = { \"x\\27\" } }'")))
    assert.equal("A\n1\n", (query("-e 'microscope.result({ \"a\" }, { { 1 } })'")))
    assert.equal("a\r\n1\r\n",
      (query("-e 'microscope.result({ \"a\" }, { { 1 } })' --format csv")))
  end)

  it("says what is wrong in one line, with status 1 or 2", function()
    for arguments, want in pairs {
      [""] = { 2, "which query%? Give its name, a script's path or %-e EXPRESSION" },
      ["modules --where 'thread ~'"] = { 1, "microscope%.usprof: %-%-where: .*column 9" },
      ["flame --format json"] = { 2, "flame writes HTML: %-%-format does not go with it" },
      ["--format csv flame -o x.html"] = { 2, "flame writes HTML: %-%-format does not go" },
      ["modules --source wall"] = { 1, "there is no source wall" },
      ["-e 1 --where 'time > 1s'"] = { 2, "do not go with %-e" },
      ["-e"] = { 2, "option '%-e' requires an argument" },
      ["-e 'x.y'"] = { 1, "expression:1: attempt to index global 'x'" },
      ["-e '1 +'"] = { 1, "expression:1: " },
      ["-e '\27LJ'"] = { 1, "expression: bytecode is not run, only text of Lua" },
      ["-e 'cap:close() return cap:rows(\"samples\")'"] = { 1, "the capture is closed" },
      ["nope"] = { 1, "no query 'nope' %(microscope query %-%-list shows what is there%)" },
      ["./nope.lua"] = { 1, "no query at %./nope%.lua" },
      ["modules nope.usprof"] = { 1, "nope%.usprof: No such file" },
      ["modules --format xml"] = { 2, "'%-%-format' must be one of 'text', 'json', 'csv'" },
      ["modules --nope"] = { 2, "unknown option '%-%-nope'" },
      ["--nope modules"] = { 2, "unknown option '%-%-nope'" },
      ["modules -- --nope"] = { 2, "modules: unknown option '%-%-nope'" },
      ["modules -o no/such/folder/x"] = { 1, "no/such/folder" },
      ["modules -o /dev/full"] = { 1, "No space left on device" },
    } do
      local out, err, status = query(arguments)
      assert.same({ "", want[1] }, { out, status }, arguments)
      assert.matches("^microscope query: [^\n]*" .. want[2] .. "[^\n]*\n$", err)
    end
  end)

  it("asks only the samples that --where chooses", function()
    made.capture(folder .. "/two.usprof", { threads = { { tid = 1, name = "a" },
      { tid = 2, name = "b" } },
      samples = { { "main", n = 4 }, { "main > x", n = 6, thread = 1 } } })
    local function samples(arguments)
      return cjson.decode((query("modules --format json two.usprof " .. arguments))).rows[1].samples
    end
    assert.same({ 10, 4, 6 }, { samples(""), samples("--where 'thread = a'"),
      samples("--where 'thread = b' --source cpu-clock") })
    local rows = cjson.decode((query(
      "--where 'thread = b' top-by-thread --format json two.usprof"))).rows
    assert.same({ 1, "b", 1 }, { #rows, rows[1].thread, rows[1].share })
  end)

  it("writes a file whole or not at all", function()
    assert.same({ "", "", 0 }, { query("modules -o out.txt") })
    assert.matches("^MODULE", helper.read(folder .. "/out.txt"))
    helper.write(folder .. "/half.lua", [[return { summary = "x", run = function(ctx)
      ctx.out("half")
      error("no more")
    end }]])
    local _, _, status = query("half.lua -o half.txt")
    assert.equal(1, status)
    assert.is_nil(io.open(folder .. "/half.txt"))
    assert.equal("", (helper.run("ls | grep half.txt; true", folder)))
  end)

  it("puts what a script prints where its answer goes", function()
    helper.write(folder .. "/prints.lua", [[return { summary = "x", run = function(ctx)
      print("seen", ctx.cap:rows("samples"))
      return ctx.microscope.result({ "a" }, { { 1 } })
    end }]])
    assert.equal("seen\t3\nA\n1\n", (query("prints.lua")))
    assert.equal("", (query("prints.lua -o printed.txt")))
    assert.equal("seen\t3\nA\n1\n", helper.read(folder .. "/printed.txt"))
  end)

  it("writes values that have no form as nothing", function()
    helper.write(folder .. "/odd.lua", [[return { summary = "x", run = function(ctx)
      return ctx.microscope.result({ { name = "a", unit = "ns" }, "b" },
        { { 0 / 0, "x,\"y\"\nz" }, { nil, nil }, { -5e6, 7 } })
    end }]])
    assert.equal("a,b\r\n,\"x,\"\"y\"\"\nz\"\r\n,\r\n-5000000,7\r\n",
      (query("odd.lua --format csv")))
    local rows = cjson.decode((query("odd.lua --format json"))).rows
    assert.same({ cjson.null, 'x,"y"\nz' }, { rows[1].a, rows[1].b })
    assert.equal("       A  B\n       -  x,\"y\"\\nz\n       -  -\n-5.00 ms  7\n",
      (query("odd.lua")))
  end)

  it("lists what is there, and gives each query's help", function()
    local out = query("--list")
    assert.matches("^QUERY +FROM +SUMMARY\n", out)
    assert.matches("\nflame +shipped +A flame graph", out)
    assert.equal("flame", cjson.decode((query("--list --format json"))).rows[3].query)
    assert.matches("Usage: microscope query flame %[OPTIONS%]", (query("flame --help")))
    assert.matches("Usage: microscope query %[OPTIONS%] NAME", (query("--help")))
    assert.matches("Usage: microscope query sandwich", (query("--format json sandwich -h")))
  end)
end)
