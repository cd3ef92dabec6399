--- diff.lua - what costs more, and what less, than in another recording.
--
-- Each difference has its 95 % interval (interval.lua): how far sampling alone could have moved
-- it.  Where the interval holds 0, noise explains the difference; such rows are marked, not left
-- out.  A source without a period has no intervals.  How much time was recorded is known, however
-- it fell to functions; how much of it a choice of samples or a focus leaves is known from samples
-- alone.  So times are as sure as looks at all of it say, and shares, which are of what is left,
-- as looks at that.
--
-- diff = {
--   by       = "time" (weights in the source's unit) or "share" (of each side's own total)
--   measure  = "self" or "total": what the differences are of
--   pairs    (identity.lua)
--   base, other = {costs=, weight=, recorded=, looks=}: costs (costs.lua) by class; weight of all
--              that is compared; looks: how many samples that is, nil without a period; recorded:
--              weight of all samples, those that were left out too
--   rows     = list of rows that differ, the largest first:
--              {class=, base=, other=, difference=, low=, high=, noise=}: low and high nil and
--              noise false without a period; shares are 0 to 1
--   same     = how many classes have cost but no difference
-- }

local ffi = require("ffi")

local costs_query = require("microscope.query.costs")
local identity = require("microscope.query.identity")
local interval = require("microscope.query.interval")
local keys_query = require("microscope.query.keys")
local remap = require("microscope.query.remap")
local tree_query = require("microscope.query.tree")

local M = {}

local u8, f64 = ffi.typeof("uint8_t[?]"), ffi.typeof("double[?]")

local function side_of(p, map, classes)
  return {
    costs = costs_query.flat(p.tree, p.keys, map, classes),
    weight = p.tree.weight,
    recorded = p.recorded,
    looks = p.looks(p.tree.weight),
    period = p.source and p.source.period or 0,
  }
end

--- The difference of two weights, as a row's fields: base and other are weights of two sides
-- that have weight=, recorded=, looks= and period= (M.of).
function M.difference(by, base, other, base_side, other_side)
  local a, b = base, other
  if by == "share" then
    a = base_side.weight > 0 and base / base_side.weight or 0
    b = other_side.weight > 0 and other / other_side.weight or 0
  end
  local out = { base = a, other = b, difference = b - a, noise = false }
  if not base_side.looks or not other_side.looks then return out end
  local function bounds(weight, side)
    local k = weight / side.period
    if by == "share" then return interval.wilson(k, side.looks) end
    return interval.of_total(k, side.recorded / side.period, side.recorded)
  end
  local base_low, base_high = bounds(base, base_side)
  local other_low, other_high = bounds(other, other_side)
  out.low, out.high = interval.of_difference(a, base_low, base_high, b, other_low, other_high)
  if by ~= "share" then
    out.low, out.high = math.floor(out.low + 0.5), math.floor(out.high + 0.5)
  end
  out.noise = out.low <= 0 and out.high >= 0
  return out
end

local function by_size(a, b)
  local x, y = math.abs(a.difference), math.abs(b.difference)
  if x ~= y then return x > y end
  return a.class < b.class
end

--- Whether two sources (summary.lua) measure in one unit: else their weights do not compare.
function M.compares(a, b)
  return a.unit == b.unit and a.unit_name == b.unit_name and a.is_cpu == b.is_cpu
end

--- Compare two profiles (profile.lua) of the same unit and kind of keys: `other` is looked at,
-- `base` is what it is compared with.  options: share (false), measure ("self").
function M.of(base_cap, base, other_cap, other, options)
  local pairs_of = identity.pair(base_cap, base.keys, other_cap, other.keys)
  local classes = pairs_of.count + keys_query.ENDS
  local out = {
    by = options.share and "share" or "time",
    measure = options.measure or "self",
    pairs = pairs_of,
    base = side_of(base, pairs_of.base, classes),
    other = side_of(other, pairs_of.other, classes),
    rows = {},
    same = 0,
  }
  local a, b = out.base.costs, out.other.costs
  for class = 0, pairs_of.count - 1 do
    if a.total[class] > 0 or b.total[class] > 0 then
      local row = M.difference(out.by, a[out.measure][class], b[out.measure][class], out.base,
        out.other)
      if row.difference ~= 0 then
        row.class = class
        out.rows[#out.rows + 1] = row
      elseif a[out.measure][class] > 0 or b[out.measure][class] > 0 then
        out.same = out.same + 1
      end
    end
  end
  table.sort(out.rows, by_size)
  return out
end

--- What a class of a diff is called, as keys.describe; in the other capture's words where it has
-- it.
function M.describe(base_cap, base, other_cap, other, pairs_of, class)
  if class >= pairs_of.count then
    return keys_query.describe(other_cap, other.keys, other.keys.count + class - pairs_of.count)
  end
  local key = pairs_of.other_key[class]
  if key then return keys_query.describe(other_cap, other.keys, key) end
  return keys_query.describe(base_cap, base.keys, pairs_of.base_key[class])
end

--- Both call trees as one (tree.lua) whose keys are classes: the tree of the other, with
-- base_self and base_total (FFI double[count]) beside self and total.
function M.tree(base, other, pairs_of)
  local keep = u8(math.max(base.keys.count, other.keys.count) + keys_query.ENDS)
  local room = remap.room(base.tree.count + other.tree.count)
  local base_map = remap.lead(room, base.tree, pairs_of.base, keep)
  local map = remap.lead(room, other.tree, pairs_of.other, keep)
  local count = room.made
  local tree = tree_query.of(room.parent, room.key, remap.weights(other.tree, map, count), count)
  tree.base_self = remap.weights(base.tree, base_map, count)
  tree.base_total = f64(count)
  ffi.copy(tree.base_total, tree.base_self, count * 8)
  tree_query.add_up(tree.parent, count, tree.base_total)
  tree.base_weight = base.tree.weight
  return tree
end

return M
