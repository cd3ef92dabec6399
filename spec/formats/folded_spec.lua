-- Folded stacks there and back, and lines that are none.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")

describe("convert folded stacks", function()
  local folder

  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  local function read(text, options)
    helper.write(folder .. "/in.folded", text)
    local said = kit.convert(folder, (options or "") .. " in.folded in.usprof")
    return kit.weights(folder .. "/in.usprof").samples, said
  end

  it("keeps names and counts on the way there and back", function()
    assert(capture.generate { path = folder .. "/a.usprof", samples = 20000, stacks = 400,
      functions = 300 })
    kit.convert(folder, "a.usprof a.folded")
    kit.convert(folder, "a.folded b.usprof")
    kit.convert(folder, "b.usprof b.folded")
    local _, _, status = helper.run("sort a.folded > a; sort b.folded > b; cmp a b", folder)
    assert.equal(0, status)
    -- A period is a sample, so the counts are those of the samples of each path.
    local of_stacks, total = kit.weights(folder .. "/a.usprof")["cpu-clock"], 0
    for _, count in pairs(kit.weights(folder .. "/b.usprof").samples) do total = total + count end
    assert.equal(20000, total)
    for path, count in pairs(kit.weights(folder .. "/b.usprof").samples) do
      assert.equal(of_stacks[path], count * 1000000, path)
    end
    local out = helper.microscope("report b.usprof", folder)
    assert.matches("no unwind information", out)
  end)

  it("writes for all whom the umask lets read; captures are their owner's", function()
    helper.write(folder .. "/in.folded", "a;b 1\n")
    local out, err, status = helper.run([[umask 022; rm -f o.folded o.usprof
      for to in o.folded o.usprof; do $MIC_STAGE/bin/microscope convert in.folded $to; done
      stat -c %a o.folded o.usprof]], folder)
    assert.same({ "644\n600\n", 0 }, { out, status }, err)
  end)

  it("splits at the last blank", function()
    local weights, said = read("a b;operator new(unsigned long) 7\nx;y\t3\r\nx;y 5  \n\nz 1")
    assert.same({ ["a b;operator new(unsigned long)"] = 7, ["x;y"] = 8, z = 1 }, weights)
    assert.equal("", said)
  end)

  it("tells a bad line with its number, and how many there are", function()
    local weights, said = read("a;b 1\nno count here\na;b x\nc;d -1\na;b 2.5\n 5\nq 1\n",
      "--from folded")
    assert.same({ ["a;b"] = 1, q = 1 }, weights)
    assert.equal("microscope convert: left out of in.folded: 5 lines of 7 are no stack: line 2: "
      .. "no whole number behind the last blank\n", said)
  end)

  it("refuses a file without a stack", function()
    for _, text in ipairs { "", "\n\n", "no count\n", "99999999999999999999999 x\n",
      "a 18446744073709551616\n" } do
      helper.write(folder .. "/bad.folded", text)
      local err = kit.refused(folder, "--from folded bad.folded bad.usprof")
      assert.matches("bad.folded: no folded stack in it", err)
      if text:match("%S") then assert.matches("line 1: ", err) end
      assert.is_nil(io.open(folder .. "/bad.usprof"))
    end
  end)

  it("takes the greatest count, deep stacks and long lines", function()
    local deep = ("f;"):rep(20000) .. "g"
    local weights = read("a 18446744073709551615\n" .. deep .. " 2\n" .. ("n"):rep(300000)
      .. " 3\n")
    assert.equal(2 ^ 64, weights.a)
    assert.equal(2, weights[deep])
    assert.equal(3, weights[("n"):rep(300000)])
  end)

  it("writes what would separate frames as something else, and says so", function()
    assert(require("microscope.writer").with(folder .. "/s.usprof", function(w)
      local name = w:string("Lcom/a;->b\nc")
      w:row("sources", { name = w:string("n"), unit = "count" })
      w:row("processes", {})
      w:row("threads", {})
      w:row("locations", { kind = "named", offset = name })
      w:row("stacks", { ["end"] = "OUTERMOST" })
      w:row("stacks", { parent = 0, location = 0 })
      w:row("samples", { stack = 1, weight = 4 })
    end))
    local said = kit.convert(folder, "s.usprof s.folded")
    assert.equal("Lcom/a:->b c 4\n", helper.read(folder .. "/s.folded"))
    assert.matches('";" and line ends in 1 names', said)
  end)

  it("reads and writes compressed files, and pipes", function()
    helper.write(folder .. "/p.folded", "a;b 3\n")
    for _, command in ipairs {
      "convert p.folded p.folded.gz && gzip -dc p.folded.gz",
      "convert p.folded p.folded.zst && zstd -qdc p.folded.zst",
      "convert p.folded p.folded.gz && $microscope convert --to folded p.folded.gz -",
      "convert p.folded p.folded.zst && $microscope convert --to folded p.folded.zst -",
      "convert --to folded - - < p.folded",
      "convert --to folded p.folded /dev/stdout | cat",
    } do
      local out, err = helper.run("microscope=" .. helper.quote(helper.stage .. "/bin/microscope")
        .. "; $microscope " .. command, folder)
      assert.equal("a;b 3\n", out, command .. ": " .. err)
    end
  end)

  it("reads two million lines in little memory", function()
    local _, err, status = helper.run(("awk 'BEGIN { for (i = 0; i < 2000000; i++)"
      .. ' print "main;work_" i %% 1000 ";leaf_" i %% 7 " 1" }\' > many.folded'
      .. " && (ulimit -v 400000; %s/bin/microscope convert many.folded many.usprof)"):format(
      helper.quote(helper.stage)), folder)
    assert.equal("", err)
    assert.equal(0, status)
    assert(capture.with(folder .. "/many.usprof", function(cap)
      assert.equal(2000000, cap:rows("samples"))
      assert.equal(1 + 1 + 1000 + 7000, cap:rows("stacks"))
      return true
    end))
  end)
end)
