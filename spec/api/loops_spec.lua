-- The row loops of shipped queries stay compiled.

local helper = require("spec.helper")
local microscope = require("microscope")

-- A local function of a query, by its name: what its run function uses.
local function inner(query, name)
  local run = dofile(helper.root .. "/queries/" .. query .. ".lua").run
  for i = 1, 20 do
    local found, value = debug.getupvalue(run, i)
    if found == name then return value end
  end
  error(query .. " has no function " .. name)
end

describe("the row loops of", function()
  local folder, cap, keys, tree

  setup(function()
    folder = helper.folder()
    assert(microscope.generate { path = folder .. "/a.usprof", samples = 50000, stacks = 3000,
      functions = 300, seed = 21 })
    cap = assert(microscope.open(folder .. "/a.usprof"))
    keys = microscope.keys(cap)
    tree = microscope.tree(cap, keys)
  end)

  teardown(function()
    cap:close()
    helper.remove(folder)
  end)

  it("recursion", function()
    local depth = microscope.zeros("uint32_t", tree.count)
    assert.same({}, helper.interpreted(inner("recursion", "depths"), tree.parent, tree.key,
      tree.count, microscope.ROOTS, depth))
    local n = keys.count + 1
    assert.same({}, helper.interpreted(inner("recursion", "add_up"), tree.key, depth,
      tree.self_count, tree.self, tree.count, microscope.ROOTS, microscope.zeros("uint32_t", n),
      microscope.zeros("double", n), microscope.zeros("double", n)))
  end)

  it("rare-stacks", function()
    local stacks = cap:rows("stacks")
    assert.same({}, helper.interpreted(inner("rare-stacks", "depths"),
      cap:array("stacks", "parent"), cap:array("stacks", "location"), keys.start, microscope.NONE,
      stacks, microscope.zeros("uint32_t", stacks + 1)))
  end)

  it("selections by an expression", function()
    local select_query = require("microscope.api.select")
    assert.same({}, helper.interpreted(select_query._both, microscope.zeros("uint8_t", 50000),
      50000, microscope.zeros("uint8_t", 50000)))
    assert.same({}, helper.interpreted(require("microscope.api.group")._latest,
      cap:array("samples", "time_ns"), microscope.selection(cap).rows, 50000))
    local trees = require("microscope.api.trees")
    assert.same({}, helper.interpreted(trees._add_to_nodes, tree._counts, tree.node_of,
      cap:rows("stacks"), microscope.zeros("double", tree.count)))
  end)
end)
