-- analysis_bench.lua - analysis of 10,000,000 samples of 1,000,000 distinct stacks: each step in a
-- process of its own, loops against C -O2 over the same columns, and reports against perf's.
--
-- Captures are generated (core/capture/generate.h) and removed again.  The goals are 3 s and
-- 1.5 GB for a step, and 1.2 and 1.6 times C for group-by and tree.  For perf a program is recorded
-- by both, one after the other, and what reporting costs is divided by the samples each has.

local capture = require("microscope.capture")
local kit = require("bench.kit")

local SAMPLES, STACKS = 10000000, 1000000
local RUNS = 3

local path, base = kit.folder .. "/analysis.usprof", kit.folder .. "/analysis-base.usprof"
assert(capture.generate { path = path, samples = SAMPLES, stacks = STACKS, seed = 1 })
assert(capture.generate { path = base, samples = SAMPLES, stacks = STACKS, seed = 1,
  period_ns = 1100000 })

local function step(name, ...)
  local words = { ("'%s/bench/analysis_steps.lua' \"%s\""):format(kit.root, name) }
  for _, word in ipairs { ... } do words[#words + 1] = "'" .. word .. "'" end
  local cost = kit.folder .. "/analysis.cost"
  local out = kit.run("%s", kit.costed(cost, "luajit " .. table.concat(words, " ")))
  return out, kit.cost(cost)
end

local rows = { { "step", "CPU s", "with opening", "peak MiB" } }
for _, name in ipairs { "open", "function table", "tree", "inverted tree", "whole inverted tree",
  "diff", "by thread", "by thread, function", "a user's group-by" } do
  local own, cpu, rss = {}, {}, {}
  for i = 1, RUNS do
    local out, cost = step(name, path, base)
    own[i], cpu[i], rss[i] = tonumber(out), cost.cpu_s, cost.rss_mib
  end
  rows[#rows + 1] = { name, kit.spread(own, "%.2f"), kit.spread(cpu, "%.2f"),
    ("%.0f"):format((kit.median(rss))) }
end
kit.print(("analysis of %s samples (medians of %d; least-most)"):format(kit.count(SAMPLES), RUNS),
  rows)

local columns = kit.folder .. "/analysis.columns"
local ours, theirs = {}, {}
for name, ns, check in step("loops", path, columns):gmatch("(%w+) (%d+) (%d+)\n") do
  ours[name] = { ns = tonumber(ns), check = check }
end
for name, ns, check in kit.run("'%s' '%s'", kit.program("bench/columns.c", "-O2"), columns)
  :gmatch("(%w+) (%d+) (%d+)\n") do
  theirs[name] = { ns = tonumber(ns), check = check }
end
rows = { { "loop", "Lua ms", "C ms", "ratio", "goal" } }
for _, it in ipairs { { "group", 1.2 }, { "tree", 1.6 } } do
  local a, b = ours[it[1]], theirs[it[1]]
  assert(a.check == b.check, "Lua and C do not agree")
  rows[#rows + 1] = { it[1], ("%.1f"):format(a.ns / 1e6), ("%.1f"):format(b.ns / 1e6),
    ("%.2f"):format(a.ns / b.ns), it[2] }
end
kit.print("loops against C -O2 (least of 5, same process each)", rows)
for _, file in ipairs { path, base, columns } do os.remove(file) end

-- What perf can load: its own recording of a program with frame pointers.
local program = kit.workload("deep C", 10)
local data, own = kit.folder .. "/analysis.perf", kit.folder .. "/analysis-own.usprof"
kit.run("perf record -q -F 9999 -g -o '%s' -- %s >/dev/null 2>&1", data, program)
kit.run("'%s' record -q --preset max -o '%s' -- %s >/dev/null 2>&1", kit.microscope, own, program)
local count = tonumber((kit.run("perf script -i '%s' -F tid 2>/dev/null | grep -c '^ *[0-9]'",
  data)))
local own_count = capture.with(own, function(cap) return cap:rows("samples") end)
rows = { { "report of " .. kit.count(count) .. " and " .. kit.count(own_count) .. " samples",
  "us of CPU a sample", "peak MiB" } }
local per_sample = {}
for i, it in ipairs {
  { "perf report", ("perf report --stdio --no-inline -i '%s'"):format(data), count },
  { "perf report --no-children", ("perf report --stdio --no-inline --no-children -i '%s'")
    :format(data), count },
  { "microscope report", ("'%s' report '%s'"):format(kit.microscope, own), own_count },
  { "microscope report --tree", ("'%s' report --tree '%s'"):format(kit.microscope, own),
    own_count },
} do
  local cpu, rss = {}, {}
  for k = 1, RUNS do
    local file = kit.folder .. "/analysis.cost"
    kit.run("%s >/dev/null 2>&1", kit.costed(file, it[2]))
    local cost = kit.cost(file)
    cpu[k], rss[k] = cost.cpu_s / it[3] * 1e6, cost.rss_mib
  end
  per_sample[i] = kit.median(cpu)
  rows[#rows + 1] = { it[1], kit.spread(cpu, "%.2f"), ("%.0f"):format((kit.median(rss))) }
end
kit.print(("ratio of microscope report to perf report: %.3f"):format(per_sample[3] / per_sample[1]),
  rows)
os.remove(data)
os.remove(own)
