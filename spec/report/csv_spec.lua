local csv = require("microscope.report.csv")
local helper = require("spec.helper")

local function row(...)
  local out = {}
  csv.row({ n = select("#", ...), ... }, function(...) out[#out + 1] = table.concat { ... } end)
  return table.concat(out)
end

describe("CSV", function()
  it("quotes what RFC 4180 says, and ends lines in CR LF", function()
    assert.equal('a,"b,c","d ""e""",,1.5,12\r\n', row("a", "b,c", 'd "e"', nil, 1.5, 12))
    assert.equal('"a\nb",true\r\n', row("a\nb", true))
  end)

  it("has no text that is taken for a formula; numbers stay numbers", function()
    assert.equal("'=1+1,'+x,'-x,'@x,-5\r\n", row("=1+1", "+x", "-x", "@x", -5))
    assert.equal("'\\tx,a=b\r\n", row("\tx", "a=b"))
  end)

  it("has nothing that a terminal acts on", function()
    assert.equal("a\\x1b[31m,\\xff\r\n", row("a\27[31m", "\xff"))
  end)

  it("is read back by another reader", function()
    local folder = helper.folder()
    helper.write(folder .. "/a.csv", row("a,b", 'c "d"', "e\nf", "", 1e15, -0.25))
    local out = helper.run("python3 -c 'import csv; print(list(csv.reader(open(\"a.csv\", "
      .. "newline=\"\"))))'", folder)
    assert.equal("[['a,b', 'c \"d\"', 'e\\nf', '', '1000000000000000', '-0.25']]\n", out)
    helper.remove(folder)
  end)
end)
