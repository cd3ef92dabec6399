--- evaluator.lua - Lua that is typed: expressions of `query -e` and the lines of the REPL.
--
-- What is typed sees `cap` (the first capture), `caps` (all), `microscope` (the API), the API's
-- functions by their own names, Lua's own, and what was set before.  It is a user's own code and
-- may do what Lua may.

local result_table = require("microscope.report.table")
local text = require("microscope.report.text")

local M = {}

-- An inspected table shows this many of its fields, and tables in it to this depth.
local MOST_FIELDS, MOST_DEPTH = 40, 3

--- The globals for what is typed; out(...) is where its print goes.
function M.environment(caps, out)
  local api = require("microscope")
  local own = { cap = caps[1], caps = caps, microscope = api, out = out }
  function own.print(...)
    local parts = {}
    for i = 1, select("#", ...) do parts[i] = tostring((select(i, ...))) end
    out(M.inspect(table.concat(parts, "\t")), "\n")
  end
  return setmetatable(own, { __index = function(_, name)
    local value = api[name]
    -- Lua's own beats the API's, so that `table` and `type` stay what they are.
    if _G[name] ~= nil then return _G[name] end
    return value
  end })
end

--- Compile what was typed: an expression, or statements.  The function, or nil, one line, and
-- whether more lines could make it whole.
function M.compile(source, environment, name)
  if source:byte() == 27 then return nil, name .. ": bytecode is not run, only text of Lua" end
  local chunk, as_expression = loadstring("return " .. source, "=" .. name)
  if chunk then return setfenv(chunk, environment) end
  local err
  chunk, err = loadstring(source, "=" .. name)
  if chunk then return setfenv(chunk, environment) end
  local goes_on = as_expression:match("<eof>'?$") or err:match("<eof>'?$")
  return nil, err, goes_on ~= nil
end

local function key_text(key)
  if type(key) == "string" and key:match("^[%a_][%w_]*$") then return key end
  return "[" .. (type(key) == "string" and ("%q"):format(key) or tostring(key)) .. "]"
end

local function by_text(a, b)
  if type(a) == type(b) and type(a) == "number" then return a < b end
  return tostring(a) < tostring(b)
end

-- Text of several lines keeps them; nothing in it acts on a terminal.
local function escape_lines(value)
  return (value:gsub("[^\n\t]+", text.escape))
end

--- A value as a person reads it: tables with their fields, sorted, to a depth.
function M.inspect(value, depth)
  if type(value) == "string" then
    return depth and '"' .. text.escape(value) .. '"' or escape_lines(value)
  end
  if type(value) ~= "table" then return text.escape(tostring(value)) end
  local meta = getmetatable(value)
  if type(meta) == "table" and meta.__tostring then return text.escape(tostring(value)) end
  depth = depth or 0
  local keys = {}
  for key in pairs(value) do keys[#keys + 1] = key end
  if #keys == 0 then return "{}" end
  if depth >= MOST_DEPTH then return ("{%s}"):format(text.plural(#keys, "field")) end
  table.sort(keys, by_text)
  local lines, pad = {}, ("  "):rep(depth + 1)
  for i, key in ipairs(keys) do
    if i > MOST_FIELDS then
      lines[#lines + 1] = pad .. ("... %d more"):format(#keys - MOST_FIELDS)
      break
    end
    lines[#lines + 1] = pad .. key_text(key) .. " = " .. M.inspect(value[key], depth + 1)
  end
  return "{\n" .. table.concat(lines, ",\n") .. "\n" .. ("  "):rep(depth) .. "}"
end

--- Write a value through options.out: a result as a table in options.format, others inspected.
function M.show(value, options)
  if result_table.fault(value) == nil then
    result_table.write(value, options.format or "text", options.width, options.out)
  else
    options.out(M.inspect(value), "\n")
  end
end

-- The place in what was typed, and the message; errors of libraries say where they are.
local function explain(err)
  if type(err) == "table" then
    local meta = getmetatable(err)
    return meta and meta.__tostring and tostring(err) or M.inspect(err)
  end
  return tostring(err)
end

local function count_and_pack(ok, ...) return ok, select("#", ...), { ... } end

--- Run what M.compile gave and show what it returns.  True, or nil and one line.
function M.run(chunk, options)
  local ok, count, values = count_and_pack(xpcall(chunk, explain))
  if not ok then return nil, tostring(values[1]) end
  for i = 1, count do
    if count > 1 or values[i] ~= nil then
      local shown, err = pcall(M.show, values[i], options)
      if not shown then return nil, tostring(err) end
    end
  end
  return true
end

return M
