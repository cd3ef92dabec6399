-- lost_bench.lua - `max` on one busy thread, ten times: how many samples are lost.
--
-- No ring is larger than 64 MiB (core/record/session.c, ring_bytes).

local kit = require("bench.kit")

local RUNS = 10
local RING_GOAL_MIB = 64

local rows = { { "run", "samples", "lost", "other records lost", "off ms" } }
local clean = 0
for i = 1, RUNS do
  local path = kit.folder .. "/lost.usprof"
  kit.run("'%s' record -q --preset max -o '%s' -- %s >/dev/null", kit.microscope, path,
    kit.workload("busy", 3))
  local json = kit.run("'%s' report --format json '%s'", kit.microscope, path)
  local function field(name) return tonumber(json:match('"' .. name .. '":(%d+)')) end
  local lost, off = field("lost_samples"), field("off_ns")
  if lost == 0 and off == 0 then clean = clean + 1 end
  rows[#rows + 1] = { i, kit.count(field("samples")), kit.count(lost),
    kit.count(field("lost_records")), ("%.1f"):format(off / 1e6) }
  os.remove(path)
  os.remove(path .. ".old")
end
kit.print(("max on one busy thread: %d of %d runs lost nothing (goal: 9 of 10, rings of at most "
  .. "%d MiB)"):format(clean, RUNS, RING_GOAL_MIB), rows)
