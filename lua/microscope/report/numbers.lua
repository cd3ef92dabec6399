--- numbers.lua - what reports share of amounts, shares, intervals and names.

local interval = require("microscope.query.interval")
local text = require("microscope.report.text")

local M = {}

--- An amount in a source's unit, as a person reads it; source may be nil.
function M.amount(source, weight)
  local unit = source and source.unit
  if weight < 0 then return "-" .. M.amount(source, -weight) end
  if unit == "ns" then return text.time(weight) end
  if unit == "bytes" then return text.size(weight) end
  local name = source and source.unit_name or unit == "cycles" and "cycles"
  return text.count(weight) .. (name and " " .. text.escape(name) or "")
end

--- The same with a sign.
function M.change(source, weight)
  return (weight > 0 and "+" or "") .. M.amount(source, weight)
end

--- The share of a profile's weight, 0 where there is none.
function M.share(profile, weight)
  return profile.tree.weight > 0 and weight / profile.tree.weight or 0
end

--- The 95 % interval of a weight's share (0 to 1), or nil where there is none.
function M.bounds(profile, weight)
  local n = profile.looks(profile.tree.weight)
  if not n then return nil end
  return interval.wilson(profile.looks(weight), n)
end

--- Cells of a table: a weight's share and its interval in per cent, "" where there is none.
function M.share_cells(profile, weight)
  local low, high = M.bounds(profile, weight)
  return text.percent(M.share(profile, weight)),
    low and ("%.1f-%.1f"):format(low * 100, high * 100) or ""
end

--- What stands in a row for a function {name, module, file, line}: its name, place and module,
-- escaped, in at most `room` columns.  Where that is too little the module goes first, then the
-- end of the name.
function M.label(what, room)
  local name, place = text.escape(what.name), ""
  if what.file then
    place = " " .. text.escape(text.last_part(what.file)) .. (what.line and ":" .. what.line or "")
  end
  local whole = name .. place
  if what.module ~= "" and what.name:sub(1, #what.module + 1) ~= what.module .. "+" then
    whole = whole .. " (" .. text.escape(what.module) .. ")"
  end
  if not room or text.width(whole) <= room then return whole end
  return text.fit(name, room - text.width(place)) .. place
end

-- Eighths of a block (U+2588 and on).
local BAR_COLUMNS = 10

--- A share as a bar of at most ten columns.
function M.bar(share)
  local eighths = math.floor(math.max(0, math.min(1, share)) * BAR_COLUMNS * 8 + 0.5)
  local whole, rest = math.floor(eighths / 8), eighths % 8
  return ("\xe2\x96\x88"):rep(whole) .. (rest > 0 and "\xe2\x96" .. string.char(0x90 - rest) or "")
end

--- Write a table whose columns are as wide as their cells: rows are lists of texts, the last a
-- function(room) that gives a text in at most `room` columns (nil: any).  headings are texts;
-- left (or nil) is a set of the columns that begin at the left.
function M.table(headings, rows, columns, out, left)
  local widths = {}
  for k, heading in ipairs(headings) do widths[k] = text.width(heading) end
  for _, row in ipairs(rows) do
    for k = 1, #headings - 1 do widths[k] = math.max(widths[k], text.width(row[k])) end
  end
  local function write(row, last)
    local parts, used = {}, 0
    for k = 1, #headings - 1 do
      local align = left and left[k] and text.left or text.right
      parts[k] = align(row[k], widths[k])
      used = used + widths[k] + 2
    end
    parts[#headings] = last(columns and math.max(columns - used - 2, 8))
    out("  ", text.trim_end(table.concat(parts, "  ")), "\n")
  end
  write(headings, function(room) return text.fit(headings[#headings], room) end)
  for _, row in ipairs(rows) do write(row, row[#headings]) end
end

return M
