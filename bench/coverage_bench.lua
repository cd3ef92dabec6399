-- coverage_bench.lua - how often the 95 % interval of a report holds the truth.
--
-- Many short recordings of a program that knows its shares (fixtures/known/shares.c).  `split` has
-- blocks of random lengths; `beat` lets two functions take turns with a fixed period, where
-- sampling with a fixed period of its own can go wrong: the looks fall on the same places of the
-- loop again and again.

local interval = require("microscope.query.interval")
local kit = require("bench.kit")

local RUNS = tonumber(os.getenv("MIC_BENCH_RUNS") or 200)
local MILLISECONDS = 150
local RATE = 999
local PERIOD_NS = 1e9 / RATE

local shares = kit.program("fixtures/known/shares.c")
local capture = kit.folder .. "/coverage.usprof"

-- Samples by function of one recording, and the truth.
local function record(arguments)
  local out = kit.run([[
'%s' record -q -F %d -o '%s' -- '%s' %s
'%s' report --format json '%s']], kit.microscope, RATE, capture, shares, arguments,
    kit.microscope, capture)
  local truth, all = {}, nil
  for name, what, ns in out:gmatch("(%S+) (%S+) (%d+)\n") do
    if name == "all" then all = tonumber(ns) end
    if what == "self" then truth[name] = tonumber(ns) end
  end
  local found = {}
  for name, count in out:gmatch('{"name":"([^"]+)"[^\n]-"self_samples":(%d+)') do
    found[name] = tonumber(count)
  end
  return truth, all, found, tonumber(out:match('"samples":(%d+)'))
end

local function measure(arguments, runs)
  local inside, total, samples, error2, expected2 = 0, 0, 0, 0, 0
  for _ = 1, runs do
    local truth, all, found, n = record(arguments)
    samples = samples + n
    for name, ns in pairs(truth) do
      local share, k = ns / all, found[name] or 0
      local low, high = interval.wilson(k, n)
      if low <= share and share <= high then inside = inside + 1 end
      total = total + 1
      error2 = error2 + (k / n - share) ^ 2
      expected2 = expected2 + share * (1 - share) / n
    end
  end
  return { inside = inside / total, intervals = total, samples = samples / runs,
    spread = math.sqrt(error2 / expected2) }
end

local rows = { { "program", "recordings", "samples each", "intervals", "hold the truth", "goal",
  "spread" } }
local function row(title, arguments, runs, goal)
  local m = measure(arguments, runs)
  rows[#rows + 1] = { title, runs, ("%.0f"):format(m.samples), m.intervals,
    ("%.1f %%"):format(m.inside * 100), goal, ("%.2f"):format(m.spread) }
end

row("blocks of random lengths", "split " .. MILLISECONDS, RUNS, ">= 95 %")
for _, ratio in ipairs { 0.1, 0.37, 0.5, 1, 1.01, 2, 3.3 } do
  row(("turns of %g periods"):format(ratio),
    ("beat %d %d 30"):format(MILLISECONDS, ratio * PERIOD_NS), math.ceil(RUNS / 4), "-")
end
os.remove(capture)
os.remove(capture .. ".old")
-- Spread 1: errors as large as those of independent looks.
kit.print(("how often the 95 %% interval holds the truth, %d Hz"):format(RATE), rows)
