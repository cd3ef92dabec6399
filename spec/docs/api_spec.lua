-- The reference of the Lua API says what the sources say, of everything that is public.

local helper = require("spec.helper")
local sources = require("spec.support.sources")
local doc = require("microscope.doc")
local microscope = require("microscope")

describe("the reference of the API", function()
  local by_name = {}
  for _, entry in ipairs(doc.all(helper.root .. "/lua/microscope")) do
    by_name[entry.name] = entry
  end

  local function missing(prefix, object)
    local found = {}
    for name in pairs(object) do
      if type(name) == "string" and name:sub(1, 1) ~= "_" then
        local entry = by_name[prefix .. name]
        if not entry or entry.text == "" then found[#found + 1] = prefix .. name end
      end
    end
    table.sort(found)
    return found
  end

  it("has every public function and value", function()
    assert.same({}, missing("microscope.", microscope))
    local folder = helper.folder()
    assert(microscope.generate { path = folder .. "/a.usprof", samples = 10 })
    local cap = assert(microscope.open(folder .. "/a.usprof"))
    assert.same({}, missing("cap:", getmetatable(cap).__index))
    assert.same({}, missing("column:", getmetatable(cap:column("samples", "stack")).__index))
    cap:close()
    assert(microscope.write_capture(folder .. "/b.usprof", function(w)
      assert.same({}, missing("w:", getmetatable(w).__index))
      w:row("clocks", {})
    end))
    helper.remove(folder)
  end)

  it("has nothing that is not there", function()
    for name in pairs(by_name) do
      local own = name:match("^microscope%.(.+)$")
      if own then assert.is_not_nil(microscope[own], name) end
    end
  end)

  it("sees a function without a comment", function()
    local entries = doc.parse("local M = {}\n--- Good.\nfunction M.good(a) end\n"
      .. "function M.bad() end\n-- ## Part\n-- Not one.\nfunction M.plain() end\n"
      .. "function M._own() end\n", { M = "m." })
    assert.same({ "m.good", "m.bad", "m.plain" },
      { entries[1].name, entries[2].name, entries[3].name })
    assert.same({ "Good.", "", "" }, { entries[1].text, entries[2].text, entries[3].text })
    assert.equal("Part", entries[3].section)
    assert.equal(3, #entries)
  end)

  it("is not stale", function()
    local out, err, status = helper.run("luajit cmake/api_reference.lua --check", helper.root)
    assert.same({ "", "", 0 }, { out, err, status })
    assert.is_truthy(#sources.read("docs/api.md") > 10000)
  end)
end)
