--- pattern.lua - texts that name things: exactly, by glob, or by regular expression.
--
--   exact     the whole text
--   glob      * stands for any characters, ? for one
--   /regex/   Perl's regular expressions (PCRE2), found anywhere in a text; bytes, not characters
--
-- A regular expression that backtracks without end on some text is given up: see M.STEPS.

local M = {}

-- The most steps back that one look at a text may take from one place: a plain pattern over a
-- name of 64 KiB takes as many as the name has bytes, a catastrophic one never ends.
M.STEPS = 500000

-- PCRE2 takes the limits from the pattern's own beginning; later ones can only lower them.
local LIMITS = ("(*LIMIT_MATCH=%d)(*LIMIT_HEAP=65536)"):format(M.STEPS)


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
    return ("at byte %d"):format(at - #LIMITS)
  end))
end

--- A function(text) for "/regex/" (true when it matches), or nil and why it is none.  It raises a
-- text when a match takes too many steps.
function M.regex(expression)
  -- Only who uses regular expressions needs the library.
  local rex = require("rex_pcre2")
  local ok, compiled = pcall(rex.new, LIMITS .. expression)
  if not ok then return nil, reason(compiled) end
  return function(text)
    local done, from = pcall(compiled.find, compiled, text)
    if not done then
      error(("/%s/ is too costly to match: %s"):format(expression, reason(from)), 0)
    end
    return from ~= nil
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
