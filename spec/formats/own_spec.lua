-- Formats of a user's own, and what `convert` says of formats.

local helper = require("spec.helper")

describe("convert with a format of one's own", function()
  local folder, config

  before_each(function()
    folder = helper.folder()
    config = folder .. "/config"
    helper.run("mkdir -p config/microscope/formats && chmod -R go-w config", folder)
  end)
  after_each(function() helper.remove(folder) end)

  local function own(name, text)
    local path = config .. "/microscope/formats/" .. name .. ".lua"
    helper.write(path, text)
    helper.run("chmod go-w " .. helper.quote(path))
  end

  local function convert(arguments)
    return helper.run(("XDG_CONFIG_HOME=%s %s/bin/microscope convert %s"):format(
      helper.quote(config), helper.quote(helper.stage), arguments), folder)
  end

  local COUNTS = [[
    return {
      summary = "A name and a count a line.",
      extensions = { ".counts" },
      keeps = { "functions" },
      detect = function(head) return head:sub(1, 7) == "#counts" end,
      read = function(path, ctx)
        local w = ctx.writer
        w:row("sources", { name = w:string("count"), unit = "count" })
        w:row("processes", {})
        w:row("threads", {})
        w:row("stacks", { ["end"] = "NOT_STATED" })
        for line in io.lines(path) do
          local name, count = line:match("^(%S+) (%d+)$")
          if name then
            local l = w:row("locations", { kind = "named", offset = w:string(name) })
            local stack = w:row("stacks", { parent = 0, location = l })
            w:row("samples", { stack = stack, weight = tonumber(count) })
          elseif line:sub(1, 1) ~= "#" then
            ctx.lost("the line %q", line)
          end
        end
        return true
      end,
      write = function(cap, path, ctx)
        return require("microscope.output").with(path, nil, function(out)
          out:write("#counts of ", cap:rows("samples"), "\n")
        end)
      end,
    }]]

  it("reads and writes it, known by its bytes and its ending", function()
    own("counts", COUNTS)
    helper.write(folder .. "/in.txt", "#counts\nmain 3\nwork 4\nodd\n")
    local _, err, status = convert("in.txt in.usprof")
    assert.equal(0, status, err)
    assert.equal("microscope convert: left out of in.txt: the line \"odd\"\n", err)
    local out = helper.microscope("report in.usprof", folder)
    assert.matches("work", out)
    _, err, status = convert("in.usprof out.counts")
    assert.equal(0, status, err)
    assert.equal("#counts of 2\n", helper.read(folder .. "/out.counts"))
    out, err = convert("in.txt - --to folded")
    assert.equal("main 3\nwork 4\n", out, err)
  end)

  it("lists it before the shipped ones, and one that is broken with its fault", function()
    own("counts", COUNTS)
    own("broken", "return { summary = 'x' ")
    local out, _, status = convert("--list")
    assert.equal(0, status)
    assert.matches("counts +read, write +%.counts +A name and a count a line%.\n", out)
    assert.matches("broken +%- .*broken.lua", out)
    assert.matches("pprof +read, write", out)
  end)

  it("stands in the place of a shipped one of its name", function()
    own("folded", (COUNTS:gsub("%.counts", ".folded")))
    helper.write(folder .. "/in.txt", "#counts\nmain 3\n")
    local _, err, status = convert("in.txt in.usprof && XDG_CONFIG_HOME=config "
      .. helper.stage .. "/bin/microscope convert in.usprof x.folded")
    assert.equal(0, status, err)
  end)

  it("tells of faults in it with their place, and writes nothing", function()
    for text, words in pairs {
      ["error('no luck')"] = "counts.lua:%d+: no luck",
      ["ctx.fail('line %d is bad', 7)"] = "in.txt: line 7 is bad",
      ["return nil, 'because'"] = "because",
      ["ctx.writer:row('samples', { stack = 5 })"] = "the rows make no valid capture: samples%.",
      ["ctx.writer:row('samples', { colour = 5 })"] = "samples has no column colour",
    } do
      own("counts", "return { summary = 'x', extensions = {},\n"
        .. "detect = function() return true end,\nread = function(path, ctx)\n" .. text
        .. "\nend }")
      helper.write(folder .. "/in.txt", "anything")
      local _, err, status = convert("in.txt in.usprof")
      assert.equal(1, status)
      assert.matches(words, err)
      assert.matches("^microscope convert: [^\n]*\n$", err)
      assert.is_nil(io.open(folder .. "/in.usprof"))
    end
  end)

  it("does not read one that others may write", function()
    own("counts", COUNTS)
    helper.run("chmod go+w config/microscope/formats/counts.lua", folder)
    helper.write(folder .. "/in.txt", "#counts\n")
    local _, err, status = convert("in.txt in.usprof")
    assert.equal(1, status)
    assert.matches("known format", err)
    local out = convert("--list")
    assert.matches("others may write it", out)
  end)

  it("says what formats there are when one is not", function()
    helper.write(folder .. "/in.txt", "main 1\n")
    local _, err, status = convert("in.txt out.xyz")
    assert.equal(1, status)
    assert.matches("its ending is of no known format; "
      .. "name it with %-%-to %(usprof, otlp, .*folded%)", err)
    _, err, status = convert("--to nothing in.txt out")
    assert.equal(1, status)
    assert.matches("no format 'nothing'; formats to write are usprof, otlp", err)
    _, err, status = convert("--to perf in.txt out.usprof")
    assert.equal(1, status)
    assert.matches("format perf can be read only", err)
    _, err, status = convert("in.txt")
    assert.equal(2, status)
    assert.matches("name a file to read and one to write", err)
  end)

  it("reads a folder of captures as one, and writes it as one file", function()
    local capture, kit = require("microscope.capture"), require("spec.formats.kit")
    helper.run("mkdir segments", folder)
    for i = 1, 2 do
      assert(capture.generate { path = folder .. "/segments/" .. i .. ".usprof", samples = 1000,
        stacks = 50, functions = 40, seed = i })
    end
    kit.convert(folder, "segments whole.usprof")
    kit.convert(folder, "segments whole.folded")
    kit.convert(folder, "whole.usprof again.folded")
    assert.equal(helper.read(folder .. "/whole.folded"), helper.read(folder .. "/again.folded"))
    assert(capture.with(folder .. "/whole.usprof", function(cap)
      assert.equal(2000, cap:rows("samples"))
      return true
    end))
  end)

  it("names what of a folder is no capture, and has the rest", function()
    local capture, kit = require("microscope.capture"), require("spec.formats.kit")
    helper.run("mkdir segments", folder)
    assert(capture.generate { path = folder .. "/segments/2.usprof", samples = 1000, stacks = 50,
      functions = 40, seed = 1 })
    helper.write(folder .. "/segments/1.usprof", "none")
    for _, to in ipairs { "usprof", "folded" } do
      local told = kit.convert(folder, "segments whole." .. to)
      assert.matches("left out of segments: 1.usprof (not a capture: 4 bytes are less than a"
        .. " header)\n", told, 1, true)
      if to == "folded" then assert.matches("; 1 label of a sample; 8 zones", told, 1, true) end
    end
    kit.convert(folder, "whole.usprof again.folded")
    kit.convert(folder, "segments/2.usprof alone.folded")
    assert.equal(helper.read(folder .. "/alone.folded"), helper.read(folder .. "/whole.folded"))
    assert.equal(helper.read(folder .. "/alone.folded"), helper.read(folder .. "/again.folded"))
  end)
end)
