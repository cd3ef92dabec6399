local fake = require("spec.support.fake")
local capture = require("microscope.capture")
local focus = require("microscope.query.focus")
local helper = require("spec.helper")
local invert = require("microscope.query.invert")
local keys = require("microscope.query.keys")
local profile = require("microscope.query.profile")
local symbols = require("microscope.query.symbols")
local walk = require("microscope.query.walk")

local NONE = fake.NONE

-- A tree's lines: "name self/total" in samples of 1000 ns, a blank for each level.
local function lines_of(cap, keys_of, tree)
  local out = {}
  walk.tree(tree, {}, function(node, depth)
    out[#out + 1] = ("%s%s %d/%d"):format((" "):rep(depth),
      walk.describe(cap, keys_of, tree, node).name, tree.self[node] / 1000,
      walk.total(node, tree.total, tree.self) / 1000)
  end, function() end)
  return out
end

local function transformed(cap, ...)
  local p = assert(profile.of(cap, { transforms = { ... } }))
  return lines_of(cap, p.keys, p.tree), p
end

local function collapse(symbol)
  return { kind = symbol and "collapse" or "collapse-recursion", symbol = symbol }
end
local function merge(symbol) return { kind = "merge", symbol = symbol } end
local function drop(symbol) return { kind = "drop", symbol = symbol } end

