-- What formats keep and lose is what they say: random captures there and back again.

local capture = require("microscope.capture")
local convert = require("microscope.convert")
local helper = require("spec.helper")
local kept = require("spec.formats.kept")
local losses = require("microscope.losses")
local summary_query = require("microscope.query.summary")
local utf8_length = require("microscope.report.text").utf8_length

local SEEDS = 20

-- A text with U+FFFD for what is no UTF-8.
local function replaced(text)
  local out, at = {}, 1
  while at <= #text do
    local size = utf8_length(text, at)
    out[#out + 1] = size and text:sub(at, at + size - 1) or "\239\191\189"
    at = at + (size or 1)
  end
  return table.concat(out)
end

describe("a capture there and back again by way of", function()
  local folder
  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  -- What a format says: facts that it loses of a capture, and those it keeps; and the source that
  -- it writes when it has room for one.
  local function said_of(path, format)
    return assert(capture.with(path, function(cap)
      local lost, keeps = {}, {}
      for _, loss in ipairs(losses.lost(cap, format.keeps)) do lost[loss.name] = loss.text end
      for _, fact in ipairs(format.keeps) do keeps[fact] = true end
      for fact, fn in pairs(format.keeps) do
        if type(fn) == "function" then keeps[fact] = fn(cap) end
      end
      return { lost = lost, keeps = keeps, source = summary_query.cpu_source(cap).name }
    end))
  end

  local function round(name, seed)
    local format = assert(convert.by_name(name, "write"))
    local from, file, to = folder .. "/from.usprof", folder .. "/file", folder .. "/to.usprof"
    assert(kept.make(from, seed))
    local said = said_of(from, format)
    local lost = said.lost
    assert(convert.run(from, file, { to = name }))
    local back = assert(convert.run(file, to, { from = name }))
    assert.same({}, back.lost_reading, ("%s, seed %d"):format(name, seed))
    local text = lost.bytes and replaced or nil
    local options = { shares = lost.quantities ~= nil, text = text, classes = name == "speedscope" }
    -- How many samples there were is a quantity of its own in pprof files.
    options.ignored = name == "pprof" and "samples$" or nil
    local after = kept.views(to, options)
    -- Those that lose sources write one, but for the one that adds up those of a unit.
    options.ignored = nil
    options.source = lost.sources and not options.classes and said.source or nil
    local before = kept.views(from, options)
    return before, after, said
  end

  it("any format knows all facts", function() assert.same({}, kept.unseen()) end)

  for _, name in ipairs { "pprof", "otlp", "chrome", "firefox", "speedscope", "folded" } do
    it(name .. " has all that is not said to be lost, and no more", function()
      local declared, real = {}, {}
      for seed = 1, SEEDS do
        local before, after, said = round(name, seed)
        for fact in pairs(before) do
          if said.lost[fact] then
            declared[fact] = true
            real[fact] = real[fact] or before[fact] ~= after[fact] or nil
          elseif said.keeps[fact] and before[fact] ~= after[fact] then
            helper.write(folder .. "/before", before[fact])
            helper.write(folder .. "/after", after[fact])
            local difference = helper.run("diff before after", folder)
            assert(false, ("%s, seed %d: %s is not kept:\n%s"):format(name, seed, fact,
              difference:sub(1, 2000)))
          end
        end
      end
      assert.same(declared, real)
    end)
  end
end)
