-- record_bench.lua - the whole job beside perf: record, unwind, name, write.
--
-- Both attach to a process that waits at a gate, so that neither's figures hold the program's own
-- CPU time or the start of the recorder: CPU time is counted from the moment its events are on.
-- perf's is that of `perf record` and of `perf script --no-inline`.  Pairs run one after the
-- other, and the program alone with each; a pair's figures are for a thousand samples, as perf
-- loses some.
--
-- Slowdown is the program's own CPU time, recorded to alone: interrupts and copies are in it, and
-- other programs on the machine disturb it less than wall time.
--
-- MIC_BENCH_ONLY=NAME restricts the programs, MIC_BENCH_PRESET=max or dev the presets;
-- MIC_BENCH_SCALE=N makes recordings N times as long, MIC_BENCH_PAIRS=N the pairs more or fewer.

local kit = require("bench.kit")

local PAIRS = tonumber(os.getenv("MIC_BENCH_PAIRS") or 5)
local SCALE = tonumber(os.getenv("MIC_BENCH_SCALE") or 1)
local CPU_GOAL, SLOWDOWN_GOAL = 0.1, 1
-- Seconds of CPU time for somewhat more than 10,000 samples.
local PRESETS = {
  { name = "max", rate = 9999, stack = 16384, scale = 1.3 },
  { name = "dev", rate = 999, stack = 32768, scale = 12 },
}

-- What both scripts begin and end with: the program behind a gate, wait4's view of it in `target`.
local BEGIN = [[
cd '%s'; rm -rf run; mkdir run; cd run; mkfifo gate
bash -c 'read -r _ <gate; exec %s' >/dev/null & target=$!
until_true() { for _ in $(seq 2000); do "$@" && return 0; sleep 0.01; done; return 1; }
]]
local END = [[
echo go >gate
wait $target; wait $recorder
]]

local function begin(command)
  return BEGIN:format(kit.folder, kit.costed("target", command):gsub("'", "'\\''"))
end

-- What a running process has used of a CPU (proc(5), schedstat).
local START = "read -r cpu _ </proc/$pid/schedstat; echo $cpu >start\n"

local function perf(command, preset)
  -- perf says that its events are on: it is asked through its control pipe.
  kit.run(begin(command) .. ([[
mkfifo ctl ack; exec 7<>ctl 8<>ack
%s record -q -e cpu-clock:u -F %d --call-graph dwarf,%d -o p.data --control=fifo:ctl,ack -D -1 \
  -p $target 2>perf.err & recorder=$!
echo enable >&7; read -r _ <&8
pid=$(cat /proc/$recorder/task/$recorder/children); pid=${pid%% }
]]):format(kit.costed("record", "perf"), preset.rate, preset.stack) .. START .. END
    .. kit.costed("script", "perf script --no-inline -i p.data") .. [[ >script.out 2>/dev/null
grep -c 'cpu-clock:' script.out >samples || true
]])
end

local function microscope(command, preset)
  kit.run(begin(command) .. ([[
%s record -q --preset %s -o m.usprof --pid $target & recorder=$!
threads() { pid=$(cat /proc/$recorder/task/$recorder/children); pid=${pid%% }
  [ -n "$pid" ] && [ $(ls /proc/$pid/task | wc -l) -ge 4 ]; }
until_true threads; sleep 0.2
]]):format(kit.costed("record", "'" .. kit.microscope .. "'"), preset.name) .. START .. END .. ([[
'%s' report --format json m.usprof >report.json
]]):format(kit.microscope))
end

local function alone(command)
  kit.run(begin(command) .. "recorder=$target\n" .. END)
end

local run = kit.folder .. "/run/"

local function costs(...)
  local total = -tonumber(kit.read(run .. "start")) / 1e9
  for _, name in ipairs { ... } do total = total + kit.cost(run .. name).cpu_s end
  return total
end

local function field(json, name) return tonumber(json:match('"' .. name .. '":(%d+)')) end

local function measure(name, preset)
  local command = kit.workload(name, preset.scale * SCALE)
  local out = { ours = {}, theirs = {}, ratio = {}, slow = {}, perf_slow = {}, slow_ratio = {} }
  for i = 1, PAIRS do
    alone(command)
    local base_s = kit.cost(run .. "target").cpu_s
    perf(command, preset)
    local perf_s, perf_samples = costs("record", "script"), tonumber(kit.read(run .. "samples"))
    local perf_target_s = kit.cost(run .. "target").cpu_s
    microscope(command, preset)
    local own_s, json = costs("record"), kit.read(run .. "report.json")
    local own_target_s = kit.cost(run .. "target").cpu_s
    out.samples, out.lost = field(json, "samples"), field(json, "lost_samples")
    out.perf_samples = perf_samples
    out.ours[i] = own_s / out.samples * 1e6
    out.theirs[i] = perf_s / perf_samples * 1e6
    out.ratio[i] = out.ours[i] / out.theirs[i]
    out.slow[i], out.perf_slow[i] = own_target_s / base_s, perf_target_s / base_s
    out.slow_ratio[i] = own_target_s / perf_target_s
  end
  return out
end

local rows = { { "program", "preset", "samples", "lost", "perf's", "us/sample (least-most)",
  "perf's (least-most)", "ratio", "goal", "slowdown", "perf's", "ratio (least-most)", "goal" } }
for _, preset in ipairs(PRESETS) do
  local wanted = os.getenv("MIC_BENCH_PRESET")
  for _, name in ipairs { "deep C", "C++", "cc1", "python3" } do
    local only = os.getenv("MIC_BENCH_ONLY")
    if (not only or only == name) and (not wanted or wanted == preset.name) then
      local m = measure(name, preset)
      rows[#rows + 1] = { name, preset.name, kit.count(m.samples), kit.count(m.lost),
        kit.count(m.perf_samples), kit.spread(m.ours, "%.1f"), kit.spread(m.theirs, "%.0f"),
        ("%.3f"):format((kit.median(m.ratio))), CPU_GOAL,
        ("%.2f"):format((kit.median(m.slow))), ("%.2f"):format((kit.median(m.perf_slow))),
        kit.spread(m.slow_ratio, "%.2f"), preset.name == "max" and SLOWDOWN_GOAL or "-" }
    end
  end
end
kit.print("whole job beside perf, own CPU time without start-up (medians of " .. PAIRS .. " pairs)",
  rows)
