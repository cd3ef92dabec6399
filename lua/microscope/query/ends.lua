--- ends.lua - why stacks end where they do, and how their frames were proven.

local ffi = require("ffi")

local core = require("microscope.core")
local tree_query = require("microscope.query.tree")

local C = core.C

local M = {}

local NONE = tree_query.NONE
local FRAME_POINTER = 2 -- MIC_EVIDENCE_FRAME_POINTER

local NOT_STATED = 19 -- MIC_END_NOT_STATED

--- Whether stacks with this end are whole.
function M.is_whole(code) return C.mic_end_is_whole(code) == 1 end

--- Whether nothing is known of how stacks with this end end: an imported file does not state it.
function M.is_not_stated(code) return code == NOT_STATED end

--- Whether a report says nothing of the end where the stack begins: it is whole, or not stated.
function M.is_silent(code) return C.mic_end_is_silent(code) == 1 end

-- A text of C's, or nil for a code that this version has no words for.
local function words(pointer)
  if pointer == nil then return nil end
  return ffi.string(pointer)
end

--- What an end is called, as reports print it in brackets.
function M.reason(code) return words(C.mic_end_text(code)) or ("reason " .. code) end

--- The ends that a tree's stacks have, most first:
-- {code=, reason=, advice= (or nil), whole=, stated= (false: whether it is whole is not known),
-- weight=}, the weight in the source's unit.
function M.of(tree)
  local out = {}
  for code = 0, tree_query.ROOTS - 1 do
    if tree.total[code] > 0 then
      local advice = words(C.mic_end_advice(code))
      out[#out + 1] = {
        code = code,
        reason = M.reason(code),
        advice = advice ~= "" and advice or nil,
        whole = M.is_whole(code),
        stated = not M.is_not_stated(code),
        weight = tree.total[code],
      }
    end
  end
  table.sort(out, function(a, b)
    if a.weight ~= b.weight then return a.weight > b.weight end
    return a.code < b.code
  end)
  return out
end

-- Marks each stack that has a frame found by frame pointers, in it or above.
local function mark(parent, location, evidence, stacks, marks)
  for i = 0, stacks - 1 do
    local up = parent[i]
    if up ~= NONE and (marks[up] == 1 or evidence[location[i]] == FRAME_POINTER) then
      marks[i] = 1
    end
  end
end

local function weigh_marked(weight, stacks, node_of, marks)
  local total = 0
  for i = 0, stacks - 1 do
    if marks[i] ~= 0 and node_of[i] ~= NONE then total = total + weight[i] end
  end
  return total
end

--- What the samples weigh that have frames only frame pointers tell of; weights are those of
-- samples.lua, node_of a tree's.
function M.by_frame_pointer(cap, weights, node_of)
  local stacks = cap:rows("stacks")
  local marks = ffi.new("uint8_t[?]", stacks + 1)
  mark(cap:array("stacks", "parent"), cap:array("stacks", "location"),
    cap:array("locations", "evidence"), stacks, marks)
  return weigh_marked(weights.weight, stacks, node_of, marks)
end

M._mark, M._weigh_marked = mark, weigh_marked
return M
