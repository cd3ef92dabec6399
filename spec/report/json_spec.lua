local cjson = require("cjson")

local json = require("microscope.report.json")

describe("JSON", function()
  it("keeps the order of keys and whole numbers exact", function()
    assert.equal('{"b":9007199254740991,"a":[1,-2,0.5,1e+300],"n":null,"t":true}', json.encode(
      json.object { "b", 2 ^ 53 - 1, "a", json.array { 1, -2, 0.5, 1e300 }, "n", json.null,
        "t", true }))
  end)

  it("is read back by another reader, whatever the bytes", function()
    local every = {}
    for i = 0, 127 do every[#every + 1] = string.char(i) end
    local value = table.concat(every) .. "größe 日本 \xf0\x9f\x98\x80"
    assert.equal(value, cjson.decode(json.encode(json.object { "v", value })).v)
  end)

  it("writes what is no UTF-8 as the replacement character", function()
    assert.equal('"a\xef\xbf\xbdb\xef\xbf\xbd\xef\xbf\xbd"', json.encode("a\xffb\xc0\xaf"))
  end)

  it("escapes what a terminal would act on", function()
    local value = "a\xc2\x9b31m\xe2\x80\xae\xe2\x81\xa6\27é"
    assert.equal('"a\\u009b31m\\u202e\\u2066\\u001bé"', json.encode(value))
    assert.equal(value, cjson.decode(json.encode(json.array { value }))[1])
  end)

  it("writes texts of any length", function()
    for _, unit in ipairs { "x", "é", "\1", "\xe2\x80\xae", '"\\' } do
      local value = "a" .. unit:rep(30011)
      assert.equal(value, cjson.decode(json.encode(json.array { value }))[1])
    end
    assert.equal('"' .. ("\xef\xbf\xbd"):rep(30011) .. '"', json.encode(("\xff"):rep(30011)))
  end)

  it("has no NaN and no infinity", function()
    assert.equal("[null,null]", json.encode(json.array { 0 / 0, 1 / 0 }))
  end)

  it("refuses what has no JSON", function()
    assert.has_error(function() json.encode(print) end, "no JSON for a function")
  end)
end)
