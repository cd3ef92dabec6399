-- The program itself: where it looks for code, and how it ends.

local helper = require("spec.helper")

describe("the program", function()
  local folder

  before_each(function() folder = helper.folder() end)
  after_each(function() helper.remove(folder) end)

  it("runs from wherever the tree was moved", function()
    local out, err, status = helper.run(
      ("cp -r %s moved && cd / && %s/moved/bin/microscope --version"):format(
        helper.quote(helper.stage), helper.quote(folder)), folder)
    assert.same({ "microscope 0.1.0\n", "", 0 }, { out, err, status })
  end)

  it("never runs code of the current directory", function()
    os.execute(("mkdir -p %s/microscope"):format(folder))
    helper.write(folder .. "/microscope/cli.lua", "os.execute('touch ran')")
    helper.write(folder .. "/argparse.lua", "os.execute('touch ran')")
    local _, _, status = helper.microscope("--version", folder)
    assert.equal(0, status)
    local _, _, relative = helper.run(("LUA_PATH='./?.lua;;' %s/bin/microscope --version"):format(
      helper.quote(helper.stage)), folder)
    assert.equal(0, relative)
    assert.is_nil(io.open(folder .. "/ran"))
  end)

  it("says 'internal error' with a traceback when Lua fails", function()
    local _, err, status = helper.run(([[
      cp -r %s moved && echo 'error("boom")' > moved/share/microscope/lua/microscope/cli/report.lua
      moved/bin/microscope report]]):format(helper.quote(helper.stage)), folder)
    assert.equal(1, status)
    assert.matches("^microscope: internal error: [^\n]*boom\nstack traceback:\n", err)
  end)

  it("lets a plain luajit require microscope", function()
    local out, err = helper.run(([[
      LUA_PATH="$(%s/bin/microscope lua-path)" \
        luajit -e 'print(require("microscope").version)']]):format(helper.quote(helper.stage)))
    assert.same({ "0.1.0\n", "" }, { out, err })
  end)

  it("says in one line, with nothing a terminal acts on, what it was given wrong", function()
    for _, words in ipairs { "record --preset $'\\e[31m\\nX' true", "report --limit $'\\e\\n1'",
      "report --$'\\e\\n'", "$'\\e\\n'", "report $'\\e\\n'" } do
      local _, err, status = helper.run(("bash -c %s"):format(helper.quote(
        helper.quote(helper.stage .. "/bin/microscope") .. " " .. words)), folder)
      assert.is_true(status == 1 or status == 2)
      assert.matches("^microscope[^%c]*\n$", err)
    end
  end)

  it("says of a number below 0 that it is one", function()
    for _, words in ipairs { "report --limit -1", "record --rate -5 true" } do
      local out, err, status = helper.microscope(words)
      assert.same({ "", 2 }, { out, status })
      assert.matches("^microscope %l+: '%-%d' is below 0: no option takes that\n$", err)
    end
  end)

  it("hands on as many words as the kernel lets a program have", function()
    local out, err, status = helper.run(([[%s/bin/microscope record -q -o words.usprof -- \
      sh -c 'echo $#' sh $(seq 100000)]]):format(helper.quote(helper.stage)), folder)
    assert.same({ "100000\n", "", 0 }, { out, err, status })
  end)

  it("ends quietly when its reader goes away", function()
    local _, err = helper.run(("%s/bin/microscope completion zsh | head -c 1 > /dev/null"):format(
      helper.quote(helper.stage)))
    assert.equal("", err)
  end)

  it("prints completions that each shell can read", function()
    for _, shell in ipairs { "bash", "zsh", "fish" } do
      local has = select(3, helper.run("command -v " .. shell)) == 0
      if has then
        local _, err, status = helper.run(("%s/bin/microscope completion %s > c && %s -n c"):format(
          helper.quote(helper.stage), shell, shell), folder)
        assert.same({ "", 0 }, { err, status })
      else
        assert.matches("microscope", (helper.microscope("completion " .. shell)))
      end
    end
  end)
end)

describe("doctor", function()
  it("says what may be recorded, and to an unprivileged user what it takes", function()
    local out, _, status = helper.microscope("doctor")
    assert.equal(0, status)
    assert.matches("your own programs, in user space: yes", out)
  end)

  it("names the capability that is missing", function()
    if helper.run("id -u") ~= "0\n" then return pending("needs root, to become another user") end
    -- A copy where that user may read it.
    local out, err = helper.run(([[
      d=$(mktemp -d) && chmod 755 $d && cp -r %s/. $d && chmod -R a+rX $d &&
      setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all $d/bin/microscope doctor
      rm -rf $d]]):format(helper.quote(helper.stage)))
    assert.equal("", err)
    assert.matches("processes of other users: no, without CAP_PERFMON and CAP_SYS_PTRACE", out)
    assert.matches("%-%-ambient%-caps=%+perfmon", out)
  end)
end)
