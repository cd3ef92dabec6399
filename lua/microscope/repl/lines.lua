--- lines.lua - where a session's lines come from: a person at a terminal, or a file or pipe.
--
-- A reader has read(prompt, complete): a line; nil and "end" or "interrupted"; remember(line) and
-- close().  complete(text, cursor) gives {insert=, list=}: what Tab puts in and what it lists.

local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C

local M = {}

local handle_type, size_type = ffi.typeof("struct mic_line *[1]"), ffi.typeof("uint32_t[1]")

-- The file of lines of earlier sessions: $XDG_STATE_HOME/microscope/history; nil for none.
local function history_path()
  if C.mic_host_secure() ~= 0 then return nil end
  local state, home = os.getenv("XDG_STATE_HOME"), os.getenv("HOME")
  -- The XDG specification has relative paths ignored.
  if not state or state:sub(1, 1) ~= "/" then
    state = home and home:sub(1, 1) == "/" and home .. "/.local/state"
  end
  if not state then return nil end
  local folder = state .. "/microscope"
  if C.mic_host_make_folder(folder) ~= 0 then return nil end
  return folder .. "/history"
end

local Editor = {}
Editor.__index = Editor

local function text_of(editor)
  local size, cursor = size_type(), size_type()
  local bytes = C.mic_line_text(editor.handle[0], size, cursor)
  return ffi.string(bytes, size[0]), cursor[0]
end

--- A line, edited; nil and "end" or "interrupted".
function Editor:read(prompt, complete)
  while true do
    local event = C.mic_line_read(self.handle[0], prompt)
    if event == C.MIC_LINE_END then return nil, "end" end
    if event == C.MIC_LINE_INTERRUPTED then return nil, "interrupted" end
    local line, cursor = text_of(self)
    if event == C.MIC_LINE_TEXT then return line end
    local answer = complete(line:sub(1, cursor)) or {}
    -- The line is drawn anew: over the old one, or below what is listed.
    io.stdout:write(answer.list and "\n" .. answer.list .. "\n" or "\r\27[K")
    io.stdout:flush()
    local rest = line:sub(cursor + 1)
    C.mic_line_insert(self.handle[0], line:sub(1, cursor) .. (answer.insert or "") .. rest,
      #rest:gsub("[\128-\191]", ""))
  end
end

--- Keep a line for the next sessions.
function Editor:remember(line) C.mic_line_remember(self.handle[0], line) end

--- Give the terminal back.
function Editor:close()
  if not self.handle then return end
  C.mic_line_close(self.handle[0])
  self.handle = nil
end

local Plain = {}
Plain.__index = Plain

--- The next line of stdin.
function Plain:read() -- luacheck: ignore 212
  local line = io.stdin:read("*l")
  if line then return line end
  return nil, C.mic_host_interrupted() == 1 and "interrupted" or "end"
end

--- Lines from elsewhere are not kept.
function Plain:remember() end -- luacheck: ignore 212

--- Nothing to give back.
function Plain:close() end -- luacheck: ignore 212

--- Lines of stdin as they come.
function M.plain() return setmetatable({}, Plain) end

--- Lines of a person at the terminal; options.history keeps them.  Where the terminal cannot be
-- had, lines as they come.
function M.editor(options)
  local handle = handle_type()
  if C.mic_line_open(options.history and history_path() or nil, handle) ~= 0 then
    return M.plain()
  end
  return setmetatable({ handle = handle }, Editor)
end

return M
