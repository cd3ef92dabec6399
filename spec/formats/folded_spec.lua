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

  -- A capture made by fn(writer), written: its lines, or what is said when it cannot be.
  local function written(fn)
    assert(require("microscope.writer").with(folder .. "/w.usprof", function(w)
      w:row("sources", { name = w:string("n"), unit = "count" })
      w:row("processes", {})
      w:row("threads", {})
      fn(w)
    end))
    os.remove(folder .. "/w.folded")
    local _, err = helper.microscope("convert w.usprof w.folded", folder)
    local file = io.open(folder .. "/w.folded")
    if not file then return nil, err end
    local text = file:read("*a")
    file:close()
    return text, err
  end

  it("writes a line for a path, however rows share out its frames", function()
    assert.equal("a;b;c 7\na;c 8\n[depth limit];a;b;c 16\n", (written(function(w)
      for _, name in ipairs { "a", "b", "c" } do
        w:row("functions", { name = w:string(name), linkage_name = w:string(name) })
      end
      -- Locations by their functions, the innermost first.
      local a, b, c = 0, 1, 2
      for l, functions in ipairs { { a }, { b }, { c }, { b, a }, { c, b }, { c, b, a }, { c } } do
        w:row("locations", { kind = "anon", offset = l })
        for i, fn in ipairs(functions) do
          w:row("lines", { location = l - 1, ["function"] = fn, depth = i - 1 })
        end
      end
      w:row("stacks", { ["end"] = "OUTERMOST" })
      w:row("stacks", { ["end"] = "DEPTH_LIMIT" })
      local rows = 2
      local function stack(root, ...)
        local at = root
        for _, location in ipairs { ... } do
          w:row("stacks", { parent = at, location = location })
          at, rows = rows, rows + 1
        end
        return at
      end
      w:row("samples", { stack = stack(0, 0, 1, 2), weight = 1 })
      w:row("samples", { stack = stack(0, 3, 6), weight = 2 })
      w:row("samples", { stack = stack(0, 0, 6), weight = 8 })
      w:row("samples", { stack = stack(0, 5), weight = 4 })
      w:row("samples", { stack = stack(1, 0, 4), weight = 16 })
      w:row("samples", { stack = stack(0, 0, 4), weight = 0 })
    end)))
  end)

  it("writes places without a function as reports name them", function()
    local text, said = written(function(w)
      w:row("modules", { name = w:string("lib;x.so") })
      for _, place in ipairs {
        { kind = "native", module = 0, offset = 0 }, { kind = "file", module = 0, offset = 0xabc },
        { kind = "anon", offset = 0x7fffffffffff }, { kind = "unmapped", offset = 16 },
        { kind = "signal", module = 0, offset = 1 }, { kind = "named", offset = w:string("") },
      } do
        w:row("locations", place)
      end
      w:row("stacks", { ["end"] = "OUTERMOST" })
      for i = 0, 5 do w:row("stacks", { parent = i < 5 and i or 0, location = i }) end
      for _, row in ipairs { 5, 6, 0 } do w:row("samples", { stack = row, weight = 1 + row }) end
    end)
    assert.equal("[no frames] 1\nlib:x.so+0x0;lib:x.so+0xabc;[anon 0x7fffffffffff];[unmapped 0x10];"
      .. "[signal] 6\n[no frames] 7\n", text)
    assert.matches('";" and line ends in 2 names', said)
  end)

  it("keeps every digit, and refuses a sum that has too many", function()
    local function weigh(...)
      local weights = { ... }
      return written(function(w)
        w:row("stacks", { ["end"] = "OUTERMOST" })
        for _, weight in ipairs(weights) do w:row("samples", { stack = 0, weight = weight }) end
      end)
    end
    assert.equal("[no frames] 18446744073709551615\n", (weigh(0xfffffffffffffffeULL, 1)))
    local text, said = weigh(1, 0xffffffffffffffffULL)
    assert.is_nil(text)
    assert.matches("sample 1: its stack's samples weigh more than 2^64 - 1", said, 1, true)
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
