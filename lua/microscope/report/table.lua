--- table.lua - a result as a table: for a person, as JSON, as CSV.
--
-- result = {
--   columns = { { name = "function", unit = "text" }, { name = "self", unit = "ns" }, ... },
--   rows = { { "main", 12e6 }, ... },     -- a row's values in the columns' order; nil: not known
--   title = "one line above", notes = { "lines below" },  -- may be left out
-- }
-- Units: text, count, number, ns, bytes, share (0 to 1), cycles, line (no separators), bar (a
-- share drawn as blocks), text being the default.  A column with `heading` shows that to people.

local csv = require("microscope.report.csv")
local json = require("microscope.report.json")
local numbers = require("microscope.report.numbers")
local text = require("microscope.report.text")

local M = {}

local UNITS = { text = true, count = true, number = true, ns = true, bytes = true, share = true,
  cycles = true, line = true, bar = true }

-- Two decimals are enough beside other columns; what would be lost so has three digits.
local function number(v)
  local size = math.abs(v)
  if size >= 1e15 or size > 0 and size < 0.1 then return ("%.3g"):format(v) end
  return (("%.2f"):format(v):gsub("%.?0+$", ""))
end

local SHOW = {
  count = text.count,
  ns = function(v) return v < 0 and "-" .. text.time(-v) or text.time(v) end,
  bytes = function(v) return v < 0 and "-" .. text.size(-v) or text.size(v) end,
  share = function(v) return v < 0 and "-" .. text.percent(-v) or text.percent(v) end,
  cycles = text.count,
  number = number,
  line = function(v) return ("%d"):format(v) end,
  bar = numbers.bar,
}

local function show(value, unit)
  if value == nil then return "-" end
  if type(value) == "number" and SHOW[unit] then
    if value ~= value then return "-" end
    return SHOW[unit](value)
  end
  return text.escape(tostring(value))
end

--- What is wrong with a value as a result, in a few words; nil when it is one.
function M.fault(result)
  if type(result) ~= "table" or type(result.columns) ~= "table" or type(result.rows) ~= "table" then
    return "a result is a table with columns and rows"
  end
  if #result.columns == 0 then return "a result has at least one column" end
  for i, column in ipairs(result.columns) do
    if type(column) ~= "table" or type(column.name) ~= "string" then
      return ("column %d has no name"):format(i)
    end
    if column.unit ~= nil and not UNITS[column.unit] then
      return ("column '%s': no unit '%s'"):format(column.name, tostring(column.unit))
    end
  end
  for i, row in ipairs(result.rows) do
    if type(row) ~= "table" then return ("row %d is not a table"):format(i) end
  end
end

local function is_text(column) return (column.unit or "text") == "text" end

-- How wide each column is: at least its heading, at most what its values take.
local function layout(result, cells)
  local widths = {}
  for k, column in ipairs(result.columns) do
    local width = text.width(column.heading or column.name)
    for _, row in ipairs(cells) do width = math.max(width, text.width(row[k])) end
    widths[k] = width
  end
  return widths
end

-- Where all columns are wider than the line, text columns give way: the widest first.
local function shrink(result, widths, columns)
  if not columns then return end
  local function total()
    local sum = 2 * (#widths - 1)
    for _, width in ipairs(widths) do sum = sum + width end
    return sum
  end
  local over = total() - columns
  while over > 0 do
    local widest, next_width = nil, 8
    for k, column in ipairs(result.columns) do
      if is_text(column) and widths[k] > 8 and (not widest or widths[k] > widths[widest]) then
        widest = k
      end
    end
    if not widest then return end
    for k, column in ipairs(result.columns) do
      if is_text(column) and k ~= widest then next_width = math.max(next_width, widths[k]) end
    end
    local step = math.max(1, math.min(over, widths[widest] - next_width))
    widths[widest] = widths[widest] - step
    over = over - step
  end
end

local function line_of(result, cells, widths)
  local parts = {}
  for k, column in ipairs(result.columns) do
    local cell = text.fit(cells[k], widths[k])
    local left = is_text(column) or column.unit == "bar"
    parts[k] = left and text.left(cell, widths[k]) or text.right(cell, widths[k])
  end
  return text.trim_end(table.concat(parts, "  "))
end

local function write_text(result, columns, out)
  if result.title then out(text.escape(result.title), "\n\n") end
  local cells, headings = {}, {}
  for i, row in ipairs(result.rows) do
    cells[i] = {}
    for k, column in ipairs(result.columns) do cells[i][k] = show(row[k], column.unit) end
  end
  for k, column in ipairs(result.columns) do
    headings[k] = text.escape(column.heading or (column.name:upper():gsub("_", " ")))
  end
  local widths = layout({ columns = result.columns }, cells)
  for k, heading in ipairs(headings) do widths[k] = math.max(widths[k], text.width(heading)) end
  shrink(result, widths, columns)
  out(line_of(result, headings, widths), "\n")
  for _, row in ipairs(cells) do out(line_of(result, row, widths), "\n") end
  if #cells == 0 then out("(no rows)\n") end
  for i, note in ipairs(result.notes or {}) do
    out(i == 1 and "\n" or "", text.escape(note), "\n")
  end
end

-- A value of a row for a program: what has no form in JSON is text.
local function plain(value)
  local kind = type(value)
  if value == nil then return json.null end
  if value ~= value or value == math.huge or value == -math.huge then return json.null end
  if kind == "number" or kind == "boolean" or kind == "string" then return value end
  if kind == "cdata" then return tonumber(value) or tostring(value) end
  return tostring(value)
end

local function write_json(result, out)
  local names = {}
  out('{"columns":[')
  for k, column in ipairs(result.columns) do
    names[k] = column.name
    out(k > 1 and "," or "")
    json.write(json.object { "name", column.name, "unit", column.unit or "text" }, out)
  end
  out('],\n"rows":[')
  for i, row in ipairs(result.rows) do
    local fields = {}
    for k, name in ipairs(names) do
      fields[#fields + 1] = name
      fields[#fields + 1] = plain(row[k])
    end
    out(i > 1 and ",\n" or "\n")
    json.write(json.object(fields), out)
  end
  local notes = {}
  for i, note in ipairs(result.notes or {}) do notes[i] = note end
  out('],\n"title":')
  json.write(result.title or json.null, out)
  out(',\n"notes":')
  json.write(json.array(notes), out)
  out("}\n")
end

local function write_csv(result, out)
  local cells = { n = #result.columns }
  for k, column in ipairs(result.columns) do cells[k] = column.name end
  csv.row(cells, out)
  for _, row in ipairs(result.rows) do
    for k = 1, cells.n do cells[k] = plain(row[k]) end
    csv.row(cells, out)
  end
end

--- Write a result through out(...): format is "text", "json" or "csv"; columns is how wide lines
-- of text may be, nil for any width.
function M.write(result, format, columns, out)
  if format == "json" then
    write_json(result, out)
  elseif format == "csv" then
    write_csv(result, out)
  else
    write_text(result, columns, out)
  end
end

--- A result as text.
function M.to_text(result, columns)
  local parts = {}
  write_text(result, columns, function(...)
    for i = 1, select("#", ...) do parts[#parts + 1] = (select(i, ...)) end
  end)
  return table.concat(parts)
end

return M
