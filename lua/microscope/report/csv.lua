--- csv.lua - comma-separated values (RFC 4180) that a spreadsheet takes for nothing but data.
--
-- Lines end in CR LF; a text with a comma, a quote or the end of a line stands in quotes.  A text
-- that a spreadsheet would take for a formula (it begins with = + - @, a tab or a carriage return)
-- gets a ' before it.  Names are bytes from outside: what a terminal would act on, and bytes that
-- are no UTF-8, are written as \xNN.  Numbers have no unit and no separators.

local json = require("microscope.report.json")
local text = require("microscope.report.text")

local M = {}

-- Line ends are data in a quoted text; all else that is no plain text is escaped.
local function plain(value)
  local lines = {}
  for line in (value .. "\n"):gmatch("(.-)\n") do lines[#lines + 1] = text.escape(line) end
  return table.concat(lines, "\n")
end

--- A value as a cell: nil and json.null are empty, true and false are words.
function M.cell(value)
  if value == nil or value == json.null then return "" end
  if type(value) == "number" then return json.encode(value) end
  if type(value) ~= "string" then return tostring(value) end
  local cell = M.mark(value) .. plain(value)
  if cell:find('[,"\r\n]') then cell = '"' .. cell:gsub('"', '""') .. '"' end
  return cell
end

--- A text as part of a cell that stands in quotes.
function M.inner(value) return (plain(value):gsub('"', '""')) end

--- What stands before a text in its cell: a ' where a spreadsheet would take it for a formula.
function M.mark(value) return value:find("^[=+%-@\t\r]") and "'" or "" end

--- Write a row of values; cells may be nil, row.n (or #row) says how many there are.
function M.row(row, out)
  local cells = {}
  for i = 1, row.n or #row do cells[i] = M.cell(row[i]) end
  out(table.concat(cells, ","), "\r\n")
end

return M
