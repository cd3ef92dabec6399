-- Queries, reports and commands of a user's own: where they are found, what is refused, how a
-- failing one is told of.

local cjson = require("cjson")

local helper = require("spec.helper")
local made = require("spec.support.made")

describe("a plugin", function()
  local folder, config

  before_each(function()
    folder = helper.folder()
    config = folder .. "/config"
    made.capture(folder .. "/microscope.usprof", { samples = { { "main > work", n = 3 } } })
    for _, kind in ipairs { "queries", "reports", "commands", "formats" } do
      os.execute("mkdir -p " .. helper.quote(config .. "/microscope/" .. kind))
    end
  end)

  after_each(function() helper.remove(folder) end)

  local function plugin(kind, name, text)
    local path = config .. "/microscope/" .. kind .. "/" .. name .. ".lua"
    helper.write(path, text)
    return path
  end

  local function microscope(arguments, before)
    return helper.run(("%s XDG_CONFIG_HOME=%s %s/bin/microscope %s"):format(before or "",
      helper.quote(config), helper.quote(helper.stage), arguments), folder)
  end

  local function listed(kind)
    local out = microscope("plugins " .. kind .. " --format json")
    local by_name = {}
    for _, row in ipairs(cjson.decode(out).rows) do
      by_name[row.name .. " " .. row.from] = row.summary
    end
    return by_name
  end

  local GOOD = [[return { summary = "Mine.", run = function(ctx, args)
    return ctx.microscope.result({ "rows" }, { { ctx.cap:rows("samples") } })
  end }]]

  it("is found by name and by path, and its result is printed", function()
    plugin("queries", "mine", GOOD)
    assert.same({ "ROWS\n3\n", "", 0 }, { microscope("query mine") })
    helper.write(folder .. "/here.lua", GOOD)
    assert.same({ "ROWS\n3\n", "", 0 }, { microscope("query ./here.lua") })
    assert.same({ "ROWS\n3\n", "", 0 }, { microscope("query here.lua microscope.usprof") })
    assert.same({ "rows\r\n3\r\n", "", 0 }, { microscope("query mine --format csv") })
    assert.equal("Mine.", listed("queries")["mine yours"])
  end)

  it("of the user beats a shipped one of its name", function()
    plugin("queries", "modules", GOOD)
    assert.equal("ROWS\n3\n", (microscope("query modules")))
    local all = listed("queries")
    assert.equal("Mine.", all["modules yours"])
    assert.equal("not used: a file of yours with this name is used instead",
      all["modules shipped"])
  end)

  it("is never found in the current directory by name", function()
    helper.write(folder .. "/here.lua", GOOD)
    local _, err, status = microscope("query here")
    assert.equal(1, status)
    assert.matches("no query 'here'", err)
  end)

  it("is not read as bytecode, or when others own or may write it or its folder", function()
    plugin("queries", "code", string.dump(loadstring(GOOD)))
    assert.matches("code%.lua: not Lua text", select(2, microscope("query code")))
    local path = plugin("queries", "open", GOOD)
    os.execute("chmod 666 " .. helper.quote(path))
    assert.matches("others may write it", select(2, microscope("query open")))
    assert.matches("^not used: .*others may write it", listed("queries")["open yours"])
    plugin("queries", "mine", GOOD)
    os.execute("chmod 777 " .. helper.quote(config .. "/microscope/queries"))
    assert.matches("microscope/queries is not read: others may write it",
      select(2, microscope("query mine")))
    os.execute("chmod 755 " .. helper.quote(config .. "/microscope/queries"))
    assert.equal("", (select(2, microscope("query mine"))))
    -- Who may write a folder above can put another in its place.
    for _, above in ipairs { config .. "/microscope", config } do
      os.execute("chmod 777 " .. helper.quote(above))
      assert.matches("is not read: others may write it %(chmod go%-w%)",
        select(2, microscope("query mine")))
      os.execute("chmod 755 " .. helper.quote(above))
    end
  end)

  it("does not load modules of the current directory", function()
    helper.write(folder .. "/evil.lua", "os.execute('touch ran')")
    os.execute("mkdir -p " .. helper.quote(folder .. "/microscope"))
    helper.write(folder .. "/microscope/evil.lua", "os.execute('touch ran')")
    plugin("queries", "mine", [[return { summary = "Mine.", run = function()
      require(select(1, "evil"))
    end }]])
    for _, lua_path in ipairs { "./?.lua;;", "?.lua;;", ";;" } do
      local _, err, status = microscope("query mine", "LUA_PATH=" .. helper.quote(lua_path))
      assert.equal(1, status)
      assert.matches("mine%.lua:2: module 'evil' not found", err)
    end
    helper.write(folder .. "/use.lua", [[
      local ok = pcall(require, "evil")
      local m = require("microscope")
      print(ok, m.version)]])
    local out = helper.run(('LUA_PATH="$(%s/bin/microscope lua-path)" luajit use.lua'):format(
      helper.quote(helper.stage)), folder)
    assert.equal("false\t0.1.0\n", out)
    assert.is_nil(io.open(folder .. "/ran"))
  end)

  it("tells of its own file and line when it fails, in one line", function()
    local path = plugin("queries", "bad", [[return { summary = "Bad.", run = function(ctx)
      local nothing
      return nothing.field
    end }]])
    local _, err, status = microscope("query bad")
    assert.equal(1, status)
    assert.equal(("microscope query: %s:3: attempt to index local 'nothing' (a nil value)\n")
      :format(path), err)
    -- An error that the API raises is told at the place of the call.
    path = plugin("queries", "call", [[return { summary = "Bad.", run = function(ctx)

      local keys = ctx.microscope.keys(ctx.cap, { by = "colour" })
      return keys
    end }]])
    _, err = microscope("query call")
    assert.equal(("microscope query: %s:3: keys: by must be 'function' or 'line', not 'colour'\n")
      :format(path), err)
    path = plugin("queries", "deep", [[return { summary = "Bad.", run = function(ctx)
      return ctx.cap:column(nil)
    end }]])
    _, err = microscope("query deep")
    assert.matches("^microscope query: " .. path:gsub("%p", "%%%0")
      .. ":1: in the function that begins there: [^\n]+\n$", err)
    plugin("queries", "syntax", "return {\n  summary = \n}")
    _, err = microscope("query syntax")
    assert.matches("syntax%.lua:3: ", err)
    assert.not_matches("\n.", err)
    plugin("queries", "loop", [[return { summary = "Bad.", run = function(ctx)
      local function f() return 1 + f() end
      return f()
    end }]])
    _, err, status = microscope("query loop")
    assert.equal(1, status)
    assert.matches("/loop%.lua:?%d*: stack overflow\n$", err)
    assert.not_matches("traceback", err)
    -- Errors that are tables, as the API's own.
    for body, want in pairs {
      ["error({})"] = "an error that is a table without words",
      ["local _, why = ctx.microscope.open('/none') error(why)"] =
        "opening /none: No such file[^\n]*",
    } do
      path = plugin("queries", "thing", ("return { summary = 'Bad.', run = function(ctx)\n%s end }")
        :format(body))
      _, err, status = microscope("query thing")
      assert.equal(1, status)
      assert.matches("^microscope query: " .. path:gsub("%p", "%%%0") .. ":2: " .. want .. "\n$",
        err)
    end
  end)

  it("may end with words of its own", function()
    plugin("queries", "end", [[return { summary = "Ends.", run = function(ctx)
      ctx.fail("no %s here", "luck")
    end }]])
    assert.same({ "", "microscope query: end: no luck here\n", 1 }, { microscope("query end") })
  end)

  it("that fails does not stop the others", function()
    plugin("queries", "aaa", "error('at load')")
    plugin("queries", "mine", GOOD)
    local out, err, status = microscope("query --list")
    assert.equal(0, status)
    assert.matches("mine +yours +Mine%.", out)
    assert.matches("aaa%.lua:1: at load", err)
    local all = listed("queries")
    assert.matches("^not used: .*aaa%.lua:1: at load", all["aaa yours"])
    assert.equal("Mine.", all["mine yours"])
  end)

  it("that fails while it is told about does not either", function()
    local raises = [[setmetatable({}, { %s = function() error("again") end })]]
    plugin("queries", "told", "error(" .. raises:format("__tostring") .. ")")
    plugin("queries", "looked-at", "return " .. raises:format("__index"))
    plugin("queries", "mine", GOOD)
    local all = listed("queries")
    assert.matches("told.lua:1: an error %(a table%) that cannot be shown$", all["told yours"])
    assert.matches("looked%-at.lua:1: again$", all["looked-at yours"])
    assert.equal("Mine.", all["mine yours"])
    local _, err, status = microscope("query looked-at")
    assert.equal(1, status)
    assert.matches("^microscope query: [^\n]*looked%-at.lua:1: again\n$", err)
  end)

  it("has its headings escaped", function()
    plugin("queries", "mine", [[return { summary = "Mine.", run = function(ctx)
      return ctx.microscope.result({ "\27[2Ja", { name = "b", heading = "\27b" } }, {})
    end }]])
    assert.equal("\\x1b[2JA  \\x1bb\n(no rows)\n", (microscope("query mine")))
  end)

  it("has its manifest checked", function()
    for text, why in pairs {
      ["return 5"] = "does not return a manifest",
      ["return { run = function() end }"] = "summary must be one line of text",
      ["return { summary = 'x' }"] = "run is missing",
      ["return { summary = 'x', run = 1 }"] = "run must be a function",
      ["return { summary = 'x', run = print, optoins = {} }"] = "no field 'optoins'",
      ["return { summary = 'x', run = print, options = { { name = 'A b' } } }"] =
        "option 'A b': its name must be",
      ["return { summary = 'x', run = print, options = { { name = 'a', type = 'int' } } }"] =
        "option 'a': its type must be",
      ["return { summary = 'x', run = print, columns = { 'samples' } }"] =
        "'samples' is no 'table.column'",
    } do
      plugin("queries", "checked", text)
      local _, err, status = microscope("query checked")
      assert.equal(1, status)
      assert.is_truthy(err:find("checked.lua: " .. why, 1, true) or err:find(why, 1, true), err)
    end
    plugin("queries", "checked", "return { summary = 'x', run = print, columns = { 'a.b' } }")
    assert.matches("there is no table a", select(2, microscope("query checked")))
  end)

  it("has its arguments checked by its manifest", function()
    plugin("queries", "args", [[return { summary = "Args.", options = {
        { name = "many", type = "count", default = 3, description = "How many." },
        { name = "how-far", type = "number", least = 0, most = 2 },
        { name = "way", type = "choice", choices = { "up", "down" } },
        { name = "all", type = "flag" }, { name = "tag", repeated = true },
      }, arguments = { { name = "word" } },
      run = function(ctx, a)
        ctx.out(a.many, " ", tostring(a.how_far), " ", tostring(a.way), " ", tostring(a.all), " ",
          a.tag and table.concat(a.tag, ",") or "none", " ", tostring(a.word), "\n")
      end }]])
    assert.same({ "3 nil nil nil none nil\n", "", 0 }, { microscope("query args") })
    assert.same({ "5 1.5 up true a,b hello\n", "", 0 }, { microscope(
      "query args -- --many 5 --how-far 1.5 --way up --all --tag a --tag b hello") })
    assert.equal("4 nil nil nil none nil\n", (microscope("query args --many 4")))
    for arguments, why in pairs {
      ["--many 0"] = "many must be a whole number of at least 1, not '0'",
      ["--many x"] = "many must be a whole number",
      ["--how-far 3"] = "how%-far must be a number of at least 0 and at most 2, not '3'",
      ["--way left"] = "up",
      ["--much 3"] = "unknown option '%-%-much'",
      ["a b"] = "too many arguments",
    } do
      local _, err, status = microscope("query args -- " .. arguments)
      assert.equal(2, status)
      assert.matches("^microscope query: args: .*" .. why, err)
    end
    local help = microscope("query args --help")
    assert.matches("%-%-many MANY +How many %(3%)%.", help)
  end)

  it("of the kind commands is a command, listed in the help", function()
    plugin("commands", "hello", [[return { summary = "Say hello.",
      options = { { name = "to", default = "you" } },
      run = function(ctx, args) ctx.out("hello ", args.to, "\n") end }]])
    assert.same({ "hello you\n", "", 0 }, { microscope("hello") })
    assert.same({ "hello me\n", "", 0 }, { microscope("hello --to me") })
    assert.matches("hello +Say hello%.", (microscope("--help")))
    assert.matches("%-%-to TO", (microscope("hello --help")))
    local path = plugin("commands", "broken", "return nothing.x")
    local help, said, zero = microscope("--help")
    assert.equal(0, zero)
    assert.matches("hello", help)
    assert.matches("broken%.lua:1: ", said)
    local _, err, status = microscope("broken")
    assert.equal(1, status)
    assert.equal("microscope: " .. path .. ":1: attempt to index global 'nothing' (a nil value)\n",
      err)
  end)

  it("cannot take the place of a command of microscope's own", function()
    local path = plugin("commands", "report", [[return { summary = "Mine.",
      run = function() os.execute("touch ran") end }]])
    local out, err, status = microscope("report")
    assert.equal(0, status)
    assert.matches("SELF", out)
    assert.equal("microscope: " .. path
      .. " is not used: report is a command of microscope's own\n", err)
    assert.equal("not used: report is a command of microscope's own and cannot be replaced",
      listed("commands")["report yours"])
    assert.is_nil(io.open(folder .. "/ran"))
  end)

  it("keeps its globals to itself", function()
    plugin("commands", "leaky", [[leaked = 1
      return { summary = "Leaks.", run = function(ctx) ctx.out(tostring(leaked), "\n") end }]])
    plugin("queries", "leaky", [[return { summary = "Looks.", run = function(ctx)
      ctx.out(tostring(rawget(_G, "leaked")), "\n") end }]])
    assert.equal("1\n", (microscope("leaky")))
    assert.equal("nil\n", (microscope("query leaky")))
  end)

  it("is listed with where it came from, and so are the folders", function()
    local out = microscope("plugins")
    assert.matches("presets +dev +shipped", out)
    assert.matches("queries +flame +shipped", out)
    assert.matches(helper.quote(config):sub(2, -2):gsub("%p", "%%%0") .. "/microscope/KIND", out)
    assert.matches("queries +yours +" .. config:gsub("%p", "%%%0") .. "/microscope/queries",
      (microscope("plugins --folders")))
  end)

  it("that a user wrote is not read under AT_SECURE", function()
    if helper.run("id -u") ~= "0\n" then return pending("needs root, to become another user") end
    plugin("queries", "mine", GOOD)
    -- A file capability gives the program more than its user has: the kernel sets AT_SECURE.
    local out, err = helper.run(([[
      d=$(mktemp -d) && chmod 755 $d && cp -r %s/. $d/stage && cp -r %s $d/config
      chmod -R a+rX $d && chown -R 65534 $d/config && cp microscope.usprof $d
      setcap cap_ipc_lock+ep $d/stage/bin/microscope || { echo no setcap; rm -rf $d; exit; }
      cp $d/config/microscope/queries/mine.lua $d && cd $d && chmod a+r microscope.usprof
      user="setpriv --reuid=65534 --regid=65534 --clear-groups env XDG_CONFIG_HOME=$d/config"
      $user $d/stage/bin/microscope query mine
      $user $d/stage/bin/microscope query ./mine.lua
      $user $d/stage/bin/microscope query -e 1
      echo 1 | $user $d/stage/bin/microscope repl
      $user $d/stage/bin/microscope query modules
      rm -rf $d]]):format(helper.quote(helper.stage), helper.quote(config)), folder)
    if out == "no setcap\n" then return pending("needs a file system that keeps capabilities") end
    assert.matches("no query 'mine'", err)
    assert.matches("%./mine%.lua is not run: the program has more rights", err)
    assert.matches("an expression is not run", err)
    assert.matches("what is typed is not run", err)
    assert.matches("^MODULE", out) -- what is shipped is
  end)

  it("of the kind reports shows a report's profile in its own way", function()
    plugin("reports", "short", [[return { summary = "Short.",
      options = { { name = "word", default = "weight" } },
      run = function(ctx, args) ctx.out(args.word, " ", ctx.profile.tree.weight, "\n") end }]])
    local bad = plugin("reports", "bad", [[return { summary = "Bad.", run = function()
      error("no") end }]])
    assert.same({ "weight 3000000\n", "", 0 }, { microscope("report --plugin short") })
    assert.same({ "time 3000000\n", "", 0 }, { microscope("report --plugin short -- --word time") })
    assert.equal("weight 0\n", (microscope("report --plugin short --drop work")))
    assert.matches("Usage: .*%-%-word WORD", (microscope("report --plugin short --help")))
    local out, err, status = microscope("report --plugin bad --plugin short")
    assert.same({ "weight 3000000\n", 1 }, { out, status })
    assert.equal("microscope report: " .. bad .. ":2: no\n", err)
    out, err, status = microscope("report --plugin nowhere")
    assert.same({ "", "microscope report: no report 'nowhere'\n", 1 }, { out, err, status })
    out, err, status = microscope("report -- --word x")
    assert.same({ "", 2 }, { out, status })
    assert.matches("%-%-plugin, which is not given", err)
  end)

  it("says how many captures it reads", function()
    plugin("queries", "two", [[return { summary = "Two.", captures = 2,
      run = function(ctx) ctx.out(#ctx.caps, "\n") end }]])
    assert.equal("2\n", (microscope("query two microscope.usprof microscope.usprof")))
    local _, err, status = microscope("query two")
    assert.same({ "microscope query: two reads 2 captures, not 1\n", 1 }, { err, status })
    _, err = microscope("query modules microscope.usprof microscope.usprof")
    assert.equal("microscope query: modules reads one capture, not 2\n", err)
  end)
end)
