--- text.lua - how numbers and names from outside look in a terminal.

local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C

local M = {}

--- 1234567 -> "1,234,567".
function M.count(n)
  local text = ("%.0f"):format(n)
  repeat
    local changed
    text, changed = text:gsub("^(%-?%d+)(%d%d%d)", "%1,%2")
  until changed == 0
  return text
end

--- "1 sample", "2 samples".
function M.plural(n, noun) return M.count(n) .. " " .. noun .. (n == 1 and "" or "s") end

local TIMES = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" } }

--- Nanoseconds with three digits and a unit: "1.23 s", "45.6 ms".
function M.time(time_ns)
  for _, unit in ipairs(TIMES) do
    local value = time_ns / unit[1]
    -- What would round up to 1000 of the smaller unit belongs to the larger one.
    if value >= 0.9995 then
      local digits = value < 9.995 and 2 or value < 99.95 and 1 or 0
      return ("%." .. digits .. "f %s"):format(value, unit[2])
    end
  end
  return ("%d ns"):format(time_ns)
end

local SIZES = { { 2 ^ 30, "GiB" }, { 2 ^ 20, "MiB" }, { 2 ^ 10, "KiB" } }

--- Bytes: "12.3 MiB".
function M.size(bytes)
  for _, unit in ipairs(SIZES) do
    if bytes >= unit[1] then return ("%.1f %s"):format(bytes / unit[1], unit[2]) end
  end
  return ("%d B"):format(bytes)
end

--- A share as a percentage, to one place: "45.1 %"; what is there but under 0.05 is "<0.1 %".
function M.percent(share)
  local value = share * 100
  if value > 0 and value < 0.05 then return "<0.1 %" end
  return ("%.1f %%"):format(value)
end

local text_type = ffi.typeof("const char *")

--- A sequence of UTF-8 (RFC 3629) at a byte: its length, or nil when it is none.
function M.utf8_length(text, at)
  local length = C.mic_utf8_length(ffi.cast(text_type, text) + (at - 1), #text - at + 1)
  return length > 0 and length or nil
end

--- Whether a UTF-8 sequence is acted on rather than shown (core/base/utf8.h).
function M.is_control(sequence) return C.mic_utf8_is_control(sequence, #sequence) ~= 0 end

local SHORT = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t" }

local function hex(bytes)
  return (bytes:gsub(".", function(c) return SHORT[c] or ("\\x%02x"):format(c:byte()) end))
end

--- A name from outside with nothing in it that a terminal would act on: control characters and
-- bytes that are no UTF-8 are written as \xNN, a backslash stays.
function M.escape(text)
  if not text:find("[%z\1-\31\127-\255]") then return text end
  local out, at = {}, 1
  while at <= #text do
    local size = M.utf8_length(text, at)
    local piece = text:sub(at, at + (size or 1) - 1)
    if not size or piece:match("^[%z\1-\31\127]$") or M.is_control(piece) then
      piece = hex(piece)
    end
    out[#out + 1] = piece
    at = at + (size or 1)
  end
  return table.concat(out)
end

--- The last part of a path.  In time of its length: "[^/]*$" looks again from every byte on.
function M.last_part(path) return path:match("^.*/(.*)$") or path end

--- A text without blanks at its end, in time of its length: "%s+$" looks from every blank on.
function M.trim_end(text)
  local last = #text
  while last > 0 and text:find("^%s", last) do last = last - 1 end
  return text:sub(1, last)
end

--- Characters of an escaped text; each counts as one column.
function M.width(text) return #text:gsub("[\128-\191]", "") end

--- The first n characters.
function M.head(text, n)
  local at = 1
  while n > 0 and at <= #text do
    at = at + M.utf8_length(text, at)
    n = n - 1
  end
  return text:sub(1, at - 1)
end

--- An escaped text of at most `width` columns; one that is cut ends in "...".
function M.fit(text, width)
  if not width or M.width(text) <= width then return text end
  if width < 4 then return M.head(text, math.max(width, 0)) end
  return M.head(text, width - 3) .. "..."
end

--- A text with blanks after it, or before it, up to a width.
function M.left(text, width) return text .. (" "):rep(width - M.width(text)) end
--- See left.
function M.right(text, width) return (" "):rep(width - M.width(text)) .. text end

--- How wide lines on stdout may be: $COLUMNS when it is set, else a terminal's width, else nil
-- (a file or a pipe: nothing is cut).
function M.columns()
  local given = tonumber(os.getenv("COLUMNS") or "")
  if given and given >= 1 then return math.max(40, math.floor(given)) end
  local columns = C.mic_host_columns(1)
  return columns > 0 and math.max(40, columns) or nil
end

--- Whether a descriptor is a terminal.
function M.is_terminal(fd) return C.mic_host_is_terminal(ffi.cast("int32_t", fd)) == 1 end

--- Whether bars of block characters can be shown: stdout is a terminal and the locale is UTF-8.
function M.shows_bars()
  local locale = ""
  for _, name in ipairs { "LC_ALL", "LC_CTYPE", "LANG" } do
    locale = os.getenv(name) or ""
    if locale ~= "" then break end
  end
  return M.is_terminal(1) and locale:lower():find("utf%-?8") ~= nil
end

--- Is the descriptor a terminal that no program draws on or edits lines at?
function M.reads_lines(fd) return C.mic_host_reads_lines(ffi.cast("int32_t", fd)) == 1 end

return M
