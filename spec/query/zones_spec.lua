-- What zones cost: totals of a site are the time in which one of its zones was open.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local writer = require("microscope.writer")
local zones = require("microscope.query.zones")

describe("zones by site", function()
  local folder
  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  local OPEN = 0xffffffffffffffffULL

  -- Sites of a list of { site, thread, start, end or nil }.
  local function by_site(list)
    assert(writer.with(folder .. "/a.usprof", function(w)
      w:row("processes", {})
      for _ = 1, 3 do w:row("threads", {}) end
      for _, name in ipairs { "f", "g" } do w:row("sites", { name = w:string(name) }) end
      for i, z in ipairs(list) do
        w:row("zones", { site = z[1], thread = z[2], start_ns = z[3], end_ns = z[4] or OPEN,
          lane = i })
      end
    end))
    return assert(capture.with(folder .. "/a.usprof", function(cap)
      local out = {}
      for _, site in ipairs(zones.by_site(cap)) do out[site.name] = site end
      return out
    end))
  end

  it("count what lies within another of its site once, of each thread", function()
    local out = by_site { { 0, 0, 0, 100 }, { 0, 0, 10, 90 }, { 1, 0, 20, 30 }, { 0, 0, 20, 30 },
      { 0, 0, 80, 120 }, { 0, 1, 50, 60 }, { 0, 0, 200, 210 }, { 0, 1, 300 } }
    assert.equal(120 + 10 + 10, out.f.total_ns)
    assert.equal(6, out.f.count)
    assert.equal(1, out.f.unended)
    assert.equal((100 + 80 + 10 + 40 + 10 + 10) / 6, out.f.mean_ns)
    assert.equal(100, out.f.longest_ns)
    assert.equal(10, out.g.total_ns)
  end)

  it("do so in whatever order they lie", function()
    math.randomseed(7)
    for _ = 1, 50 do
      local list, covered = {}, {}
      for i = 1, 40 do
        local start = math.random(0, 200)
        list[i] = { math.random(0, 1), math.random(0, 2), start, start + math.random(0, 50) }
        for at = list[i][3], list[i][4] - 1 do
          covered[("%d %d %d"):format(list[i][1], list[i][2], at)] = list[i][1]
        end
      end
      local want = { [0] = 0, [1] = 0 }
      for _, site in pairs(covered) do want[site] = want[site] + 1 end
      local out = by_site(list)
      assert.equal(want[0], out.f and out.f.total_ns or 0)
      assert.equal(want[1], out.g and out.g.total_ns or 0)
    end
  end)
end)
