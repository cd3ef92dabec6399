--- manifest.lua - what a plugin says of itself, checked; and its arguments, by what it says.
--
-- return {
--   name = "hot-lines",                     -- may be left out: then it is the file's name
--   summary = "The lines that cost most.",  -- one line
--   description = "...",                    -- more, for --help; may be left out
--   options = {                             -- what may stand on the command line
--     { name = "limit", type = "count", default = 20, argname = "N", description = "..." },
--   },
--   arguments = { ... },                    -- words without a "--name"; as options
--   examples = { { "COMMAND LINE", "what for" } },
--   columns = { "samples.stack", ... },     -- what it reads of a capture
--   captures = 1,                           -- how many it reads (1; "any": one or more)
--   writes = "HTML",                        -- what it prints whatever --format: that is refused
--   run = function(ctx, args) ... end,      -- args.NAME; "_" stands for "-" in names
-- }
--
-- Types: "flag", "text", "number", "count" (a whole number of at least 1), "choice" (of choices).
-- least and most bound numbers, repeated = true makes a list.  A format has read(path, ctx)
-- or write(cap, path, ctx), or both, instead of run; `extensions`, detect(head) and `keeps` are
-- told in convert.lua.

local argparse = require("argparse")

local M = {}

local FIELDS = {
  name = "string", summary = "string", description = "string", options = "table",
  arguments = "table", columns = "table", examples = "table", run = "function", read = "function",
  write = "function", extensions = "table", detect = "function", keeps = "table",
  writes = "string", opens_images = "boolean",
}

local OPTION_FIELDS = {
  name = "string", type = "string", argname = "string", description = "string",
  choices = "table", least = "number", most = "number", repeated = "boolean",
  required = "boolean",
}

local TYPES = { flag = true, text = true, number = true, count = true, choice = true }

