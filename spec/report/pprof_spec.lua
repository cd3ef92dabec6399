-- The numbers of reports beside those of `go tool pprof` on the same capture, written as a pprof
-- profile: the function table against -top, and callers and callees against -peek and -tree.

local capture = require("microscope.capture")
local focus = require("microscope.query.focus")
local helper = require("spec.helper")
local keys = require("microscope.query.keys")
local kit = require("spec.formats.kit")
local profile = require("microscope.query.profile")
local symbols = require("microscope.query.symbols")

local ALL = "-nodecount=100000 -nodefraction=0 -edgefraction=0 -unit=ns"

-- pprof shows names without arguments, and marks inlined ones.
local function short(name)
  return (name:gsub(" %([%w-]*inline%)$", ""):gsub("%(.*$", ""))
end

local function number(text) return tonumber((text:gsub("ns$", ""))) end

-- name -> {flat, cum}
local function top_of(text)
  local out = {}
  for line in text:match("\n +flat[^\n]*\n(.*)$"):gmatch("[^\n]+") do
    local flat, cum, name = line:match("^ *(%S+) +%S+ +%S+ +(%S+) +%S+ +(.-)%s*$")
    out[short(name)] = { number(flat), number(cum) }
  end
  return out
end

-- name -> {self=, total=, callers= name -> weight, callees=}
local function calls_of(text)
  local out = {}
  local blocks = text:match("calls%% %+ context[^\n]*\n%-[^\n]*\n(.*)$")
  for block in (blocks .. "\n"):gmatch("(.-)\n%-%-%-%-[^\n]*\n?") do
    local entry, list = { callers = {}, callees = {} }, "callers"
    for line in block:gmatch("[^\n]+") do
      local flat, cum, name = line:match("^ *(%S+) +%S+ +%S+ +(%S+) +%S+%s*| (%S.-)%s*$")
      if flat then
        entry.self, entry.total, list = number(flat), number(cum), "callees"
        out[short(name)] = entry
      else
        local weight, called = line:match("^ *(%S+) +%S+ |   (.-)%s*$")
        if weight then entry[list][short(called)] = number(weight) end
      end
    end
  end
  return out
end

-- Names of a focus's list; calls of itself are left out, as pprof does.
local function named(cap, p, rows, own)
  local out = {}
  for _, row in ipairs(rows) do
    local name = keys.describe(cap, p.keys, row.key).name
    if row.key < p.keys.count and name ~= own then out[short(name)] = row.weight end
  end
  return out
end

-- Callers that stand for ends of stacks are pprof's only where stacks end short.
local function without_ends(list)
  local out = {}
  for name, weight in pairs(list) do
    if not name:match("^%[") then out[name] = weight end
  end
  return out
end

describe("go tool pprof", function()
  local folder

  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  local function pprof(options)
    return kit.pprof(folder, ("%s %s a.pb.gz"):format(options, ALL))
  end

  local function compare_calls(cap, p, theirs)
    local compared = 0
    for _, key in ipairs(p.ranked) do
      local name = keys.describe(cap, p.keys, key).name
      local entry = assert(theirs[short(name)], name)
      local f = focus.of(p.tree, p.keys, symbols.match(cap, p.keys, name).mask)
      assert.same({ f.self, f.total }, { entry.self, entry.total })
      assert.same(named(cap, p, f.callers, name), without_ends(entry.callers))
      assert.same(named(cap, p, f.callees, name), without_ends(entry.callees))
      compared = compared + 1
    end
    assert.is_true(compared > 20)
  end

  local function compare_table(cap, p, theirs)
    local count = 0
    for _, key in ipairs(p.ranked) do
      local name = short(keys.describe(cap, p.keys, key).name)
      assert.same({ p.costs.self[key], p.costs.total[key] }, theirs[name])
      theirs[name] = nil
      count = count + 1
    end
    -- What is left are the ends of stacks that end short.
    for name in pairs(theirs) do assert.matches("^%[", name) end
    return count
  end

  it("drops, hides and focuses as --drop, --merge and --where do", function()
    if not kit.has("go") then
      return pending("needs go (golang-go), whose pprof is the judge")
    end
    local path = folder .. "/a.usprof"
    assert(capture.generate { path = path, samples = 5000, stacks = 120, functions = 40,
      modules = 3, depth_max = 14, seed = 3 })
    kit.convert(folder, "a.usprof a.pb.gz")
    capture.with(path, function(cap)
      -- Functions of C, whose names are regular expressions of themselves.
      local all, names = profile.of(cap, {}), {}
      for _, key in ipairs(all.ranked) do
        local name = keys.describe(cap, all.keys, key).name
        if name:match("^[%w_]+$") then names[#names + 1] = name end
      end
      assert.is_true(#names > 8)
      for _, case in ipairs {
        { "-ignore=" .. names[5], { transforms = { { kind = "drop", symbol = names[5] } } } },
        { ("-hide='^(%s|%s)$'"):format(names[1], names[2]), { transforms = {
          { kind = "merge", symbol = names[1] }, { kind = "merge", symbol = names[2] } } } },
        { "-focus=" .. names[4], { where = "function = " .. names[4] } },
      } do
        compare_table(cap, profile.of(cap, case[2]), top_of(kit.pprof(folder,
          ("-top %s %s a.pb.gz"):format(case[1], ALL))))
      end
    end)
  end)

  for _, case in ipairs {
    { samples = 5000, stacks = 120, functions = 40, modules = 3, depth_max = 14, seed = 3 },
    { samples = 20000, stacks = 3000, functions = 30, modules = 2, depth_max = 40, seed = 12 },
    { samples = 3000, stacks = 500, functions = 400, modules = 9, depth_max = 60, seed = 5 },
  } do
    it(("gives the same for %d functions"):format(case.functions), function()
      if not kit.has("go") then
        return pending("needs go (golang-go), whose pprof is the judge")
      end
      case.path = folder .. "/a.usprof"
      assert(capture.generate(case))
      kit.convert(folder, "a.usprof a.pb.gz")
      capture.with(case.path, function(cap)
        local p = profile.of(cap, {})
        for _, order in ipairs { "", "-cum" } do
          assert.is_true(compare_table(cap, p, top_of(pprof("-top " .. order))) > 20)
        end
        compare_calls(cap, p, calls_of(pprof("-peek .")))
        compare_calls(cap, p, calls_of(pprof("-tree")))
      end)
    end)
  end
end)
