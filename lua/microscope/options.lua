--- options.lua - RecordOptions: what a recording is made with, from a preset and overrides.
--
-- A plain table, all facts in it, made once before a recording begins:
--   preset          the preset's name
--   event           "cpu-clock" or "cycles"
--   rate            samples a second of CPU time
--   period          ns of CPU time, or cycles, between two samples: what the kernel is told
--   stack_bytes     of each stack that are copied
--   budget          of one CPU in percent for the recorder, or nil
--   children        whether processes that are forked are recorded too
--   symbols         "now" or "later": when functions and lines get their names
--   keep_images     whether the parts of images that names need are kept in the capture
--   delay, duration in seconds; duration nil: to the end
--   output          the capture's path
--   program | pids  an array of words, or of process ids

local plugins = require("microscope.plugins")

local M = {}

-- perf copies at most this much of a stack: a u16 of the record's size, less its head, in eights.
M.MAX_STACK_BYTES = 65528
-- Beyond this a sample costs more than the time until the next (a timer's interrupt alone takes
-- some microseconds).
M.MAX_RATE = 100000
-- A cycle counter's period is derived from the rate as if the CPU ran at this many cycles a
-- second; what the CPU does run at varies from moment to moment.
M.NOMINAL_CYCLES = 3e9
-- Thirty years: nanoseconds of it are far from what 64 bits hold.
M.MAX_SECONDS = 1e9
-- The core keeps a budget in thousandths of one CPU.
M.LEAST_BUDGET = 0.1

local FIELDS = { rate = "number", stack_bytes = "number", budget = "number", summary = "string" }

--- Whether a value may be the option's: true, or nil and why not.
function M.check(name, value)
  if name == "rate" then
    if value >= 1 and value <= M.MAX_RATE then return true end
    return nil, ("rate must be 1 to %d samples a second"):format(M.MAX_RATE)
  elseif name == "stack_bytes" then
    if value >= 8 and value <= M.MAX_STACK_BYTES and value % 8 == 0 then return true end
    return nil, ("stack-bytes must be a multiple of 8 up to %d"):format(M.MAX_STACK_BYTES)
  elseif name == "budget" then
    if value >= M.LEAST_BUDGET and value <= 100 then return true end
    return nil, ("budget must be a percentage of one CPU, %g to 100"):format(M.LEAST_BUDGET)
  elseif name == "delay" or name == "duration" then
    if value <= M.MAX_SECONDS and (value > 0 or name == "delay") then return true end
    return nil, ("%s must be seconds, %sat most %d"):format(name,
      name == "delay" and "" or "more than 0, ", M.MAX_SECONDS)
  end
  return true
end

--- A preset by name or path: its table, or nil and one line.
function M.preset(name)
  local preset, where = plugins.data("presets", name)
  if not preset then return nil, where .. " (shipped are prod, dev and max)" end
  for key, value in pairs(preset) do
    if FIELDS[key] ~= type(value) then
      return nil, ("%s: %s"):format(where, FIELDS[key]
        and ("%s must be a %s"):format(key, FIELDS[key])
        or ("no such setting '%s'; a preset has rate, stack_bytes, budget, summary"):format(
          tostring(key)))
    end
    local ok, why = M.check(key, value)
    if not ok then return nil, where .. ": " .. why end
  end
  for _, key in ipairs { "rate", "stack_bytes" } do
    if not preset[key] then return nil, ("%s: %s is missing"):format(where, key) end
  end
  return preset
end

--- RecordOptions from a preset's name and overrides (fields as above, nil where not given).
function M.new(name, given)
  local preset, err = M.preset(name)
  if not preset then return nil, err end
  local options = {
    preset = name,
    event = given.event or "cpu-clock",
    rate = given.rate or preset.rate,
    stack_bytes = given.stack_bytes or preset.stack_bytes,
    budget = given.budget or preset.budget,
    children = given.children ~= false,
    symbols = given.symbols or "now",
    keep_images = given.keep_images == true,
    delay = given.delay or 0,
    duration = given.duration,
    output = given.output or "microscope.usprof",
    program = given.program,
    pids = given.pids,
  }
  local units = options.event == "cycles" and M.NOMINAL_CYCLES or 1e9
  options.period = given.period or math.floor(units / options.rate + 0.5)
  if given.period then options.rate = units / given.period end
  return options
end

-- 999, 0.5, 1001.001: no more digits than needed.
local function number(value) return ("%.6g"):format(value) end

--- The options as pairs of texts {name, value}, in a fixed order: for --dry-run and the capture.
function M.pairs(options)
  local unit = options.event == "cycles" and "cycles" or "ns"
  return {
    { "preset", options.preset },
    { "event", options.event },
    { "rate", number(options.rate) .. " Hz" },
    { "period", ("%d %s"):format(options.period, unit) },
    { "stack-bytes", ("%d"):format(options.stack_bytes) },
    { "budget", options.budget and number(options.budget) .. " %" or "none" },
    { "children", options.children and "yes" or "no" },
    { "symbols", options.symbols },
    { "keep-images", options.keep_images and "yes" or "no" },
    { "delay", number(options.delay) .. " s" },
    { "duration", options.duration and number(options.duration) .. " s" or "none" },
  }
end

return M
