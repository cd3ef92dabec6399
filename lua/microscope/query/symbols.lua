--- symbols.lua - find the functions that a person means by a name.
--
-- A symbol is, in this order: a function's name; NAME@WHERE, where WHERE is the function's
-- module, the file that declares it, or FILE:LINE, whole or from its last parts; these again of
-- names without their parameters; a glob; or /regex/.  Code without a name is found by what
-- reports call it.

local ffi = require("ffi")

local keys_query = require("microscope.query.keys")
local pattern = require("microscope.query.pattern")

local M = {}

local NONE = 0xffffffff
local u8 = ffi.typeof("uint8_t[?]")

-- How many candidates a message lists.
local CANDIDATES = 10

-- What tells functions of one name apart: module, declaring file (nil: not known), line (0).
local function identity(cap, fn)
  local module, file = cap:array("functions", "module")[fn], cap:array("functions", "file")[fn]
  return module ~= NONE and cap:string(cap:array("modules", "name")[module]) or "",
    file ~= NONE and cap:string(cap:array("files", "path")[file]) or nil,
    cap:array("functions", "line")[fn]
end

-- Whether `where` is path, or the end of it that begins after a slash.
local function ends_path(path, where)
  return path == where or path:sub(-#where - 1) == "/" .. where
end

local function stands_at(cap, fn, where)
  local module, file, line = identity(cap, fn)
  if module == where then return true end
  if not file then return false end
  return ends_path(file, where) or ends_path(file .. ":" .. line, where)
end

-- All groups of keys: for each its first key and its name.
local function names_of(cap, keys)
  local out, seen = {}, {}
  for key = 0, keys.count - 1 do
    local group = keys.group[key]
    if not seen[group] then
      seen[group] = true
      out[#out + 1] = { group = group, key = key, name = keys_query.describe(cap, keys, key).name }
    end
  end
  return out
end

local function select(names, matches)
  local out = {}
  for _, entry in ipairs(names) do
    if matches(entry) then out[#out + 1] = entry end
  end
  return out
end

-- Where what a name ends with before `stop` begins: a bracket that is closed there.  nil for none.
local function opening(name, stop, open, close)
  local depth = 0
  for at = stop, 1, -1 do
    local byte = name:byte(at)
    depth = depth + (byte == close and 1 or byte == open and -1 or 0)
    if depth == 0 then return at end
  end
  return nil
end

local QUALIFIERS = { " const", " volatile", " &", " &&" }

-- A C++ name without its parameters and what follows them: "f" of "f(int) const [clone .cold]";
-- nil for a name without any.  A name is as long as its file says: each step looks at an end.
local function bare(name)
  local stop, last = #name
  while name:byte(stop) == 93 do -- ]
    local at = opening(name, stop, 91, 93)
    if not at or name:sub(at - 1, at + 5) ~= " [clone" then return nil end
    stop = at - 2
  end
  repeat
    last = stop
    for _, word in ipairs(QUALIFIERS) do
      if name:sub(stop - #word + 1, stop) == word then stop = stop - #word end
    end
  until stop == last
  if name:byte(stop) ~= 41 then return nil end -- )
  local at = opening(name, stop, 40, 41)
  local out = at and name:sub(1, at - 1) or ""
  -- The call operator's own name ends in brackets.
  local is_call = out == "operator" or out:sub(-9):match("^[^%w_]operator$")
  return out ~= "" and not is_call and out or nil
end

-- Names that are a symbol; field is "name", or "bare".
local function exact(cap, keys, names, symbol, field)
  local found = select(names, function(entry) return entry[field] == symbol end)
  if #found > 0 then return found end
  -- Names hold @ too (versions of symbols): each is tried as the one before WHERE.
  local at = symbol:find("@", 2, true)
  while at do
    local name, where = symbol:sub(1, at - 1), symbol:sub(at + 1)
    found = select(names, function(entry)
      local fn = entry[field] == name and keys_query.function_of(cap, keys, entry.key)
      return fn and stands_at(cap, fn, where)
    end)
    if #found > 0 and where ~= "" then return found end
    at = symbol:find("@", at + 1, true)
  end
  return {}
end

--- How to name just one function of a key: NAME, with @FILE:LINE or @MODULE to tell it apart.
function M.full_name(cap, keys, key)
  local name, fn = keys_query.describe(cap, keys, key).name, keys_query.function_of(cap, keys, key)
  if not fn then return name end
  local module, file, line = identity(cap, fn)
  if file then return ("%s@%s:%d"):format(name, file, line) end
  return module ~= "" and name .. "@" .. module or name
end

local function list(cap, keys, entries)
  local out = {}
  for i, entry in ipairs(entries) do
    if i > CANDIDATES then
      out[#out + 1] = ("and %d more"):format(#entries - CANDIDATES)
      break
    end
    out[#out + 1] = M.full_name(cap, keys, entry.key)
  end
  return out
end

-- Names that are near to one that is absent: those that hold it, whatever the case; else those
-- that hold its longest word.
local function near(names, symbol)
  local function holding(piece)
    piece = piece:lower()
    return select(names, function(entry) return entry.name:lower():find(piece, 1, true) end)
  end
  local found = holding(symbol)
  if #found > 0 then return found end
  local longest = ""
  for word in symbol:gmatch("[%w_]+") do
    if #word > #longest then longest = word end
  end
  return #longest > 2 and holding(longest) or {}
end

-- Outermost pcall: a costly expression raises a text.
local function matching(names, matches)
  local ok, found = pcall(select, names, function(entry) return matches(entry.name) end)
  if not ok then return nil, found end
  return found
end

local function find(cap, keys, names, symbol)
  local found = exact(cap, keys, names, symbol, "name")
  if #found > 0 then return found end
  for _, entry in ipairs(names) do entry.bare = bare(entry.name) end
  found = exact(cap, keys, names, symbol, "bare")
  if #found > 0 then return found end
  if not pattern.regex_of(symbol) and not pattern.is_glob(symbol) then return {} end
  local matches, why = pattern.compile(symbol)
  if not matches then return nil, ("'%s' is no regular expression: %s"):format(symbol, why) end
  return matching(names, matches)
end

--- The functions that a symbol means: {mask=, count=, names=, keys=}: mask is FFI
-- u8[keys.count + keys.ENDS], 1 for each of their keys; count is how many functions they are,
-- names what they are called in full (at most some), keys one key of each.  nil and a message
-- that lists candidates when there is none, or more than one and options.one is set.
function M.match(cap, keys, symbol, options)
  local names = names_of(cap, keys)
  local found, why = find(cap, keys, names, symbol)
  if not found then return nil, why end
  if #found == 0 then
    local candidates = list(cap, keys, near(names, symbol))
    return nil, ("no function '%s'%s"):format(symbol, #candidates > 0
      and "; near to it: " .. table.concat(candidates, ", ") or "")
  end
  local listed = list(cap, keys, found)
  if #found > 1 and options and options.one then
    return nil, ("'%s' names %d functions: %s"):format(symbol, #found, table.concat(listed, ", "))
  end
  local groups, mask, firsts = {}, u8(keys.count + keys_query.ENDS), {}
  for _, entry in ipairs(found) do
    groups[entry.group] = true
    firsts[#firsts + 1] = entry.key
  end
  for key = 0, keys.count - 1 do
    if groups[keys.group[key]] then mask[key] = 1 end
  end
  return { mask = mask, count = #found, names = listed, keys = firsts }
end

return M
