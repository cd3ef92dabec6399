--- runner.lua - run a plugin's function over captures: what queries, reports and commands share.
--
-- ctx = {
--   microscope = the API (require "microscope")
--   cap, caps  = the first capture, and all of them, open until the function returns
--   path, paths = theirs
--   format     = "text", "json" or "csv", as asked for; width = columns of a line, nil for any
--   selection(options) = microscope.selection of the first capture, of the samples that the command
--                line chose (--where, --source)
--   out(...)   = write pieces of text
--   fail(format, ...) = end with one line of text, status 1
-- }
-- The function may write with ctx.out, or return a result (report/table.lua) that is written in
-- the format asked for.

local plugins = require("microscope.plugins")
local result_table = require("microscope.report.table")

local M = {}

--- Open the captures: a list, or nil and one line.  Close them with M.close.
function M.open(paths)
  local capture = require("microscope.capture")
  local caps = {}
  for i, path in ipairs(paths) do
    local cap, err = capture.open(path)
    if not cap then
      M.close(caps)
      local problem = tostring(err)
      return nil, problem:find(path, 1, true) and problem or path .. ": " .. problem
    end
    caps[i] = cap
  end
  return caps
end

--- Close captures that M.open gave.
function M.close(caps)
  for _, cap in ipairs(caps) do cap:close() end
end

-- The columns that a manifest says it reads must be in the captures: nil, or one line.
local function missing_column(plugin, caps)
  for _, name in ipairs(plugin.columns or {}) do
    local tab, column = name:match("^([%w_]+)%.([%w_]+)$")
    for _, cap in ipairs(caps) do
      local found, err = cap:column(tab, column)
      if not found then return ("%s: %s"):format(cap.path, tostring(err)) end
    end
  end
end

local function wrong_count(plugin, count)
  local want = plugin.captures or 1
  if want == "any" or want == count then return nil end
  return ("%s reads %s, not %d"):format(plugin.name,
    want == 1 and "one capture" or want .. " captures", count)
end

-- What the command line chose, and what the plugin chooses of it.
local function chooser(api, cap, chosen)
  return function(options)
    local all = {}
    for name, value in pairs(options or {}) do all[name] = value end
    if chosen and chosen.source and all.source == nil then all.source = chosen.source end
    if chosen and chosen.where then
      all.where = all.where and ("(%s) and (%s)"):format(chosen.where, all.where) or chosen.where
    end
    return api.selection(cap, all)
  end
end

-- An expression or a source that is none is the command line's fault, not the plugin's: nil, or one
-- line.
local function wrong_choice(caps, chosen)
  if not chosen or not caps[1] then return nil end
  local ok, err = pcall(require("microscope").selection, caps[1], chosen)
  if not ok then
    return caps[1].path .. ": " .. tostring(err):gsub("^[^\n]-%.lua:%d+: ", "")
      :gsub("^selection: ", "--where: ")
  end
end

local function context(caps, options)
  local paths, api = {}, require("microscope")
  for i, cap in ipairs(caps) do paths[i] = cap.path end
  return {
    microscope = api,
    selection = chooser(api, caps[1], options.chosen),
    cap = caps[1],
    caps = caps,
    path = paths[1],
    paths = paths,
    format = options.format or "text",
    width = options.width,
    out = options.out,
    fail = plugins.fail,
  }
end

--- Write what a function gave: a result as its format says, other values as text.  True, or nil
-- and one line for a table that is no result.
function M.show(value, options)
  if value == nil or value == true then return true end
  if type(value) ~= "table" then
    options.out(tostring(value), "\n")
    return true
  end
  local fault = result_table.fault(value)
  if fault then return nil, fault end
  result_table.write(value, options.format or "text", options.width, options.out)
  return true
end

-- What a plugin prints goes where its output goes.
local function print_to(out)
  return function(...)
    local parts = {}
    for i = 1, select("#", ...) do parts[i] = tostring((select(i, ...))) end
    out(table.concat(parts, "\t"), "\n")
  end
end

--- Run a plugin over open captures.  options: args (its own), format, width, out, chosen ({where=,
-- source=}: which samples), extra (fields for ctx).  True, or nil and one line.  An error of the
-- command line's own goes on up.
function M.run(plugin, caps, options)
  local why = plugin.kind ~= "commands" and wrong_count(plugin, #caps)
    or missing_column(plugin, caps) or wrong_choice(caps, options.chosen)
  if why then return nil, why end
  local ctx = context(caps, options)
  for name, value in pairs(options.extra or {}) do ctx[name] = value end
  local globals = getfenv(plugin.run)
  if globals ~= _G then rawset(globals, "print", print_to(options.out)) end
  local ok, value = plugins.call(plugin.path, plugin.run, ctx, options.args or {})
  if not ok then
    if getmetatable(value) == plugins.Failure then
      return nil, plugin.name .. ": " .. value.message
    end
    if type(value) == "table" then error(value, 0) end
    return nil, value
  end
  local shown, fault = M.show(value, options)
  if not shown then return nil, plugin.path .. ": what it returned is no result: " .. fault end
  return true
end

return M
