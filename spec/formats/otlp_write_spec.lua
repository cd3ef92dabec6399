-- OpenTelemetry profiles of ours, decoded by the protocol's field numbers.

local ffi = require("ffi")

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")

-- A number of seven bits a byte, as a Lua number (they are below 2^53 here), and where it ends.
local function varint(text, at)
  local value, scale = 0, 1
  while true do
    local byte = text:byte(at)
    value = value + byte % 128 * scale
    scale, at = scale * 128, at + 1
    if byte < 128 then return value, at end
  end
end

-- A message's fields: lists of numbers and texts by number.
local function fields(text)
  local out, at = setmetatable({}, { __index = function() return {} end }), 1
  while at <= #text do
    local tag, value
    tag, at = varint(text, at)
    local number, kind = math.floor(tag / 8), tag % 8
    if kind == 0 then
      value, at = varint(text, at)
    elseif kind == 1 then
      value, at = text:sub(at, at + 7), at + 8
    else
      assert.equal(2, kind)
      local size
      size, at = varint(text, at)
      value, at = text:sub(at, at + size - 1), at + size
    end
    local list = rawget(out, number) or {}
    out[number] = list
    list[#list + 1] = value
  end
  return out
end

-- A repeated number, packed into texts or not.
local function numbers(list, fixed)
  local out = {}
  for _, value in ipairs(list) do
    if type(value) == "number" then
      out[#out + 1] = value
    elseif fixed then
      for at = 1, #value, 8 do
        out[#out + 1] = ffi.cast("const uint64_t *", ffi.new("char[8]", value:sub(at, at + 7)))[0]
      end
    else
      local at = 1
      while at <= #value do out[#out + 1], at = varint(value, at) end
    end
  end
  return out
end

describe("convert to OpenTelemetry profiles", function()
  local folder, data, dictionary, strings, weights

  setup(function()
    folder = helper.folder()
    assert(capture.generate { path = folder .. "/a.usprof", samples = 3000, stacks = 100,
      functions = 80, processes = 2, labelled = 10, seed = 3 })
    kit.convert(folder, "a.usprof a.otlp")
    data = fields(helper.read(folder .. "/a.otlp"))
    dictionary = fields(data[2][1])
    strings = dictionary[5]
    weights = kit.weights(folder .. "/a.usprof")["cpu-clock"]
  end)
  teardown(function() helper.remove(folder) end)

  local function profile()
    local scoped = fields(fields(data[1][1])[2][1])
    assert.equal("microscope", fields(scoped[1][1])[1][1])
    assert.equal(1, #scoped[2])
    return fields(scoped[2][1])
  end
  local function string(index) return strings[(index or 0) + 1] end

  it("begins each table with an empty entry", function()
    for _, tab in ipairs { 1, 2, 3, 4, 5, 6, 7 } do assert.equal("", dictionary[tab][1]) end
  end)

  it("has all samples with their stacks, values and times", function()
    local p, got, count = profile(), {}, 0
    local kind = fields(p[1][1])
    assert.equal("cpu-clock", string(kind[1][1]))
    assert.equal("nanoseconds", string(kind[2][1]))
    for _, text in ipairs(p[2]) do
      local sample, path = fields(text), {}
      local stack = fields(dictionary[7][(sample[1][1] or 0) + 1])
      for _, index in ipairs(numbers(stack[1])) do
        for _, line in ipairs(fields(dictionary[2][index + 1])[3]) do
          local fn = fields(dictionary[3][fields(line)[1][1] + 1])
          table.insert(path, 1, string(fn[1][1]))
        end
      end
      local key = table.concat(path, ";"):gsub("^%[[^%]]*%];", "")
      local times = numbers(sample[5], true)
      local values = numbers(sample[4])
      assert.equal(#values, #times)
      for i, value in ipairs(values) do
        got[key] = (got[key] or 0) + value
        count = count + 1
        assert.is_true(times[i] >= 1700000000000000000ULL)
      end
    end
    assert.same(weights, got)
    assert.equal(3000, count)
    assert.equal(16, #p[7][1])
    assert.equal(1000000, p[6][1])
  end)

  it("has threads, processes, labels and build IDs as attributes", function()
    local found = {}
    for i = 2, #dictionary[6] do
      local entry = fields(dictionary[6][i])
      local value = fields(entry[2][1])
      local key = string(entry[1][1]) .. "=" .. tostring(value[1][1] or value[3][1])
      found[key] = entry[3][1] and string(entry[3][1]) or ""
    end
    assert.equal("", found["thread.name=worker-2"])
    assert.equal("", found["thread.id=1002"])
    assert.equal("", found["process.pid=1001"])
    assert.equal("", found["process.executable.name=server-1"])
    assert.equal("", found["route=/route/0"])
    assert.equal("bytes", found["request_bytes=1000"])
    local mapping = fields(dictionary[1][2])
    assert.equal("/usr/bin/generated", string(mapping[4][1]))
    local id = fields(dictionary[6][numbers(mapping[5])[1] + 1])
    assert.equal("process.executable.build_id.gnu", string(id[1][1]))
    assert.equal(40, #fields(id[2][1])[1][1])
  end)

  it("writes texts of any bytes as UTF-8", function()
    assert(require("microscope.writer").with(folder .. "/s.usprof", function(w)
      w:row("sources", { name = w:string("a\255\0\xe2\x82\xac\xed\xa0\x80"), unit = "bytes" })
    end))
    kit.convert(folder, "s.usprof s.otlp.gz")
    helper.run("gzip -dc s.otlp.gz > s.otlp", folder)
    local bad = "\239\191\189"
    assert.is_truthy(helper.read(folder .. "/s.otlp"):find("a" .. bad .. "\0\xe2\x82\xac"
      .. bad .. bad .. bad, 1, true))
  end)
end)