-- A table's keys in order: the first fault is the same each time.
local function keys_of(fields)
  local out = {}
  for key in pairs(fields) do out[#out + 1] = key end
  table.sort(out, function(a, b) return tostring(a) < tostring(b) end)
  return out
end

-- Nil, or what is wrong with one option or argument.
local function option_fault(option, is_argument)
  if type(option) ~= "table" then return "is not a table" end
  for _, field in ipairs(keys_of(OPTION_FIELDS)) do
    local kind = OPTION_FIELDS[field]
    if option[field] ~= nil and type(option[field]) ~= kind then
      return ("%s must be a %s"):format(field, kind)
    end
  end
  for _, field in ipairs(keys_of(option)) do
    if not OPTION_FIELDS[field] and field ~= "default" then
      return ("has no field '%s'"):format(tostring(field))
    end
  end
  if not option.name or not option.name:match("^%l[%l%d%-]*$") then
    return "its name must be of lower-case letters, digits and '-'"
  end
  local kind = option.type or "text"
  if not TYPES[kind] or is_argument and kind == "flag" then
    return "its type must be text, number, count or choice" .. (is_argument and "" or ", or flag")
  end
  if kind == "choice" and not (option.choices and #option.choices > 0) then
    return "its choices are missing"
  end
end

local function options_fault(list, what, is_argument, seen)
  for i, option in ipairs(list or {}) do
    local fault = option_fault(option, is_argument)
    local name = type(option) == "table" and type(option.name) == "string" and option.name or i
    if not fault and seen[name] then fault = "is there twice" end
    if fault then return ("%s '%s': %s"):format(what, name, fault) end
    seen[name] = true
  end
end

local function columns_fault(columns)
  for _, column in ipairs(columns or {}) do
    if type(column) ~= "string" or not column:match("^[%w_]+%.[%w_]+$") then
      return ("columns: '%s' is no 'table.column'"):format(tostring(column))
    end
  end
end

local function run_fault(value, kind)
  if kind == "formats" then
    if not (value.read or value.write) then return "it has neither read nor write" end
  elseif not value.run then
    return "run is missing: function(ctx, args)"
  end
  local captures = value.captures
  if captures ~= nil and captures ~= "any" and captures ~= 1 and captures ~= 2 then
    return 'captures must be 1, 2 or "any"'
  end
end

local function fault_of(value, kind)
  for _, field in ipairs(keys_of(FIELDS)) do
    local want = FIELDS[field]
    if value[field] ~= nil and type(value[field]) ~= want then
      return ("%s must be a %s"):format(field, want)
    end
  end
  for _, field in ipairs(keys_of(value)) do
    if not FIELDS[field] and field ~= "captures" then
      return ("a manifest has no field '%s'"):format(tostring(field))
    end
  end
  if not value.summary or value.summary:find("\n") then
    return "summary must be one line of text"
  end
  if value.name and not value.name:match("^[%w][%w_%-]*$") then
    return "name must be of letters, digits, '-' and '_'"
  end
  local seen = {}
  return run_fault(value, kind) or options_fault(value.options, "option", false, seen)
    or options_fault(value.arguments, "argument", true, seen) or columns_fault(value.columns)
end

--- Check what a plugin's file returned: the manifest, or nil and one line that begins with path.
function M.check(value, path, kind)
  if type(value) ~= "table" then
    return nil, path .. ": does not return a manifest (a table)"
  end
  local fault = fault_of(value, kind)
  if fault then return nil, path .. ": " .. fault end
  return value
end

-- A converter for argparse: a word as the option's value, or nil and why not.
local function converter(option)
  local kind = option.type or "text"
  if kind == "text" or kind == "choice" then return nil end
  local least = option.least or kind == "count" and 1 or -math.huge
  local most = option.most or math.huge
  return function(word)
    local value = word:match("^[%+%-]?%d*%.?%d+$") and tonumber(word)
    if value and kind == "count" and value % 1 ~= 0 then value = nil end
    if value and value >= least and value <= most then return value end
    return nil, ("%s must be a %snumber%s%s, not '%s'"):format(option.name,
      kind == "count" and "whole " or "",
      least > -math.huge and (" of at least %g"):format(least) or "",
      most < math.huge and (" and at most %g"):format(most) or "", word)
  end
end

local function target_of(option) return (option.name:gsub("%-", "_")) end

local function describe(option)
  local text = option.description or ""
  local default = option.default
  if default ~= nil and type(default) ~= "boolean" and type(default) ~= "table" then
    text = text:gsub("%.$", "") .. (" (%s)."):format(tostring(default))
  end
  return text
end

--- Add a manifest's options to an argparse parser; with_arguments adds its arguments too.
function M.add_options(parser, plugin, with_arguments)
  for _, option in ipairs(plugin.options or {}) do
    local added
    if option.type == "flag" then
      added = parser:flag("--" .. option.name)
    else
      added = parser:option("--" .. option.name):argname(option.argname
        or option.choices and table.concat(option.choices, "|") or option.name:upper())
      local convert = converter(option)
      if convert then added:convert(convert) end
      if option.choices then added:choices(option.choices) end
      if option.repeated then added:count("*") end
    end
    added:target(target_of(option)):description(describe(option))
  end
  for _, option in ipairs(with_arguments and plugin.arguments or {}) do
    local added = parser:argument(target_of(option)):args(option.repeated and "*" or "?")
      :description(describe(option))
    local convert = converter(option)
    if convert then added:convert(convert) end
    if option.choices then added:choices(option.choices) end
  end
end

-- A list that is empty was not given.
local function given(value)
  if type(value) == "table" and #value == 0 then return nil end
  return value
end

--- A plugin's own arguments from what parsers gave, the later ones first to be asked, with
-- defaults filled in: a table by name ("_" for "-"); or nil and what is missing.
function M.collect(plugin, parsed)
  local out = {}
  for _, list in ipairs { plugin.options or {}, plugin.arguments or {} } do
    for _, option in ipairs(list) do
      local target = target_of(option)
      for _, args in ipairs(parsed) do
        if out[target] == nil then out[target] = given(args[target]) end
      end
      if out[target] == nil then out[target] = option.default end
      if out[target] == nil and option.required then
        return nil, ("%s needs %s%s"):format(plugin.name,
          list == plugin.options and "--" or "the argument ", option.name)
      end
    end
  end
  return out
end

--- What may stand after "--", as a usage line says it.
function M.usage(plugin)
  local parts = {}
  if #(plugin.options or {}) > 0 then parts[1] = "OPTIONS" end
  for _, argument in ipairs(plugin.arguments or {}) do
    local word = argument.argname or argument.name:upper()
    if argument.repeated then word = word .. "..." end
    parts[#parts + 1] = argument.required and word or "[" .. word .. "]"
  end
  return table.concat(parts, " ")
end

--- The lines of a help that tell of a plugin's arguments; "" when it has none.
function M.arguments_help(plugin)
  local lines = {}
  for _, argument in ipairs(plugin.arguments or {}) do
    lines[#lines + 1] = ("   %-22s %s"):format(argument.argname or argument.name:upper(),
      describe(argument))
  end
  if #lines == 0 then return "" end
  return '\nAfter "--":\n' .. table.concat(lines, "\n")
end

--- A parser of a plugin's own words: what stands after "--".
function M.parser(plugin, name)
  local parser = argparse(name):add_help(false)
  M.add_options(parser, plugin, true)
  return parser
end

return M
