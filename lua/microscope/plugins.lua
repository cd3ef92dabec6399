--- plugins.lua - finds the files that extend microscope: a user's first, then shipped ones.
--
-- KIND is presets (data), queries, reports, formats or commands (a manifest and functions).
-- A user's files stand in $XDG_CONFIG_HOME/microscope/KIND/ (~/.config without the variable)
-- and are read only when the effective user owns file and folder and nobody else may write them.
-- Under AT_SECURE no user's file is read.  A user's file beats a shipped one of its name, but a
-- command of microscope itself cannot be replaced.  Nothing is looked for in the current
-- directory or taken from a capture, and bytecode is refused.

local bit = require("bit")
local ffi = require("ffi")

local core = require("microscope.core")
local in_folder = require("microscope.folder")
local manifest = require("microscope.manifest")

local C = core.C

local M = {}

--- The kinds of plugins, in the order in which they are listed.
M.KINDS = { "presets", "queries", "reports", "formats", "commands" }

--- Why code of a user's is not run when the kernel gave the process more rights than the user has.
M.SECURE = " is not run: the program has more rights than you have"

local ONE = { presets = "preset", queries = "query", reports = "report", formats = "format",
  commands = "command" }

local file_type = ffi.typeof("struct mic_host_file")
local OTHERS_WRITE = 0x12 -- S_IWGRP | S_IWOTH