describe("--collapse-recursion", function()
  it("cuts stacks back to the first call of a function they call again", function()
    local lines, p = transformed(fake.stacks {
      { "visit > children > visit > children > work", 3 }, { "visit > children", 2 },
    }, collapse())
    assert.same({ "visit 0/5", " children 2/5", "  work 3/3" }, lines)
    assert.same(3000, p.steps[1].weight)
  end)

  it("sees through other functions, and goes on after it was cut", function()
    assert.same({ "a 2/9", " c 0/4", "  d 4/4", " b 3/3" }, (transformed(fake.stacks {
      { "a > b > c > a", 2 }, { "a > c > a > b", 3 }, { "a > b > a > c > d", 4 },
    }, collapse())))
  end)

  it("takes back what a cut overwrote before it goes on with siblings", function()
    -- After "a b c a x" is cut to "a x", "a b c y" still has b and c on its path.
    assert.same({ "a 0/7", " b 0/6", "  z 4/4", "  c 0/2", "   y 2/2", " x 1/1" },
      (transformed(fake.stacks {
        { "a > b > c > a > x", 1 }, { "a > b > c > y", 2 }, { "a > b > c > b > z", 4 },
      }, collapse())))
  end)

  it("leaves stacks of different ends apart", function()
    assert.same({ "[stack copy exhausted] 0/2", " f 2/2", "f 1/1" }, (transformed(fake.stacks {
      { "f > f", 1 }, { "[3] > f > f > f", 2 },
    }, collapse())))
  end)

  it("keeps the line that runs", function()
    local cap = fake.capture {
      modules = { name = { "app" }, problem = { "" } }, files = { path = { "a.c" } },
      functions = { name = { "main", "visit", "work" }, module = { 0, 0, 0 } },
      locations = { kind = { 0, 0, 0, 0 }, evidence = { 0, 0, 0, 0 }, module = { 0, 0, 0, 0 },
        offset = { 1, 2, 3, 4 } },
      lines = { location = { 0, 1, 2, 3 }, ["function"] = { 0, 1, 1, 2 }, depth = { 0, 0, 0, 0 },
        file = { 0, 0, 0, 0 }, line = { 1, 10, 12, 20 } },
      stacks = { parent = { NONE, 0, 1, 2, 3 }, location = { NONE, 0, 1, 2, 3 },
        ["end"] = { 1, 0, 0, 0, 0 } },
      samples = { stack = { 4, 3 }, weight = { 1000, 1000 }, source = { 0, 0 } },
      sources = { name = { "cpu-clock" }, unit = { 0 }, period = { 1000 } },
    }
    local p = profile.of(cap, { lines = true, transforms = { collapse() } })
    local out = {}
    walk.tree(p.tree, {}, function(node)
      local what = walk.describe(cap, p.keys, p.tree, node)
      out[#out + 1] = ("%s:%d %d"):format(what.name, what.line, p.tree.self[node] / 1000)
    end, function() end)
    assert.same({ "main:1 0", "visit:12 1", "work:20 1" }, out)
  end)

  it("is the reduced path of each stack, whatever the tree", function()
    local folder = helper.folder()
    assert(capture.generate { path = folder .. "/a", samples = 3000, stacks = 500, functions = 15,
      modules = 2, seed = 21 })
    capture.with(folder .. "/a", function(cap)
      local p = profile.of(cap, { transforms = { collapse() } })
      -- A naive walk: cut at each frame that is on the path already.
      local want = {}
      local stack = cap:array("samples", "stack")
      for i = 0, cap:rows("samples") - 1 do
        local path, locations, ending = {}, cap:stack(stack[i])
        for l = #locations, 1, -1 do
          for f = p.keys.start[locations[l]], p.keys.start[locations[l] + 1] - 1 do
            local key = p.keys.frame[f]
            for at = 1, #path do
              if path[at] == key then
                for k = #path, at, -1 do path[k] = nil end
                break
              end
            end
            path[#path + 1] = key
          end
        end
        local id = ending .. ":" .. table.concat(path, ",")
        want[id] = (want[id] or 0) + 1
      end
      local have = {}
      for node = 0, p.tree.count - 1 do
        if p.tree.self[node] > 0 then
          local path, at = {}, node
          while at >= 256 do
            table.insert(path, 1, p.tree.key[at])
            at = p.tree.parent[at]
          end
          have[at .. ":" .. table.concat(path, ",")] = p.tree.self[node] / 1e6
        end
      end
      assert.same(want, have)
    end)
    helper.remove(folder)
  end)
end)

describe("--collapse", function()
  it("cuts back the calls of one function only", function()
    assert.same({ "a 0/4", " b 0/4", "  b 0/4", "   c 4/4" }, (transformed(fake.stacks {
      { "a > b > b > a > b > b > c", 4 } }, collapse("a"))))
  end)
end)

describe("--merge", function()
  it("gives a function's cost to its caller", function()
    local lines, p = transformed(fake.stacks { { "a > b", 2 }, { "a > b > c", 3 }, { "a > c", 4 } },
      merge("b"))
    assert.same({ "a 2/9", " c 7/7" }, lines)
    assert.equal(2000, p.steps[1].weight)
    assert.equal(9000, p.tree.weight)
  end)

  it("of what has no caller leaves its cost under the end's own name", function()
    local lines, p = transformed(fake.stacks { { "a", 2 }, { "a > b", 3 } }, merge("a"))
    assert.same({ "b 3/3", "[outermost frame] 2/2" }, lines)
    assert.equal(5000, p.tree.weight)
  end)
end)

describe("--drop", function()
  it("removes every sample through a function and says how much that was", function()
    local lines, p = transformed(fake.stacks { { "a > b", 2 }, { "a > b > c", 3 }, { "a > c", 4 } },
      drop("b"))
    assert.same({ "a 0/4", " c 4/4" }, lines)
    assert.same({ what = "drop", text = "b", functions = 1, removed = true, weight = 5000 },
      p.steps[1])
    assert.equal(p.recorded, p.tree.weight + p.steps[1].weight)
  end)
end)

describe("transforms", function()
  it("apply in the order given", function()
    local cap = fake.stacks { { "a > b > a > c", 1 } }
    assert.same({ "a 0/1", " c 1/1" }, (transformed(cap, merge("b"), collapse("a"))))
    assert.same({}, (transformed(cap, drop("b"), collapse("a"))))
    assert.same({ "a 0/1", " c 1/1" }, (transformed(cap, collapse("a"), drop("b"))))
  end)

  it("of a name that nothing has are refused, with what is near", function()
    local p, why = profile.of(fake.stacks { { "parse_all > parse_one", 1 } },
      { transforms = { drop("parse") } })
    assert.is_nil(p)
    assert.equal("--drop: no function 'parse'; near to it: parse_all@app, parse_one@app", why)
  end)
end)

describe("the tree of callers", function()
  local function inverted(cap, least)
    local p = profile.of(cap, {})
    return lines_of(cap, p.keys, invert.build(p.tree, p.keys, least))
  end

  it("has what ran at the top and its callers below", function()
    assert.same({ "work 0/5", " a 0/3", "  main 3/3", " b 0/2", "  main 2/2", "b 0/1",
      " main 1/1" }, inverted(fake.stacks { { "main > a > work", 3 }, { "main > b > work", 2 },
        { "main > b", 1 } }))
  end)

  it("counts recursion once and ends in the reason of stacks that end short", function()
    assert.same({ "f 2/5", " f 1/3", "  [stack copy exhausted] 2/2" },
      inverted(fake.stacks { { "f", 2 }, { "f > f", 1 }, { "[3] > f > f", 2 } }))
  end)

  it("leaves out callers of what weighs less than asked for, and no weight", function()
    local cap = fake.stacks { { "main > a > x", 9 }, { "main > b > y", 1 } }
    assert.same({ "x 0/9", " a 0/9", "  main 9/9", "y 1/1" }, inverted(cap, 5000))
  end)

  it("is empty without samples", function()
    assert.same({}, inverted(fake.capture {}))
  end)
end)

describe("focus", function()
  local function focused(cap, symbol)
    local p = profile.of(cap, {})
    local found = assert(symbols.match(cap, p.keys, symbol, { one = true }))
    local f, out = focus.of(p.tree, p.keys, found.mask), {}
    for _, list in ipairs { "callers", "callees" } do
      out[list] = {}
      for i, row in ipairs(f[list]) do
        out[list][i] = keys.describe(cap, p.keys, row.key).name .. " " .. row.weight / 1000
      end
    end
    out.self, out.total = f.self / 1000, f.total / 1000
    out.below = lines_of(cap, p.keys, focus.subtree(p.tree, p.keys, found.mask, cap:rows("stacks")))
    return out
  end

  it("shows callers, callees and what is below", function()
    assert.same({
      self = 1, total = 8, callers = { "a 5", "main 3" }, callees = { "x 4", "y 3" },
      below = { "f 1/8", " x 4/4", " y 3/3" },
    }, focused(fake.stacks { { "main > a > f", 1 }, { "main > a > f > x", 4 },
      { "main > f > y", 3 }, { "main > z", 9 } }, "f"))
  end)

  it("counts a sample once for each call, however deep the recursion", function()
    assert.same({
      self = 0, total = 7,
      callers = { "main 7", "g 7" }, callees = { "g 7", "work 7" },
      below = { "f 0/7", " g 0/7", "  f 0/7", "   work 4/4", "   g 0/3", "    f 0/3",
        "     work 3/3" },
    }, focused(fake.stacks { { "main > f > g > f > work", 4 },
      { "main > f > g > f > g > f > work", 3 } }, "f"))
  end)

  it("names the ends of stacks in which nothing that is known calls it", function()
    assert.same({ "[stack copy exhausted] 2", "[outermost frame] 1" },
      focused(fake.stacks { { "f", 1 }, { "[3] > f", 2 } }, "f").callers)
  end)

  it("on nothing, or on more than one function, lists what could be meant", function()
    local cap = fake.stacks { { "list_add > list_find", 1 } }
    local p = profile.of(cap, {})
    local _, why = symbols.match(cap, p.keys, "list*", { one = true })
    assert.equal("'list*' names 2 functions: list_add@app, list_find@app", why)
    _, why = symbols.match(cap, p.keys, "lists", { one = true })
    assert.equal("no function 'lists'", why)
  end)
end)
