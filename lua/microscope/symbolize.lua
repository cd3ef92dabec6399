--- symbolize.lua - give the locations of a capture their names: start, poll until done, free.
--
-- Thin over core/symbolize/symbolize.h.  A job holds the process's SIGINT, SIGTERM and SIGHUP
-- until it is freed; there is one at a time.

local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C

local M = {}

local Job = {}
Job.__index = Job

local options_type = ffi.typeof("struct mic_symbolize_options")
local progress_type = ffi.typeof("struct mic_symbolize_progress")
local out_type = ffi.typeof("struct mic_symbolize *[1]")
local signal_type = ffi.typeof("int32_t[1]")
local texts_type = ffi.typeof("const char *[?]")

local KINDS = {
  [tonumber(C.MIC_SYMBOLIZE_TICK)] = "tick",
  [tonumber(C.MIC_SYMBOLIZE_INTERRUPTED)] = "interrupted",
  [tonumber(C.MIC_SYMBOLIZE_DONE)] = "done",
  [tonumber(C.MIC_SYMBOLIZE_FAILED)] = "failed",
}

--- Begin to name a capture: options {input=, output=, debug_dirs = list, debuginfod = boolean}.
-- The job, or nil and an error.
function M.new(o)
  local options, out, err = options_type(), out_type(), core.new_error()
  local folders = texts_type(#o.debug_dirs + 1)
  for i, folder in ipairs(o.debug_dirs) do folders[i - 1] = folder end
  options.size = ffi.sizeof(options_type)
  options.debuginfod = o.debuginfod and 1 or 0
  options.input, options.output, options.debug_dirs = o.input, o.output, folders
  local ok, why = core.check(C.mic_symbolize_new(options, out, err), err)
  if not ok then return nil, why end
  return setmetatable({ handle = out[0], raw = progress_type(), err = err,
    signal = signal_type() }, Job)
end

--- The next event: "tick" | "interrupted" | "done" | "failed", and the signal that interrupted.
function Job:poll(timeout_ms)
  local kind = KINDS[tonumber(C.mic_symbolize_poll(self.handle, timeout_ms, self.signal))]
  return kind, self.signal[0]
end

--- How far it is: {modules, module, locations, located, fetched, fetch_bytes, fetching, writing,
-- name}, the last one the path of the module at work.
function Job:progress()
  local raw = self.raw
  C.mic_symbolize_progress(self.handle, raw)
  return {
    modules = raw.modules,
    module = raw.module,
    locations = tonumber(raw.locations),
    located = tonumber(raw.located),
    fetched = tonumber(raw.fetched),
    fetch_bytes = tonumber(raw.fetch_bytes),
    fetching = raw.fetching ~= 0,
    writing = raw.writing ~= 0,
    name = ffi.string(raw.name),
  }
end

--- End it as soon as can be; polls go on to "failed", or to "done" when all is written already.
function Job:stop() C.mic_symbolize_stop(self.handle) end

--- Why it failed.
function Job:error()
  C.mic_symbolize_error(self.handle, self.err)
  return core.error(self.err)
end

--- Safe to call twice.
function Job:free()
  if not self.handle then return end
  C.mic_symbolize_free(self.handle)
  self.handle = nil
end

return M
