--- plugins.lua - finds the files that extend microscope: a user's first, then shipped ones.
--
-- A user's files stand in $XDG_CONFIG_HOME/microscope/KIND/ (~/.config without the variable)
-- and are read only when the effective user owns them and nobody else may write them.  Under
-- AT_SECURE no user's file is read.  Never the current directory, never bytecode.

local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C

local M = {}

local file_type = ffi.typeof("struct mic_host_file")
local OTHERS_WRITE = 0x12 -- S_IWGRP | S_IWOTH

--- The folders of a kind ("presets"), the user's first.
function M.folders(kind)
  local out = {}
  if C.mic_host_secure() == 0 then
    local config = os.getenv("XDG_CONFIG_HOME")
    -- The XDG specification has relative paths ignored.
    if not config or config:sub(1, 1) ~= "/" then
      local home = os.getenv("HOME")
      config = home and home:sub(1, 1) == "/" and home .. "/.config"
    end
    if config then out[1] = { path = config .. "/microscope/" .. kind, user = true } end
  end
  out[#out + 1] = { path = core.prefix .. "/share/microscope/" .. kind, user = false }
  return out
end

-- True, false when there is no such file, or nil and why it is not read.
local function may_read(path, user)
  local facts = file_type()
  if C.mic_host_stat(path, facts) ~= 0 then return false end
  if facts.kind ~= C.MIC_HOST_FILE then return nil, path .. " is not a file" end
  if user then
    if facts.uid ~= C.mic_host_uid() then
      return nil, path .. " is not read: you do not own it"
    end
    if require("bit").band(facts.mode, OTHERS_WRITE) ~= 0 then
      return nil, path .. " is not read: others may write it (chmod go-w)"
    end
  end
  return true
end

-- Run a file of data: Lua text, with nothing in reach.
local function load_data(path)
  local chunk, err = loadfile(path, "t")
  if not chunk then
    -- LuaJIT's message for bytecode names no file.
    return nil, err:find(path, 1, true) and err or path .. ": not Lua text: " .. err
  end
  setfenv(chunk, {})
  local ok, value = pcall(chunk)
  if not ok then return nil, tostring(value) end
  if type(value) ~= "table" then return nil, path .. " does not return a table" end
  return value
end

--- A data file of a kind by its name, or by its path when the name holds a slash:
-- the table and its path, or nil and one line that says why.
function M.data(kind, name)
  if name:find("/", 1, true) then
    local value, err = load_data(name)
    return value, value and name or err
  end
  for _, folder in ipairs(M.folders(kind)) do
    local path = folder.path .. "/" .. name .. ".lua"
    local ok, why = may_read(path, folder.user)
    if ok == nil then return nil, why end
    if ok then
      local value, err = load_data(path)
      return value, value and path or err
    end
  end
  return nil, ("no %s '%s'"):format((kind:gsub("s$", "")), name)
end

return M
