--- samples.lua - what each stack's samples weigh: the step from rows of time to trees.
--
-- weights = {
--   weight  = FFI double[stacks]: what the samples of each stack weigh, in the source's unit
--   samples = how many rows were taken, total = their weight
--   left_out = {samples=, weight=}: rows of the source that a filter (where.lua) refused
-- }

local ffi = require("ffi")

local M = {}

local f64 = ffi.typeof("double[?]")

-- Rows of one source, added to their stacks.  Gives how many there were.
local function add(stack, weight, source, rows, wanted, out)
  local count = 0
  for i = 0, rows - 1 do
    if source[i] == wanted then
      local s = stack[i]
      out[s] = out[s] + tonumber(weight[i])
      count = count + 1
    end
  end
  return count
end

--- The sum of values[first] to values[count - 1].
function M.sum(values, first, count)
  local total = 0
  for i = first, count - 1 do total = total + values[i] end
  return total
end

-- Rows of one source whose `keep` is not 0.  Gives how many, and how many others weigh what.
local function add_kept(stack, weight, source, rows, wanted, keep, out)
  local count, others, left_out = 0, 0, 0
  for i = 0, rows - 1 do
    if source[i] == wanted then
      local w = tonumber(weight[i])
      if keep[i] ~= 0 then
        local s = stack[i]
        out[s] = out[s] + w
        count = count + 1
      else
        others = others + 1
        left_out = left_out + w
      end
    end
  end
  return count, others, left_out
end

--- How many samples of a period weights stand for: a row may stand for several.
function M.divide(weight, period, count, out)
  for i = 0, count - 1 do out[i] = weight[i] / period end
end

--- The weights of a capture's stacks, of one source (a row of `sources`).  filter, when given, is
-- a function(first, rows) that gives an FFI u8 array of `rows`: 0 for the sample rows from number
-- `first` on that are left out (where.bind makes one).
function M.weights(cap, source, filter)
  local stacks = cap:rows("stacks")
  local out = f64(stacks + 1)
  local samples, others, left_out, first = 0, 0, 0, 0
  for rows, stack, weight, of in cap:blocks("samples", "stack", "weight", "source") do
    if filter then
      local n, refused, refused_weight = add_kept(stack, weight, of, rows, source,
        filter(first, rows), out)
      samples, others, left_out = samples + n, others + refused, left_out + refused_weight
    else
      samples = samples + add(stack, weight, of, rows, source, out)
    end
    first = first + rows
  end
  return {
    weight = out,
    samples = samples,
    total = M.sum(out, 0, stacks),
    left_out = { samples = others, weight = left_out },
  }
end

local function count_kept(stack, source, rows, wanted, keep, out)
  for i = 0, rows - 1 do
    if source[i] == wanted and keep[i] ~= 0 then
      local s = stack[i]
      out[s] = out[s] + 1
    end
  end
end

--- How many rows of a source that a filter keeps each stack has: FFI double[stacks].
function M.counts(cap, source, filter)
  local out, first = f64(cap:rows("stacks") + 1), 0
  for rows, stack, of in cap:blocks("samples", "stack", "source") do
    count_kept(stack, of, rows, source, filter(first, rows), out)
    first = first + rows
  end
  return out
end

M._count_kept = count_kept
M._add, M._add_kept = add, add_kept
return M
