--- session.lua - a recording in progress, pulled: new, start, poll until done or failed, free.
--
-- Thin over core/record/session.h.  A session holds the process's SIGINT, SIGTERM and SIGHUP
-- until it is freed; there is one at a time.

local ffi = require("ffi")

local core = require("microscope.core")
local options = require("microscope.options")

local C = core.C

local M = {}

local Session = {}
Session.__index = Session

local options_type = ffi.typeof("struct mic_record_options")
local event_type = ffi.typeof("struct mic_session_event")
local numbers_type = ffi.typeof("struct mic_session_numbers")
local out_type = ffi.typeof("struct mic_session *[1]")
local status_type = ffi.typeof("int32_t[1]")
local texts_type = ffi.typeof("const char *[?]")
local ids_type = ffi.typeof("uint32_t[?]")

local KINDS = {
  [tonumber(C.MIC_SESSION_TICK)] = "tick",
  [tonumber(C.MIC_SESSION_INTERRUPTED)] = "interrupted",
  [tonumber(C.MIC_SESSION_EXITED)] = "exited",
  [tonumber(C.MIC_SESSION_DURATION)] = "duration",
  [tonumber(C.MIC_SESSION_DONE)] = "done",
  [tonumber(C.MIC_SESSION_FAILED)] = "failed",
}

-- Sessions that are not freed yet: C holds pointers into what their `kept` anchors.
local live = {} -- luacheck: ignore 241

-- An array of C strings that ends with NULL; the Lua strings are anchored in kept.
local function texts(list, kept)
  local array = texts_type(#list + 1)
  for i, text in ipairs(list) do
    array[i - 1] = text
    kept[#kept + 1] = text
  end
  kept[#kept + 1] = array
  return array
end

local function ns(seconds) return math.floor((seconds or 0) * 1e9 + 0.5) end

-- The C options, with everything they point to in kept.
local function to_c(o, kept)
  local c = options_type()
  c.size = ffi.sizeof(options_type)
  c.measure = o.event == "cycles" and C.MIC_MEASURE_CYCLES or C.MIC_MEASURE_CPU_CLOCK
  c.period = o.period
  c.stack_bytes = o.stack_bytes
  c.children = o.children and 1 or 0
  c.budget_permille = o.budget and math.floor(o.budget * 10 + 0.5) or 0
  c.keep_old = 1
  c.symbols = o.symbols == "later" and C.MIC_SYMBOLS_LATER or C.MIC_SYMBOLS_NOW
  c.keep_images = o.keep_images and 1 or 0
  c.delay_ns = ns(o.delay)
  c.duration_ns = ns(o.duration)
  c.output = o.output
  kept[#kept + 1] = o.output
  if o.program then c.argv = texts(o.program, kept) end
  if o.pids then
    local ids = ids_type(#o.pids, o.pids)
    kept[#kept + 1] = ids
    c.pids, c.pid_count = ids, #o.pids
  end
  local settings = {}
  for _, pair in ipairs(options.pairs(o)) do
    settings[#settings + 1] = pair[1]
    settings[#settings + 1] = pair[2]
  end
  c.settings, c.setting_count = texts(settings, kept), #settings / 2
  kept[#kept + 1] = c
  return c
end

--- A session for RecordOptions (options.lua), or nil and an error.
function M.new(o)
  local kept, out, err = {}, out_type(), core.new_error()
  local ok, why = core.check(C.mic_session_new(to_c(o, kept), out, err), err)
  if not ok then return nil, why end
  local self = setmetatable({ handle = out[0], event = event_type(), err = err }, Session)
  live[self] = kept
  return self
end

--- Start the program or attach: true, or nil and an error.
function Session:start() return core.check(C.mic_session_start(self.handle, self.err), self.err) end

--- The next event: "tick" | "interrupted" | "exited" | "duration" | "done" | "failed", and its
-- value; or nil and an error.
function Session:poll(timeout_ms)
  local ok, why = core.check(C.mic_session_poll(self.handle, timeout_ms, self.event, self.err),
    self.err)
  if not ok then return nil, why end
  return KINDS[tonumber(self.event.kind)], self.event.value
end

--- Stop sampling and write the capture; polls go on to "done" or "failed".
function Session:stop() C.mic_session_stop(self.handle) end

--- The session's numbers now, as Lua numbers by the names of struct mic_session_numbers.
function Session:numbers()
  local n = numbers_type()
  C.mic_session_numbers(self.handle, n)
  local out = {}
  for _, name in ipairs { "elapsed_ns", "samples", "lost_samples", "lost_records", "off_ns",
    "off_queue_ns", "off_budget_ns", "bytes", "startup_cpu_ns", "running_cpu_ns",
    "finishing_cpu_ns", "ring_bytes", "ring_bytes_asked", "queue_peak_bytes", "pid", "threads" }
  do
    out[name] = tonumber(n[name])
  end
  return out
end

--- Why it failed; nil when it did not.
function Session:error()
  C.mic_session_error(self.handle, self.err)
  if self.err.code == 0 then return nil end
  return core.error(self.err)
end

--- End the program it started, if that still runs: its exit status, 128+N for signal N.
function Session:end_program()
  local status = status_type()
  C.mic_session_end_program(self.handle, status)
  return status[0]
end

--- End it: a program it started that still runs is ended too.  Safe to call twice.
function Session:free()
  if not self.handle then return end
  C.mic_session_free(self.handle)
  self.handle = nil
  live[self] = nil
end

return M
