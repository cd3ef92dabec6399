--- help.lua - help "topic" at the prompt: the API, tables and columns, queries.

local core = require("microscope.core")
local doc = require("microscope.doc")

local M = {}

local GENERAL = [[
Type Lua: an expression is shown, a result as a table.  What you set stays.

  cap, caps         the first capture, and all that were named
  microscope        the API; its functions are at hand by their own names too
  help "samples"    a table of the capture and its columns
  help "tree"       a function of the API
  help "api"        all functions; help "tables" all tables; help "queries" the queries
  run("modules")    run a query; run("sandwich", {["function"] = "main"}) with arguments

Tab completes names, tables and columns.  Ctrl-C ends what runs, Ctrl-D the session.
A statement may take several lines: it is run when it is whole; an empty line drops it.

  sums(cap, "thread")
  tree(cap, keys(cap), selection(cap, { where = "time < 1s" })).weight
]]

local entries

local function all_entries()
  entries = entries or doc.all(core.prefix .. "/share/microscope/lua/microscope")
  return entries
end

local function first_line(text)
  local line = text:match("^[^\n]*")
  return line:match("^(.-[.:])%s") or line
end

local function list_api(out)
  local section
  for _, entry in ipairs(all_entries()) do
    if entry.section ~= section then
      section = entry.section
      out("\n", section or "General", "\n")
    end
    out(("  %-44s %s\n"):format(doc.signature(entry), first_line(doc.text(entry))))
  end
end

local function list_tables(env, out)
  for _, name in ipairs(env.microscope.tables()) do
    out(("  %-16s %12s  %s\n"):format(name, env.microscope.count(env.cap:rows(name)),
      env.microscope.table_doc(name)))
  end
end

local function list_queries(out)
  for _, entry in ipairs(require("microscope.plugins").list("queries")) do
    if not entry.problem then out(("  %-16s %s\n"):format(entry.name, entry.summary)) end
  end
end

local function show_table(env, name, out)
  out("A row of ", name, ": ", env.microscope.table_doc(name), ".\n")
  for _, column in ipairs(env.cap:columns(name)) do
    local unit = column.ref and column.unit .. " of " .. column.ref or column.unit
    out(("  %-16s %-4s %-18s %s\n"):format(column.name, column.type, unit, column.doc))
  end
end

local function show_column(env, tab, name, out)
  local column = env.cap:column(tab, name)
  if not column then return false end
  out(("%s.%s (%s, %s%s): %s\n"):format(tab, name, column.type, column.unit,
    column.ref and " of " .. column.ref or "", column.doc))
  return true
end

-- Functions that a word names: exactly, else those whose name holds it.
local function show_functions(word, out)
  local exact, near = {}, {}
  for _, entry in ipairs(all_entries()) do
    if entry.name == word or entry.short == word then
      exact[#exact + 1] = entry
    elseif entry.name:find(word, 1, true) then
      near[#near + 1] = entry
    end
  end
  for i, entry in ipairs(exact) do
    out(i > 1 and "\n" or "", doc.signature(entry), "\n  ", (doc.text(entry):gsub("\n", "\n  ")),
      "\n")
  end
  if #exact == 0 and #near > 0 then
    for _, entry in ipairs(near) do
      out(("  %-44s %s\n"):format(doc.signature(entry), first_line(doc.text(entry))))
    end
  end
  return #exact + #near > 0
end

-- A query: what it answers, and what run takes for it.
local function show_query(name, out)
  if not name:match("^[%w][%w_%-]*$") then return false end
  local plugin = require("microscope.plugins").code("queries", name)
  if not plugin then return false end
  out(('run("%s"): %s\n'):format(name, plugin.description or plugin.summary))
  for _, list in ipairs { plugin.options or {}, plugin.arguments or {} } do
    for _, option in ipairs(list) do
      local default = option.default ~= nil and (" (%s)"):format(tostring(option.default)) or ""
      out(("  %-16s %-7s %s%s\n"):format((option.name:gsub("%-", "_")), option.type or "text",
        option.description or "", default))
    end
  end
  return true
end

--- Write the help of a topic; nil: what there is.
function M.show(env, topic, out)
  if topic == nil then
    out(GENERAL)
  elseif topic == "api" then
    list_api(out)
  elseif topic == "tables" then
    list_tables(env, out)
  elseif topic == "queries" then
    list_queries(out)
  elseif type(topic) ~= "string" then
    out('help takes a name in quotes: help "tree"\n')
  else
    local found = env.microscope.table_doc(topic) and true
    if found then show_table(env, topic, out) end
    local tab, column = topic:match("^([%w_]+)%.([%w_]+)$")
    found = tab and env.microscope.table_doc(tab) and show_column(env, tab, column, out) or found
    found = show_query(topic, out) or found
    found = show_functions(topic, out) or found
    if not found then
      out("nothing is called '", topic, '\'; help "api" and help "tables" list what is\n')
    end
  end
end

return M
