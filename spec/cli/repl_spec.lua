-- The prompt: at a terminal, and with lines from elsewhere.

local cjson = require("cjson")

local helper = require("spec.helper")
local made = require("spec.support.made")

describe("the prompt", function()
  local folder

  setup(function()
    folder = helper.folder()
    made.capture(folder .. "/microscope.usprof", { meta = { command = "./app" },
      samples = { { "main > work", n = 3 }, { "main > rest", n = 1 } } })
  end)

  teardown(function() helper.remove(folder) end)

  -- What lines from a pipe give.
  local function lines(text, arguments)
    helper.write(folder .. "/lines", text)
    return helper.run(("%s/bin/microscope repl %s < lines"):format(helper.quote(helper.stage),
      arguments or ""), folder)
  end

  -- What a terminal shows.
  local function terminal(steps)
    helper.write(folder .. "/steps.json", cjson.encode(steps))
    local out, err = helper.run(
      ("timeout -s KILL 200 python3 %s steps.json env XDG_STATE_HOME=%s %s/bin/microscope repl")
        :format(helper.quote(helper.root .. "/spec/support/terminal.py"),
          helper.quote(folder .. "/state"), helper.quote(helper.stage)), folder)
    assert.equal("", err)
    return out
  end

  it("shows expressions, results, and what was set before", function()
    assert.same({ "4\n7\nmain work\n"
      .. "MODULE     SELF    SHARE     LOW     HIGH  SAMPLES  FUNCTIONS\n"
      .. "app     4.00 ms  100.0 %  51.0 %  100.0 %        4          2\n\n"
      .. "low and high bound the share with 95 % confidence\n"
      .. "{\n  [1] = 1,\n  x = \"y\"\n}\n", "", 0 },
      { (lines('cap:rows("samples")\nx = 3\n= x + 4\nprint("main work")\nrun "modules"\n'
        .. '{ 1, x = "y" }\n')), select(2, lines("")), 0 })
  end)

  it("goes on after errors, says them, and ends with status 1", function()
    local out, err, status = lines(
      "nothing.x\n1 +\n2\nerror('own')\n) (\ncap:array('no', 'way')\n5\n")
    assert.equal("3\nnil\nthere is no table no\n5\n", out)
    assert.matches("^input:1: attempt to index global 'nothing' %(a nil value%)\n", err)
    assert.matches("\nown\n", err)
    assert.matches("\ninput:1: unexpected symbol near '%)'\n", err)
    assert.equal(1, status)
    local _, said, failed = lines("for i = 1, 2 do\n")
    assert.matches("the input ends within a statement", said)
    assert.equal(1, failed)
  end)

  it("has help for the API, tables, columns and queries", function()
    local out, err = lines('help()\nhelp "samples"\nhelp "samples.stack"\nhelp "tree"\n'
      .. 'help "api"\nhelp "tables"\nhelp "queries"\nhelp "blocks"\nhelp "no such thing"\nhelp\n'
      .. 'help "hot-lines"\n')
    assert.equal("", err)
    assert.matches("Tab completes names", out)
    assert.matches("A row of samples: ", out)
    assert.matches("samples%.stack %(u32, id of stacks%): its innermost", out)
    assert.matches("microscope%.tree%(cap, keys, selection%)\n  The call tree", out)
    assert.matches("cap:blocks%(tab, %.%.%.%)\n  Iterate", out)
    assert.matches("sandwich +Who calls", out)
    assert.matches('run%("hot%-lines"%): The source lines.*\n  source_dir +text +Look', out)
    assert.matches("samples +4  a sample", out)
    assert.matches("nothing is called 'no such thing'", out)
  end)

  it("does not show what a terminal acts on", function()
    local out = lines('"\\27[31m"\nerror("\\27[32m")\n{ ["\\27[33m"] = 1 }\n')
    assert.is_nil(out:find("\27", 1, true))
  end)

  it("reads other captures, or says why not", function()
    local out = lines("#caps, caps[2].path\n", "microscope.usprof microscope.usprof")
    assert.equal("2\nmicroscope.usprof\n", out)
    local _, err, status = lines("1\n", "none.usprof")
    assert.equal(1, status)
    assert.matches("^microscope repl: [^\n]*none%.usprof[^\n]*\n$", err)
  end)

  it("edits lines, completes, and keeps a history", function()
    local out = terminal {
      { expect = "help\\(\\) says.*> " },
      { send = "cap:ro\t" }, { expect = "cap:rows" },
      { send = '("samp\t' }, { expect = '"sample' }, -- samples and sample_labels
      { send = 's")\r' }, { expect = "\n4\r\n> " },
      { send = 'cap:array("samples", "wei\t' }, { expect = "weight" },
      { send = '")\1#\5\r' }, { expect = "\n[^\r]*\r\n> " }, -- Ctrl-A, Ctrl-E: edited
      { send = "micro\t" }, { expect = "microscope" }, { send = ".\t\t" },
      { expect = "with_capture" }, { send = "ver\t" }, { expect = "version" }, { send = "\r" },
      { expect = "\n0\\.1\\.0\r\n> " },
      { send = "41 + 1\r" }, { expect = "\n42\r\n> " },
      { send = "\27[A" }, { expect = "41 \\+ 1" }, { send = "0\r" }, { expect = "\n51\r\n> " },
      { send = "for i = 1, 2 do\r" }, { expect = ">> " }, { send = "print(i * 100)\r" },
      { send = "end\r" }, { expect = "\n100\r\n200\r\n> " },
      { send = "\4" }, { ["end"] = true },
    }
    assert.matches("%-%- status 0\n$", out)
    -- What was typed last stands first, a statement of several lines as one.
    out = terminal { { expect = "> " }, { send = "\27[A\r" }, { expect = "\n100\r\n200\r\n> " },
      { send = "\27[A\27[A\r" }, { expect = "\n51\r\n> " }, { send = "\4" },
      { ["end"] = true } }
    assert.matches("%-%- status 0\n$", out)
    local mode = helper.run("stat -c %a state/microscope state/microscope/history", folder)
    assert.equal("700\n600\n", mode)
  end)

  it("ends what runs at Ctrl-C, and a line that is typed", function()
    local out = terminal {
      { expect = "> " }, { send = "x = 5\r" }, { expect = "> " },
      { send = "print('begun') while true do end\r" }, { expect = "\nbegun\r\n" },
      { send = "\3" }, { expect = "interrupted\r\n> " },
      { send = "print('again') local function f() while true do pcall(tostring) end end f()\r" },
      { expect = "\nagain\r\n" }, { send = "\3" }, { expect = "interrupted\r\n> " },
      { send = "half a line\3" }, { expect = "\\^C\r\n> " }, { send = "\3" },
      { expect = "\\^C\r\n> " }, { send = "x\r" }, { expect = "\n5\r\n> " },
      { send = "\4" }, { ["end"] = true },
    }
    assert.matches("%-%- status 0\n$", out)
  end)

  it("ends at a second Ctrl-C where compiled code does not look", function()
    helper.write(folder .. "/spin.lua", [[
      local function spin() local x = 0 while true do x = (x + 1) % 1000 end end
      return spin]])
    local out = terminal {
      { expect = "> " }, { send = "spin = dofile('spin.lua')\r" }, { expect = "> " },
      { send = "print('begun') spin()\r" }, { expect = "\nbegun\r\n" },
      { press = "\3" },
    }
    -- The second of them ended it, as SIGINT does.
    assert.matches("%-%- status %-2\n$", out)
  end)
end)
