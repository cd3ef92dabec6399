--- complete.lua - what Tab offers: names of the API, of a capture's tables and columns, of fields.

local M = {}

-- The longest beginning that all have.
local function common(list)
  local first = list[1] or ""
  local size = #first
  for _, word in ipairs(list) do
    while word:sub(1, size) ~= first:sub(1, size) do size = size - 1 end
  end
  return first:sub(1, size)
end

local function sorted_matches(names, start)
  local seen, out = {}, {}
  for _, name in ipairs(names) do
    if name:sub(1, #start) == start and not seen[name] then
      seen[name] = true
      out[#out + 1] = name
    end
  end
  table.sort(out)
  return out
end

local KEYWORDS = { "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if",
  "in", "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while" }

local function add_keys(value, out)
  if type(value) ~= "table" then return end
  for name in pairs(value) do
    if type(name) == "string" and name:match("^[%a][%w_]*$") then out[#out + 1] = name end
  end
end

-- All names that stand for something by themselves.
local function global_names(env)
  local out = {}
  for _, word in ipairs(KEYWORDS) do out[#out + 1] = word end
  add_keys(env, out)
  add_keys(env.microscope, out)
  add_keys(_G, out)
  return out
end

-- The value of a chain of names ("cap", "microscope.json"): without calling anything.
local function value_of(env, chain)
  local value = env
  for name in chain:gmatch("[%a_][%w_]*") do
    if type(value) ~= "table" then return nil end
    if value == env then value = env[name] else value = rawget(value, name) end
  end
  return value
end

local function field_names(env, chain)
  local value, out = value_of(env, chain), {}
  add_keys(value, out)
  local meta = getmetatable(value)
  if type(meta) == "table" then add_keys(rawget(meta, "__index"), out) end
  return out
end

-- The table that a call's text within quotes is about: `cap:array("samples", "st` -> samples.
local function table_in_call(before) return before:match('[%(,]%s*["\']([%w_]+)["\'][^%)]*$') end

local function names_of_columns(env, tab)
  local out = {}
  for _, column in ipairs(env.cap and env.cap:columns(tab) or {}) do out[#out + 1] = column.name end
  return out
end

-- What may stand within quotes: columns after a table's name, else tables and their columns.
local function quoted_names(env, before, start)
  local tab = table_in_call(before)
  local tables = env.microscope.tables()
  for _, name in ipairs(tables) do
    if name == tab then return names_of_columns(env, tab) end
  end
  local of = start:match("^([%w_]+)%.")
  if of then
    local out = {}
    for _, name in ipairs(names_of_columns(env, of)) do out[#out + 1] = of .. "." .. name end
    return out
  end
  return tables
end

-- The names that may go on a text, and how they begin.
local function candidates(env, line)
  local before, quoted = line:match("^(.*)[\"']([%w_%.]*)$")
  local _, quotes = line:gsub("[\"']", "")
  if quoted and quotes % 2 == 1 then return quoted_names(env, before, quoted), quoted end
  local chain, start = line:match("([%a_][%w_%.]*)[.:]([%w_]*)$")
  if chain then return field_names(env, chain), start end
  start = line:match("[%a_][%w_]*$") or ""
  return global_names(env), start
end

-- In columns of the terminal's width.
local function layout(names, width)
  local widest = 0
  for _, name in ipairs(names) do widest = math.max(widest, #name) end
  local columns = math.max(1, math.floor(((width or 80) + 2) / (widest + 2)))
  local out = {}
  for i, name in ipairs(names) do
    local last = i % columns == 0 or i == #names
    out[#out + 1] = last and name .. (i < #names and "\n" or "") or name .. (" "):rep(
      widest + 2 - #name)
  end
  return table.concat(out)
end

--- What Tab does after `line`: {insert = the text that is sure, list = what there is to choose
-- from, when that is several}.
function M.complete(env, line, width)
  local names, start = candidates(env, line)
  local found = sorted_matches(names, start)
  if #found == 0 then return {} end
  local insert = common(found):sub(#start + 1)
  if #found == 1 or insert ~= "" then return { insert = insert } end
  return { list = layout(found, width) }
end

return M
