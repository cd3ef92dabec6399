-- Which format a file is in: told from its first bytes, whatever they are.

local helper = require("spec.helper")
local convert = require("microscope.convert")
local kit = require("spec.formats.kit")

describe("what a file's first bytes tell", function()
  -- As much as is looked at: what looks again from every byte on takes a minute for each.
  local SIZE = 2 ^ 16
  local PIECES = { "\0", " ", "a", "1", "[", "{", "a;", "a ", "a 1 ", "1 ", " 1", '{"a":', "\n",
    "\t1", "\8\1", "\10\0", '"ph" ', '"traceEvents" ', "a/b ", "x 1/2 " }
  local HEADS = { "", "[", "{", "[ ]", "main;", "x ", "\239\187\191[" }

  it("takes time of their length", function()
    for _, format in ipairs(convert.formats()) do
      for _, piece in ipairs(format.detect and PIECES or {}) do
        for _, head in ipairs(HEADS) do
          local text = head .. piece:rep(SIZE / #piece)
          format.detect(text)
          format.detect(text .. "!")
        end
      end
    end
  end)

  it("is the same for whole and for cut texts", function()
    local folder = helper.folder()
    for text, want in pairs {
      ["main;work 5"] = "folded", ["main;work 5\r\n\r\nmain 6\n"] = "folded",
      ["main;work\n"] = false, ["main;work 5\nmain;wo"] = "folded", ["main;work 5\nmain\n"] = false,
      ["[]"] = "chrome", ["[ ]\n"] = "chrome", ["["] = "chrome", ["[1]"] = false,
      ['[{"ph":"X"}]'] = "chrome", ['{"traceEvents" : []}'] = "chrome",
    } do
      helper.write(folder .. "/a", text)
      local format = convert.for_reading(folder .. "/a")
      assert.equal(want, format and format.name or false, text)
    end
    helper.remove(folder)
  end)

  it("gives no room to a compressed file that is no perf.data", function()
    local folder = helper.folder()
    helper.run("head -c 64M /dev/zero | gzip > zero.gz", folder)
    local err = kit.refused(folder, "--from perf zero.gz out.usprof")
    assert.matches("zero.gz: byte 0: no perf.data", err)
    helper.remove(folder)
  end)
end)
