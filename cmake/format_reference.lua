-- format_reference.lua - the tables, columns and enums of docs/format.md, from the schema.
--
--   luajit cmake/format_reference.lua          rewrite what stands between the marks
--   luajit cmake/format_reference.lua --check  status 1 and one line when it is stale
--
-- Run in the checkout's root.  Sources: core/capture/schema.def, schema.h, enums.def, ends.def.

package.path = "./cmake/?.lua;" .. package.path
local reference = require("reference")
local read = reference.read

local function source(name)
  return (read("core/capture/" .. name):gsub("/%*.-%*/", ""))
end

-- Adjacent C strings are one.
local function unquote(text)
  return (text:gsub('"%s*"', ""):gsub('^%s*"', ""):gsub('"%s*$', ""):gsub('\\"', '"'))
end

local flag_words = {
  MIC_COL_OPTIONAL = "optional",
  MIC_COL_ASCENDING = "ascending",
  MIC_COL_BEFORE = "before",
}

-- What a column may hold, beside its type.
local function unit_text(unit, ref, flags)
  local words = {}
  if unit == "ID" then
    words[1] = ("id of [%s](#%s)"):format(ref, ref)
  elseif unit == "ENUM" then
    words[1] = ("[%s](#%s)"):format(ref, ref)
  elseif unit ~= "NONE" then
    words[1] = unit:lower()
  end
  for flag in flags:gmatch("[%w_]+") do words[#words + 1] = flag_words[flag] end
  return table.concat(words, ", ")
end

local function add_tables(out)
  local text = source("schema.def")
  for name, doc, body in text:gmatch('MIC_TABLE_BEGIN%(([%w_]+), (".-")%)\n(.-)MIC_TABLE_END') do
    out[#out + 1] = ("### %s\n\nA row: %s.\n\n| column | type | holds | meaning |\n"
      .. "|---|---|---|---|"):format(name, unquote(doc))
    for typ, column, unit, ref, flags, meaning in body:gmatch(
      'MIC_COLUMN%([%w_]+, (%w+), ([%w_]+), (%w+), ([%w_]+), ([^"]-),%s*(".-")%)\n') do
      out[#out + 1] = ("| `%s` | %s | %s | %s |"):format(column, typ,
        unit_text(unit, ref, flags), unquote(meaning))
    end
    out[#out + 1] = ""
  end
end

-- The numbers and comments of the constants in schema.h's enums.
local function constants()
  local numbers, comments = {}, {}
  local text = read("core/capture/schema.h")
  for name, number, rest in text:gmatch("(MIC_[%u%d_]+) = (%d+)([^\n]*)") do
    numbers[name] = tonumber(number)
    comments[name] = rest:match("^,?%s*/%*%s*(.-)%s*%*/")
  end
  -- Several on one line: the pattern above takes the first.
  for name, number in text:gmatch("(MIC_[%u%d_]+) = (%d+)") do
    numbers[name] = tonumber(number)
  end
  return numbers, comments
end

local function add_ends(out)
  out[#out + 1] = "| 0 | none | not a root |"
  for name, number, text, advice in source("ends.def"):gmatch(
    'MIC_END%(([%u%d_]+), (%d+), (".-"),%s*(".-")%)\n') do
    advice = unquote(advice)
    out[#out + 1] = ("| %s | %s | %s%s |"):format(number, name, unquote(text),
      advice ~= "" and " (" .. advice .. ")" or "")
  end
end

local function add_enums(out)
  local numbers, comments = constants()
  for enum, body in source("enums.def"):gmatch("MIC_ENUM_BEGIN%(([%w_]+)%)\n(.-)MIC_ENUM_END") do
    out[#out + 1] = ("### %s\n\n| value | name | meaning |\n|---|---|---|"):format(enum)
    if enum == "mic_end" then
      add_ends(out)
    else
      for constant, name in body:gmatch('MIC_ENUM_VALUE%([%w_]+, ([%w_]+), "(.-)"%)') do
        out[#out + 1] = ("| %d | %s | %s |"):format(
          assert(numbers[constant], "no number for " .. constant), name, comments[constant] or "")
      end
    end
    out[#out + 1] = ""
  end
end

local function tables()
  local out = {}
  add_tables(out)
  out[#out + 1] = "## Enums\n"
  add_enums(out)
  return table.concat(out, "\n")
end

reference.put("docs/format.md", tables())
