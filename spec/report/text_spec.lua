local result_table = require("microscope.report.table")
local text = require("microscope.report.text")

describe("long names", function()
  -- Patterns that look again from every byte on would take an hour here.
  it("are cut in time of their length", function()
    local long = ("x"):rep(2 ^ 22)
    assert.equal("", text.last_part(long .. "/"))
    assert.equal(long, text.last_part(long))
    assert.equal("c", text.last_part("a/b/c"))
    assert.equal("a b", text.trim_end("a b \t "))
    assert.equal("", text.trim_end("  "))
    local blanks = (" "):rep(2 ^ 22)
    assert.equal(blanks .. "x", text.trim_end(blanks .. "x" .. blanks))
    local shown = result_table.to_text { columns = { { name = "a" }, { name = "b" } },
      rows = { { "", "x" }, { blanks .. "y", "" } } }
    assert.equal(blanks .. " " .. "  x", shown:match("\n(.-)\n"))
  end)
end)

describe("a result as CSV", function()
  it("has nothing that a spreadsheet would run or a terminal act on", function()
    local parts = {}
    result_table.write({ columns = { { name = "=name" }, { name = "n", unit = "number" } },
      rows = { { "=1+1", -2.5 }, { "@a,\27[2J", nil } } }, "csv", nil, function(...)
      for i = 1, select("#", ...) do parts[#parts + 1] = (select(i, ...)) end
    end)
    assert.equal("'=name,n\r\n'=1+1,-2.5\r\n\"'@a,\\x1b[2J\",\r\n", table.concat(parts))
  end)
end)

describe("numbers", function()
  it("are grouped in thousands", function()
    assert.equal("0", text.count(0))
    assert.equal("999", text.count(999))
    assert.equal("1,234,567", text.count(1234567))
    assert.equal("1 sample", text.plural(1, "sample"))
    assert.equal("0 samples", text.plural(0, "sample"))
  end)

  it("of time have three digits and never 1000 of a unit", function()
    for ns, want in pairs {
      [0] = "0 ns", [999] = "999 ns", [1000] = "1.00 us", [12345] = "12.3 us",
      [999600] = "1.00 ms", [123456789] = "123 ms", [1.5e9] = "1.50 s", [9996e6] = "10.0 s",
      [6e11] = "600 s",
    } do
      assert.equal(want, text.time(ns))
    end
  end)

  it("of size and share", function()
    assert.equal("512 B", text.size(512))
    assert.equal("1.5 KiB", text.size(1536))
    assert.equal("0.0 %", text.percent(0))
    assert.equal("<0.1 %", text.percent(0.0004))
    assert.equal("45.1 %", text.percent(0.4512))
  end)
end)

describe("names", function()
  it("keep what a terminal shows as it is", function()
    for _, name in ipairs { "main", "a<b, c>::~d()", "größe", "日本", "C:\\x", "" } do
      assert.equal(name, text.escape(name))
    end
  end)

  it("lose what a terminal would act on", function()
    for name, want in pairs {
      ["a\27[31mb"] = "a\\x1b[31mb", ["a\nb\tc"] = "a\\nb\\tc", ["\127"] = "\\x7f",
      ["a\0b"] = "a\\x00b",
      ["\xc2\x9b1m"] = "\\xc2\\x9b1m", -- CSI as one character
      ["\xe2\x80\xaeabc"] = "\\xe2\\x80\\xaeabc", -- right-to-left override
    } do
      assert.equal(want, text.escape(name))
    end
  end)

  it("show bytes that are no UTF-8", function()
    for name, want in pairs {
      ["\xff"] = "\\xff", ["\xc0\xaf"] = "\\xc0\\xaf", ["a\xe2\x82"] = "a\\xe2\\x82",
      ["\xed\xa0\x80"] = "\\xed\\xa0\\x80", ["\xf4\x90\x80\x80"] = "\\xf4\\x90\\x80\\x80",
    } do
      assert.equal(want, text.escape(name))
    end
  end)

  it("are cut by characters, not bytes", function()
    assert.equal("größe", text.fit("größe", 5))
    assert.equal("gr...", text.fit("größere", 5))
    assert.equal("日本", text.fit("日本語", 2))
    assert.equal("abc", text.fit("abc", nil))
    assert.equal("   ß", text.right("ß", 4))
    assert.equal("ß   ", text.left("ß", 4))
  end)
end)

describe("bars", function()
  local numbers = require("microscope.report.numbers")

  it("are as long as shares, in eighths", function()
    assert.equal("", numbers.bar(0))
    assert.equal(("\xe2\x96\x88"):rep(10), numbers.bar(1))
    assert.equal(("\xe2\x96\x88"):rep(5), numbers.bar(0.5))
    assert.equal("\xe2\x96\x8f", numbers.bar(0.0125))
    assert.equal("\xe2\x96\x88\xe2\x96\x8c", numbers.bar(0.15))
  end)

  it("stand in tables and trees of terminals with room", function()
    local fake, profile = require("spec.support.fake"), require("microscope.query.profile")
    local profile_text = require("microscope.report.profile_text")
    local cap = fake.stacks { { "main > a", 30 }, { "main > b", 10 } }
    local function written(options)
      local out = {}
      options.limit, options.min_percent = 30, 0
      profile_text.write(cap, profile.of(cap, {}), options, function(...)
        out[#out + 1] = table.concat { ... }
      end)
      return table.concat(out)
    end
    local bar = ("\xe2\x96\x88"):rep(7) .. "\xe2\x96\x8c"
    assert.matches(bar .. " +a %(app%)\n", written { bars = true, columns = 110 })
    assert.matches(bar .. " +a %(app%)\n", written { bars = true, columns = 110, tree = true })
    assert.not_matches("\xe2\x96", written { bars = true, columns = 80 })
    assert.not_matches("\xe2\x96", written { bars = true })
    assert.not_matches("\xe2\x96", written { columns = 110 })
  end)
end)
