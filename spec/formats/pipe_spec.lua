-- Inputs whose bytes come once: pipes and standard input, in every format, compressed or not.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")

describe("convert from a pipe", function()
  local folder
  local FUZZ = helper.root .. "/fixtures/fuzz/"
  local FILES = {
    pprof = FUZZ .. "pprof/small.pb",
    perf = FUZZ .. "perfdata/fp",
    firefox = FUZZ .. "firefox/old.json",
    speedscope = FUZZ .. "speedscope/both.json",
    gecko = FUZZ .. "gecko/nested",
  }

  setup(function()
    folder = helper.folder()
    assert(capture.generate { path = folder .. "/made.usprof", samples = 200, stacks = 20,
      functions = 10, seed = 3 })
    FILES.usprof = folder .. "/made.usprof"
    for name, text in pairs {
      folded = "main;work 5\nmain 2\n",
      chrome = '{"traceEvents":[{"ph":"X","ts":1,"dur":2,"pid":1,"tid":1,"name":"a"}]}',
      ["perf-script"] = "work 12 [003] 4.567890: 1 cycles:\n\t5 main (app)\n\n",
    } do
      FILES[name] = folder .. "/" .. name
      helper.write(FILES[name], text)
    end
  end)
  teardown(function() helper.remove(folder) end)

  local function shell(line)
    return helper.run(("export M=%s/bin/microscope; timeout -s KILL 60 bash -c %s"):format(
      helper.quote(helper.stage), helper.quote(line)), folder)
  end

  -- The rows of what `line` writes to piped.usprof, which a path would have led to.
  local function same(line, name)
    helper.run("rm -f piped.usprof", folder)
    local _, err, status = shell(line)
    assert.equal(0, status, name .. ": " .. err)
    assert.equal(helper.read(folder .. "/direct.usprof"), helper.read(folder .. "/piped.usprof"),
      name)
  end

  it("knows each format by its bytes, as from a file", function()
    for name, path in pairs(FILES) do
      local from = helper.quote(path)
      kit.convert(folder, from .. " direct.usprof")
      same(("cat %s | $M convert - piped.usprof"):format(from), name)
      same(("$M convert - piped.usprof <%s"):format(from), name)
      same(("$M convert <(cat %s) piped.usprof"):format(from), name)
      same(("$M convert --from %s <(cat %s) piped.usprof"):format(name, from), name)
      same(("$M convert <(gzip -c %s) piped.usprof"):format(from), name)
      same(("zstd -qc %s | $M convert - piped.usprof"):format(from), name)
      same(("mkfifo p; cat %s >p & $M convert p piped.usprof; rm p"):format(from), name)
    end
  end)

  it("reads a capture that is compressed", function()
    helper.run("gzip -k made.usprof", folder)
    kit.convert(folder, "made.usprof.gz again.usprof")
    assert.equal(helper.read(FILES.usprof), helper.read(folder .. "/again.usprof"))
    kit.convert(folder, "made.usprof.gz a.folded")
    kit.convert(folder, "made.usprof b.folded")
    assert.equal(helper.read(folder .. "/b.folded"), helper.read(folder .. "/a.folded"))
    helper.run("head -c 500 made.usprof.gz >cut.gz", folder)
    assert.matches("^microscope convert: cut.gz: byte 500: the gzip data is cut short\n$",
      kit.refused(folder, "cut.gz out.usprof"))
  end)

  it("is told of by the name it was given", function()
    for line, words in pairs {
      ["echo odd | $M convert - out.usprof"] = "standard input: its first bytes",
      ["$M convert - out.usprof </dev/null"] = "standard input: its first bytes",
      ["head -c 300 made.usprof | $M convert - out.pb"] = "standard input: the file has 300 bytes",
      ["mkfifo q; echo odd >q & $M convert --from pprof q out.pb"] = "q: byte 0: no field",
    } do
      local _, err, status = shell(line)
      assert.equal(1, status)
      assert.equal("microscope convert: " .. words, err:sub(1, 20 + #words))
    end
  end)

  it("gives its name to what is written from it", function()
    local out = shell("echo 'main 5' | $M convert --to speedscope - -")
    assert.matches('"name":"standard input"', out)
    helper.write(folder .. "/in.folded", "main 5\n")
    out = shell("$M convert --to speedscope in.folded -")
    assert.matches('"name":"in.folded"', out)
  end)
end)
