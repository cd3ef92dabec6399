-- Small files that are made so that what they tell of is far more than they are: each is read in
-- time and memory of its own size, or refused.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")
local wire = require("spec.formats.wire")

-- Far more than any takes, and far less than what each took that is no longer so.
local LIMIT_S = 60

describe("convert from a file that says a little a great many times:", function()
  local folder
  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  local function convert(name, text)
    helper.write(folder .. "/" .. name, text)
    local _, err, status = helper.run(("timeout -s KILL %d %s convert %s out.usprof </dev/null")
      :format(LIMIT_S, helper.quote(helper.stage .. "/bin/microscope"), name), folder)
    return status, err
  end

  -- A ProfilesData message of tables of the dictionary, a resource's attributes and samples.
  local function otlp(tables, attributes, samples)
    local strings = { "", "samples", "count", "route", "shop" }
    for i, text in ipairs(strings) do strings[i] = wire.bytes(5, text) end
    local type = wire.bytes(1, wire.number(1, 1) .. wire.number(2, 2))
    return wire.bytes(2, wire.bytes(1, "") .. wire.bytes(2, "") .. wire.bytes(6, "")
        .. wire.bytes(7, "") .. tables .. table.concat(strings))
      .. wire.bytes(1, wire.bytes(1, attributes)
        .. wire.bytes(2, wire.bytes(2, type .. samples)))
  end
  local PLACE = wire.bytes(2, wire.number(2, 77))
  local ATTRIBUTE = wire.bytes(6, wire.number(1, 3) .. wire.bytes(2, wire.bytes(1, "x")))

  it("a deep stack of many samples, many attributes of a mapping of many places", function()
    local many = 60000
    local sample = wire.bytes(2, wire.number(1, 1) .. wire.bytes(4, "\1"))
    local status, err = convert("stack.otlp", otlp(PLACE
      .. wire.bytes(7, wire.bytes(1, ("\1"):rep(many))), "", sample:rep(many)))
    assert.same({ 0, "" }, { status, err })
    local stack = kit.weights(folder .. "/out.usprof").samples
    assert.equal(many, stack[next(stack)])
    local places = {}
    for i = 1, many do places[i] = wire.varint(i) end
    status, err = convert("mapping.otlp", otlp(ATTRIBUTE .. wire.bytes(1, wire.number(1, 1)
      .. wire.number(2, 4096) .. wire.bytes(5, ("\1"):rep(many)))
      .. wire.bytes(2, wire.number(1, 1) .. wire.number(2, 7)):rep(many)
      .. wire.bytes(7, wire.bytes(1, table.concat(places))), "", sample))
    assert.same({ 0, "" }, { status, err })
  end)

  it("many attributes of samples, which each of their values has", function()
    local many = 60000
    local status, err = convert("values.otlp", otlp(PLACE .. ATTRIBUTE .. wire.bytes(7,
      wire.bytes(1, "\1")), "", wire.bytes(2, wire.number(1, 1)
      .. wire.bytes(2, ("\1"):rep(many)) .. wire.bytes(4, ("\1"):rep(many)))))
    assert.equal(1, status)
    assert.matches("values.otlp: byte %d+: a sample of more than 1024 attributes\n$", err)
    status, err = convert("resource.otlp", otlp(PLACE .. wire.bytes(7, wire.bytes(1, "\1")),
      wire.bytes(1, wire.bytes(1, "k") .. wire.bytes(2, wire.bytes(1, "v"))):rep(many),
      wire.bytes(2, wire.number(1, 1) .. wire.bytes(4, "\1")):rep(many)))
    assert.equal(1, status)
    assert.matches("a sample of more than 1024 attributes\n$", err)
  end)

  it("a long text that paths of mappings are made with", function()
    local lines = { "heap profile: 1: 2 [1: 2] @ heapprofile", " 1: 2 [1: 2] @ 0x11",
      "MAPPED_LIBRARIES:", "build=/" .. ("a"):rep(2 ^ 20) }
    for i = 1, 10000 do
      lines[#lines + 1] = ("%x-%x r-xp 0 0 0 $build%d"):format(i * 16, i * 16 + 16, i)
    end
    local status, err = convert("long.heap", table.concat(lines, "\n"))
    assert.same({ 0, "" }, { status, err })
    assert(capture.with(folder .. "/out.usprof", function(cap)
      return assert.equal("$build1", cap:string(cap:array("modules", "path")[0]))
    end))
  end)
end)
