--- pattern.lua - texts that name things: exactly, by glob, or by regular expression.
--
--   exact     the whole text
--   glob      * stands for any characters, ? for one
--   /regex/   Perl's regular expressions (PCRE2), found anywhere in a text; bytes, not characters
--
-- A regular expression that backtracks without end on some text is given up: see M.STEPS, WORK and
-- TEXT_MAX.

local M = {}

-- The most steps back that one look at a text may take from one place: a plain pattern over a
-- name of 64 KiB takes as many as the name has bytes, a catastrophic one never ends.
M.STEPS = 500000

-- And the most of one look from all places, which PCRE2 has no limit for: about half a second.  All
-- places of a long text get an equal part of it; where that is too little (`a.*b` looks at all that
-- follows an `a`), each place is tried alone, and a few may take M.STEPS.
local WORK = 2 ^ 24
local COSTLY_PLACES = 32

-- PCRE2 takes the limits from the pattern's own beginning; later ones can only lower them.
local function limits(steps)
  return ("(*LIMIT_MATCH=%d)(*LIMIT_HEAP=65536)"):format(steps)
end

-- What each place of a text may take: as the text were as long as the next power of two.
local function share_of(size)
  local places = 2 ^ math.ceil(math.log(size + 1) / math.log(2))
  return math.max(1, math.min(M.STEPS, math.floor(WORK / places)))
end

-- What is longer is not looked at: `a+c` takes a text's length from each place on, which no limit
-- of PCRE2 bounds, so that a name of this size may take seconds and one of a megabyte minutes.
local TEXT_MAX = 2 ^ 17

-- Does a text match a glob?  Iterative: after a `*` fails it takes one more character, so the
-- time is at most the product of both lengths.
local function glob_matches(glob, text)
  local g, t, star, from = 1, 1, nil, nil
  while t <= #text do
    local c = glob:byte(g)
    if c == 42 then -- *
      star, from = g, t
      g = g + 1
    elseif c and (c == 63 or c == text:byte(t)) then -- ?
      g, t = g + 1, t + 1
    elseif star then
      from = from + 1
      g, t = star + 1, from
    else
      return false
    end
  end
  while glob:byte(g) == 42 do g = g + 1 end
  return g > #glob
end

--- Whether a text has a glob's characters.
function M.is_glob(text) return text:find("[*?]") ~= nil end

--- The regular expression of "/regex/", nil for another text.
function M.regex_of(text) return text:match("^/(.+)/$") end

-- rex's own words; its offsets count the limits before the expression.
local function reason(err)
  return (tostring(err):gsub("^.-:%d+: ", ""):gsub("pattern offset: (%d+)", function(at)
    return ("at byte %d"):format(at - #limits(M.STEPS))
  end))
end

-- Whether it matches at any place, each looked at alone: with `quick` first, and with `full`, whose
-- limit is M.STEPS, where that is not enough.  Raises what the library says.
local function at_places(quick, full, text, anchored)
  local left = COSTLY_PLACES
  for at = 1, #text + 1 do
    local done, from = pcall(quick.find, quick, text, at, anchored)
    if not done then
      left = left - 1
      if left < 0 then error(from, 0) end
      from = full:find(text, at, anchored)
    end
    if from then return true end
  end
  return false
end

--- A function(text) for "/regex/" (true when it matches), or nil and why it is none.  It raises a
-- text when a match takes too many steps.
function M.regex(expression)
  -- Only who uses regular expressions needs the library.
  local rex = require("rex_pcre2")
  local ok, full = pcall(rex.new, limits(M.STEPS) .. expression)
  if not ok then return nil, reason(full) end
  local anchored, by_share = rex.flags().ANCHORED, { [M.STEPS] = full }
  -- \G holds at the first place only, which looking at each alone would make of every one.
  local alone = not expression:find("\\G", 1, true)
  return function(text)
    if #text > TEXT_MAX then
      error(("/%s/ is too costly to match: a name of %d bytes, the most is %d"):format(expression,
        #text, TEXT_MAX), 0)
    end
    local share = share_of(#text)
    local quick = by_share[share] or rex.new(limits(share) .. expression)
    by_share[share] = quick
    local done, found = pcall(quick.find, quick, text)
    if not done and alone and quick ~= full then
      done, found = pcall(at_places, quick, full, text, anchored)
    end
    if not done then
      error(("/%s/ is too costly to match: %s"):format(expression, reason(found)), 0)
    end
    return found and true or false
  end
end

--- A function(text) for a pattern of any kind that is no exact text, or nil and why it is none:
-- a regular expression in slashes, else a glob.
function M.compile(text)
  local expression = M.regex_of(text)
  if expression then return M.regex(expression) end
  return function(name) return glob_matches(text, name) end
end

M._glob_matches = glob_matches
return M
