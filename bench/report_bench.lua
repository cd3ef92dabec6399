-- report_bench.lua - `microscope report` on a large capture: 1,000,000 samples of 100,000 stacks.
--
-- The capture is generated (core/capture/generate.h) and read once before, so that it is in the
-- page cache.  Five runs of the installed program.

local capture = require("microscope.capture")
local kit = require("bench.kit")

local RUNS = 5
local WALL_GOAL_S, RSS_GOAL_MIB = 0.5, 300

local path = kit.folder .. "/report.usprof"
assert(capture.generate { path = path, samples = 1000000, stacks = 100000 })

local rows = { { "command", "wall s (least-most)", "goal", "CPU s", "peak MiB", "goal" } }
for _, options in ipairs { "", "--tree", "--lines", "--format json" } do
  local wall, cpu, rss = {}, {}, {}
  local report = ("'%s' report %s '%s'"):format(kit.microscope, options, path)
  local command = kit.costed(kit.folder .. "/report.cost", report) .. " >/dev/null"
  kit.run(command)
  for i = 1, RUNS do
    kit.run(command)
    local cost = kit.cost(kit.folder .. "/report.cost")
    wall[i], cpu[i], rss[i] = cost.wall_s, cost.cpu_s, cost.rss_mib
  end
  rows[#rows + 1] = { "report " .. options, kit.spread(wall, "%.2f"), WALL_GOAL_S,
    ("%.2f"):format((kit.median(cpu))), ("%.0f"):format((kit.median(rss))), RSS_GOAL_MIB }
end
local nodes = capture.with(path, function(cap) return cap:rows("stacks") end)
kit.print(("report on 1,000,000 samples, %s stack nodes (medians of %d)"):format(kit.count(nodes),
  RUNS), rows)
os.remove(path)
