--- gecko: profiles as Firefox itself and perf's gecko script write them.

local input = require("microscope.input")
local text = require("microscope.report.text")

local LEFT_OUT = {
  { "empty", "sample", " without a stack" },
  { "instants", "marker", " that is no span" },
  { "unmatched_ends", "end", " of a marker that did not begin" },
}
local NOTES = {
  { "early", "time", " before the start is taken as the start" },
  { "overlapping", "span", " of their thread's overlap others: they have lanes of their own" },
  { "unfinished", "span", " begun and not ended" },
}

local function tell(result, list, say)
  for _, field in ipairs(list) do
    local count = tonumber(result[field[1]])
    if count > 0 then say("%s%s", text.plural(count, field[2]), field[3]) end
  end
end

local function read(path, ctx)
  local result, why = input.decode(path, ctx, "gecko")
  if not result then return nil, why end
  tell(result, LEFT_OUT, ctx.lost)
  tell(result, NOTES, ctx.note)
  return true
end

-- "meta" with a version, and tables with schemas; the processed form says so itself.
local function detect(head)
  return head:match("^\239?\187?\191?%s*{") ~= nil and head:find('"meta"%s*:') ~= nil
    and head:find('"preprocessedProfileVersion"%s*:') == nil
    and (head:find('"schema"%s*:%s*{') ~= nil or head:find('"stackwalk"%s*:') ~= nil)
end

return {
  name = "gecko",
  summary = "Gecko profiles, of Firefox and of perf script report gecko.",
  extensions = { ".gecko.json" },
  detect = detect,
  read = read,
}
