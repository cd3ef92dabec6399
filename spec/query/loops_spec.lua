-- The row loops of transforms, of trees of callers and of focus, on a tree as real ones are.

local ffi = require("ffi")

local capture = require("microscope.capture")
local costs = require("microscope.query.costs")
local focus = require("microscope.query.focus")
local helper = require("spec.helper")
local invert = require("microscope.query.invert")
local keys = require("microscope.query.keys")
local profile = require("microscope.query.profile")
local remap = require("microscope.query.remap")
local transform = require("microscope.query.transform")
local tree_query = require("microscope.query.tree")

local function u32(n) return ffi.new("uint32_t[?]", n) end
local function f64(n) return ffi.new("double[?]", n) end
local function u8(n, value) return ffi.new("uint8_t[?]", n, value or 0) end

describe("row loops stay compiled:", function()
  local folder, cap, p, tree, all, mask

  setup(function()
    folder = helper.folder()
    assert(capture.generate { path = folder .. "/a", samples = 40000, stacks = 8000,
      functions = 300, seed = 5 })
    cap = assert(capture.open(folder .. "/a"))
    p = profile.of(cap, {})
    tree, all = p.tree, p.keys.count + keys.ENDS
    mask = u8(all)
    for key = 0, p.keys.count - 1, 9 do mask[key] = 1 end
  end)

  teardown(function()
    cap:close()
    helper.remove(folder)
  end)

  it("lead, move and compose", function()
    local action = u8(all)
    for key = 0, p.keys.count - 1, 5 do action[key] = 1 + key % 3 end
    local map, room = u32(tree.count), remap.room(tree.count)
    for root = 0, 255 do map[root] = root end
    assert.same({}, helper.interpreted(remap._lead, tree.parent, tree.key, tree.count,
      costs.identity(p.keys), action, map, room.parent, room.key, room.only, room.slots,
      room.mask, 256))
    assert.same({}, helper.interpreted(remap._move, map, tree.self, tree.count, f64(tree.count)))
    assert.same({}, helper.interpreted(remap._compose, tree.node_of, map, cap:rows("stacks"),
      u32(cap:rows("stacks"))))
  end)

  it("cut, weigh_cuts, deepest and weigh_masked", function()
    local count, room = tree.count, remap.room(tree.count)
    local events, events_count = tree_query.events(tree)
    local depth = u32(count)
    assert.same({}, helper.interpreted(transform._deepest, tree.parent, count, depth))
    local s = { map = u32(count), depth = depth, path = u32(100), at = u32(p.keys.groups + 1),
      cuts = u8(count), saved_node = u32(count), saved_at = u32(count) }
    for root = 0, 255 do s.map[root] = root end
    assert.same({}, helper.interpreted(transform._cut, events, events_count, tree.parent, tree.key,
      p.keys.group, mask, s, room.parent, room.key, room.slots, room.mask, 256))
    assert.same({}, helper.interpreted(transform._weigh_cuts, tree.parent, s.cuts, tree.total,
      count))
    assert.same({}, helper.interpreted(transform._weigh_masked, tree.key, mask, tree.self, count))
  end)

  it("those of trees of callers", function()
    local count = tree.count
    assert.same({}, helper.interpreted(invert._count_steps, tree.parent, tree.self, count,
      u32(count)))
    local at, carried, up = u32(count), f64(count), u32(count)
    assert.same({}, helper.interpreted(invert._begin, tree.self, count, at, carried))
    local paths = invert._begin(tree.self, count, at, carried)
    assert.is_true(paths > 1000)
    for i = 0, paths - 1 do up[i] = 1 end
    local size = tree_query.room_for(paths)
    local slots, parents, node_keys = u32(size), u32(count * 2), u32(count * 2)
    local self, silent = f64(count * 2), invert._silent_roots()
    assert.same({}, helper.interpreted(invert._step, tree.key, p.keys.count, paths, at, up, carried,
      slots, size - 1, parents, node_keys, self, 256))
    assert.same({}, helper.interpreted(invert._weigh, self, 256, 256 + paths, f64(paths)))
    for i = 0, paths - 1 do up[i] = 256 + i end
    -- It moves the paths on: each time from the start.
    local function fresh(...)
      invert._begin(tree.self, count, at, carried)
      for i = 0, paths - 1 do up[i] = 256 + i end
      return invert._go_on(...)
    end
    fresh(tree.parent, silent, paths, at, up, carried, self, self + 256, 256, 0)
    invert._begin(tree.self, count, at, carried)
    assert.same({}, helper.interpreted(invert._go_on, tree.parent, silent, paths, at, up,
      carried, self, self + 256, 256, 0))
  end)

  it("those of focus", function()
    for root = 0, 255 do tree.key[root] = p.keys.count + root end
    local order, nodes, past = tree_query.preorder(tree)
    assert.same({}, helper.interpreted(focus._add_calls, order, past, nodes, tree.parent, tree.key,
      mask, tree.total, u32(all), u32(all), f64(all), f64(all)))
    assert.same({}, helper.interpreted(focus._take_totals, tree.key, mask, u8(tree.count, 1),
      tree.total, tree.count, f64(tree.count)))
  end)

  it("fill_outer_frames and count_kept", function()
    local lines = cap:rows("lines")
    assert.same({}, helper.interpreted(keys._fill_outer_frames, cap:array("lines", "location"),
      cap:array("lines", "function"), lines, cap:array("locations", "kind"),
      u32(cap:rows("locations"))))
    local samples = require("microscope.query.samples")
    assert.same({}, helper.interpreted(samples._count_kept, cap:array("samples", "stack"),
      cap:array("samples", "source"), 40000, 0, u8(40000, 1), f64(cap:rows("stacks"))))
  end)
end)
