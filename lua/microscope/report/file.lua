--- file.lua - write a result to a file that appears whole or not at all.

local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C

local M = {}

local file_type = ffi.typeof("struct mic_host_file")

local File = {}
File.__index = File

-- What is there already and no regular file (a pipe, a device) cannot be replaced.
local function is_replaceable(path)
  local facts = file_type()
  return C.mic_host_stat(path, facts) ~= 0 or facts.kind == C.MIC_HOST_FILE
end

--- Open path for writing, or stdout without one: a file, or nil and one line.
function M.open(path)
  if not path then return setmetatable({ handle = io.stdout }, File) end
  local temporary = is_replaceable(path) and path .. ".tmp" or nil
  local handle, err = io.open(temporary or path, "wb")
  if not handle then return nil, err end
  return setmetatable({ handle = handle, path = path, temporary = temporary }, File)
end

--- Write pieces of text: true, or nil and why not.
function File:write(...) return self.handle:write(...) end

--- All is written: true, or nil and why it is not there.
function File:finish()
  if not self.path then return true end
  local ok, err = self.handle:close()
  if ok and self.temporary then ok, err = os.rename(self.temporary, self.path) end
  if not ok then self:remove() end
  return ok, err
end

--- Leave no file.
function File:discard()
  if not self.path then return end
  self.handle:close()
  self:remove()
end

--- Remove what was written so far.
function File:remove()
  if self.temporary then os.remove(self.temporary) end
end

return M