-- Code is not looked for where the caller happens to stand: in a plain luajit the default
-- package.path begins with ./?.lua (the program drops such patterns itself).
local function drop_relative(patterns)
  local kept = {}
  for pattern in patterns:gmatch("[^;]+") do
    if pattern:sub(1, 1) == "/" then kept[#kept + 1] = pattern end
  end
  return table.concat(kept, ";")
end

--- Whether the process has more rights than its user: then no code of a user's is run.
function M.is_secure() return C.mic_host_secure() ~= 0 end

--- The folders of a kind ("presets"), the user's first: {path=, user=}.
function M.folders(kind)
  local out = {}
  if not M.is_secure() then
    local config = os.getenv("XDG_CONFIG_HOME")
    -- The XDG specification has relative paths ignored.
    if not config or config:sub(1, 1) ~= "/" then
      local home = os.getenv("HOME")
      config = home and home:sub(1, 1) == "/" and home .. "/.config"
    end
    if config then
      local own = config .. "/microscope"
      out[1] = { path = own .. "/" .. kind, user = true, above = { own, config } }
    end
  end
  out[#out + 1] = { path = core.prefix .. "/share/microscope/" .. kind, user = false }
  return out
end

-- Nil when only the user may write it, else why it is not read.
local function foreign(path, facts)
  if facts.uid ~= C.mic_host_uid() then return path .. " is not read: you do not own it" end
  if bit.band(facts.mode, OTHERS_WRITE) ~= 0 then
    return path .. " is not read: others may write it (chmod go-w)"
  end
end

-- The same for a folder above the user's own, which may be root's: who may write it can put another
-- in the place of the next.
local function replaceable(path)
  local facts = file_type()
  if C.mic_host_stat(path, facts) ~= 0 then return nil end
  if facts.uid == 0 then facts.uid = C.mic_host_uid() end
  return foreign(path, facts)
end

-- Nil when only the user may write a file of his folder, by any way, else why it is not read.
local function not_own(path, facts, folder)
  local why = foreign(path, facts)
  if not why and C.mic_host_stat(folder.path, facts) == 0 then why = foreign(folder.path, facts) end
  for _, above in ipairs(folder.above) do why = why or replaceable(above) end
  return why
end

-- True, false when there is no such file, or nil and why it is not read.
local function may_read(path, folder)
  local facts = file_type()
  if C.mic_host_stat(path, facts) ~= 0 then return false end
  if facts.kind ~= C.MIC_HOST_FILE then return nil, path .. " is not a file" end
  if folder and folder.user then
    local why = not_own(path, facts, folder)
    if why then return nil, why end
  end
  return true
end

-- The chunk of a file of Lua text, or nil and one line.
local function load_text(path)
  local chunk, err = loadfile(path, "t")
  if chunk then return chunk end
  -- LuaJIT's message for bytecode names no file.
  return nil, err:find(path, 1, true) and err or path .. ": not Lua text: " .. err
end

-- Run a file of data: Lua text, with nothing in reach.
local function load_data(path)
  local chunk, err = load_text(path)
  if not chunk then return nil, err end
  setfenv(chunk, {})
  local ok, value = pcall(chunk)
  if not ok then return nil, tostring(value) end
  if type(value) ~= "table" then return nil, path .. " does not return a table" end
  return value
end

-- Run a file of code: what it sets as globals stays its own.
local function load_code(path, kind)
  local chunk, err = load_text(path)
  if not chunk then return nil, err end
  setfenv(chunk, setmetatable({}, { __index = _G }))
  package.path, package.cpath = drop_relative(package.path), drop_relative(package.cpath)
  local ok, value = M.call(path, chunk)
  if not ok then return nil, value end
  -- What it gave may raise where it is looked at.
  local done, checked, why = M.call(path, manifest.check, value, path, kind)
  if not done then return nil, checked end
  return checked, why
end

-- The innermost place in a plugin's file that runs now, as "FILE:LINE"; nil when there is none.
local function place_in(path)
  local level = 3
  while true do
    local info = debug.getinfo(level, "Sl")
    if not info then return nil end
    if info.source == "@" .. path and info.currentline > 0 then
      return ("%s:%d"):format(path, info.currentline)
    end
    level = level + 1
  end
end

-- An error's text; its own __tostring may fail, too.
local function told(err)
  local meta = getmetatable(err)
  if type(err) == "table" and not (type(meta) == "table" and meta.__tostring) then
    return "an error that is a table without words"
  end
  local ok, message = pcall(tostring, err)
  return ok and message or "an error (a " .. type(err) .. ") that cannot be shown"
end

-- Lua shortens long paths in its messages to "...end/of/path.lua:LINE: ": the place is said whole.
-- A tail call leaves no place of its own: then it is where the called function begins.
local function explain(path, fn, err)
  if M.passes(err) then return err end
  local message = told(err)
  local text = message:match("^%[string .-%]:%d+: (.*)$")
    or message:match("^[^\n]-%.lua:%d+: (.*)$") or message
  local place = place_in(path)
  if place then return place .. ": " .. text end
  if message:find(path, 1, true) then return message end
  local info = debug.getinfo(fn, "S")
  if info.source ~= "@" .. path then return path .. ": " .. message end
  return ("%s:%d: in the function that begins there: %s"):format(path,
    math.max(info.linedefined, 1), text)
end

local function outcome(path, ok, ...)
  if ok then return true, ... end
  local err = ...
  if M.passes(err) then return false, err end
  -- An error of no memory or of a full stack may come without the handler's work.
  local message = told(err)
  return false, message:find(path, 1, true) and message or path .. ": " .. message
end

--- Whether an error is one of microscope's own, which ends a command with its own words: what the
-- metatable of such a table says.
function M.passes(err)
  local meta = type(err) == "table" and getmetatable(err)
  return type(meta) == "table" and rawget(meta, "passes") == true
end

--- Call a plugin's function: true and what it returns, or false and one line that begins with
-- the place in the plugin's own file, as "FILE:LINE: message".  An error of microscope's own
-- (M.passes) is handed on as it is.
function M.call(path, fn, ...)
  local args, count = { ... }, select("#", ...)
  return outcome(path, xpcall(function() return fn(unpack(args, 1, count)) end, function(err)
    return explain(path, fn, err)
  end))
end

-- A word that is a path rather than a name.
local function is_path(word) return word:find("/", 1, true) or word:match("%.lua$") end

-- A command of microscope's own.
local function is_own(kind, name)
  return kind == "commands" and require("microscope.cli").is_own(name)
end

-- Where a plugin is: its path and whether it is a user's, or nil and one line that says why not.
local function find(kind, name)
  if is_path(name) then
    if kind ~= "presets" and M.is_secure() then return nil, name .. M.SECURE end
    local ok, why = may_read(name)
    if not ok then return nil, why or ("no %s at %s"):format(ONE[kind], name) end
    return name, true
  end
  if is_own(kind, name) then return nil, name .. " is a command of microscope's own" end
  for _, folder in ipairs(M.folders(kind)) do
    local path = folder.path .. "/" .. name .. ".lua"
    local ok, why = may_read(path, folder)
    if ok == nil then return nil, why end
    if ok then return path, folder.user end
  end
  return nil, ("no %s '%s'"):format(ONE[kind], name)
end

--- A data file of a kind by its name, or by its path when the name holds a slash or ends in
-- ".lua": the table and its path, or nil and one line that says why.
function M.data(kind, name)
  local path, why = find(kind, name)
  if not path then return nil, why end
  local value, err = load_data(path)
  return value, value and path or err
end

--- A plugin of code by its name or path (as in M.data): its manifest with `name` and `path` set,
-- or nil and one line that says why.
function M.code(kind, name)
  local path, user = find(kind, name)
  if not path then return nil, user end
  local plugin, err = load_code(path, kind)
  if not plugin then return nil, err end
  plugin.name = plugin.name or path:match("([^/]+)%.lua$") or path
  plugin.path, plugin.user = path, user
  return plugin
end

-- The names of the Lua files in a folder; of a folder that cannot be read, none and why.
local function names_in(path)
  local names, errno = in_folder.names(path, ".lua")
  for i, name in ipairs(names) do names[i] = name:sub(1, -5) end
  return names, errno
end

-- What is to be said of one file: an entry of M.list.
local function entry_of(kind, name, folder, hidden)
  local path = folder.path .. "/" .. name .. ".lua"
  local entry = { kind = kind, name = name, path = path, user = folder.user, summary = "" }
  local ok, why = may_read(path, folder)
  if is_own(kind, name) then
    ok, why = nil, name .. " is a command of microscope's own and cannot be replaced"
  elseif hidden then
    ok, why = nil, "a file of yours with this name is used instead"
  end
  if not ok then
    entry.problem = why or "it is gone"
    return entry
  end
  local loader = kind == "presets" and load_data or load_code
  local value, err = loader(path, kind)
  if not value then
    entry.problem = type(err) == "table" and tostring(err) or err
  else
    entry.summary = type(value.summary) == "string" and value.summary or ""
  end
  return entry
end

--- All plugins of a kind, by name: {kind=, name=, path=, user=, summary=, problem=}; problem says
-- why one is not used, nil when it is.  A plugin that fails does not stop the others.
function M.list(kind)
  local out, seen = {}, {}
  for _, folder in ipairs(M.folders(kind)) do
    for _, name in ipairs(names_in(folder.path)) do
      local entry = entry_of(kind, name, folder, seen[name])
      if not is_own(kind, name) then seen[name] = true end
      out[#out + 1] = entry
    end
  end
  table.sort(out, function(a, b)
    if a.name ~= b.name then return a.name < b.name end
    return a.user and not b.user
  end)
  return out
end

--- Whether the user has a file of that kind and name, whatever is in it: its path, or nil.
function M.users_file(kind, name)
  for _, folder in ipairs(M.folders(kind)) do
    local path = folder.path .. "/" .. name .. ".lua"
    if folder.user and C.mic_host_stat(path, file_type()) == 0 then return path end
  end
end

--- What a plugin's ctx.fail throws: a message that needs no place in the plugin's file.
M.Failure = { passes = true }
M.Failure.__index = M.Failure
M.Failure.__tostring = function(self) return self.message end

--- End what a plugin does with one line of text.
function M.fail(format, ...)
  error(setmetatable({ message = format:format(...) }, M.Failure), 0)
end

return M
