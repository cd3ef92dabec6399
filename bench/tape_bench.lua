-- tape_bench.lua - what the processor costs: decode, follow, unwind, intern and append rows.
--
-- Each workload is recorded to a tape once; then fresh processes replay it.  The first pass is the
-- cold one: images are opened and unwind tables compiled in it.  The others are warm.  Times are
-- CPU time of the processor's thread; naming is another thread's and is not in them.
--
-- `luajit bench/tape_bench.lua replay TAPE PASSES` is what those processes run.

local ffi = require("ffi")

local core = require("microscope.core")

local C = core.C
local RUNS = 5
local PASSES = 20
-- 10,000 samples a CPU second; not a round number, so that samples do not beat with the program.
local PERIOD_NS = 100010
local COLD_GOAL, WARM_GOAL, FIRST_GOAL_MS = 100000, 1000000, 5

local function replay(tape, passes)
  local o, r = ffi.new("struct mic_replay_options"), ffi.new("struct mic_replay_result")
  local err = core.new_error()
  o.size, o.passes, o.tape = ffi.sizeof(o), passes, tape
  if C.mic_tape_replay(o, r, err) ~= 0 then error(ffi.string(err.msg)) end
  print(tonumber(r.samples), tonumber(r.frames), tonumber(r.stack_bytes), tonumber(r.cold_cpu_ns),
    tonumber(r.warm_cpu_ns), tonumber(r.warm_samples))
end

if arg[1] == "replay" then
  replay(arg[2], tonumber(arg[3]))
  os.exit(0)
end

local kit = require("bench.kit")

local function check(code, err) if code ~= 0 then error(ffi.string(err.msg)) end end

-- Record a command to a tape, through the session that `microscope record` uses.
local function record(tape, command, period)
  local words = kit.words("/usr/bin/env -i PATH=/usr/bin " .. command)
  local argv = ffi.new("const char *[?]", #words + 1)
  for i, word in ipairs(words) do argv[i - 1] = word end
  local o, out, err = ffi.new("struct mic_record_options"), ffi.new("struct mic_session *[1]"),
    core.new_error()
  local capture = kit.folder .. "/tape.usprof"
  o.size, o.period, o.stack_bytes, o.children = ffi.sizeof(o), period, 32768, 1
  o.output, o.tape, o.argv = capture, tape, argv
  check(C.mic_session_new(o, out, err), err)
  check(C.mic_session_start(out[0], err), err)
  local event = ffi.new("struct mic_session_event")
  repeat
    check(C.mic_session_poll(out[0], 1000, event, err), err)
  until event.kind == C.MIC_SESSION_DONE or event.kind == C.MIC_SESSION_FAILED
  local failed = event.kind == C.MIC_SESSION_FAILED
  C.mic_session_free(out[0])
  os.remove(capture)
  if failed then error("the tape of " .. command .. " could not be recorded") end
end

-- Fresh processes: lists of what they measured.
local function measure(tape, passes)
  local out = { cold = {}, warm = {}, cold_ms = {} }
  for i = 1, RUNS do
    local n = {}
    for number in kit.run("luajit '%s/bench/tape_bench.lua' replay '%s' %d", kit.root, tape,
      passes):gmatch("%S+") do
      n[#n + 1] = tonumber(number)
    end
    out.samples, out.frames, out.stack = n[1], n[2] / n[1], n[3] / n[1]
    out.cold[i], out.cold_ms[i] = n[1] / n[4] * 1e9, n[4] / 1e6
    if n[6] > 0 then
      out.warm[i] = n[6] / n[5] * 1e9
      out.ns_a_frame = kit.median { n[5] / n[6] / out.frames }
    end
  end
  return out
end

local only = os.getenv("MIC_BENCH_ONLY")
local rows = { { "program", "samples", "frames", "stack bytes", "cold samples/s (least-most)",
  "goal", "warm samples/s (least-most)", "goal", "ns/frame" } }
local function thousands(list)
  local middle, least, most = kit.median(list)
  return ("%s (%s-%s)"):format(kit.count(middle), kit.count(least), kit.count(most))
end
for _, name in ipairs { "deep C", "C++", "cc1", "python3" } do
  if not only or only == name then
    local tape = kit.folder .. "/" .. name:gsub("%W", "_") .. ".tape"
    record(tape, kit.workload(name, 1.5), PERIOD_NS)
    local m = measure(tape, PASSES)
    rows[#rows + 1] = { name, kit.count(m.samples), ("%.1f"):format(m.frames), kit.count(m.stack),
      thousands(m.cold), name == "deep C" and kit.count(COLD_GOAL) or "-", thousands(m.warm),
      name == "deep C" and kit.count(WARM_GOAL) or "-", ("%.1f"):format(m.ns_a_frame) }
  end
end
kit.print("processor alone, on tapes (medians of " .. RUNS .. " processes)", rows)

-- Few samples, so that what is measured is how long the first stack takes: from no image to
-- names asked for, all libraries' mappings in it.
local node = os.execute("command -v node >/dev/null") == 0 and (not only or only == "node")
if node then
  local tape = kit.folder .. "/node.tape"
  record(tape, "node -e 0", 7000000)
  local m = measure(tape, 1)
  kit.print("first stack of a large program (node), all mappings' images opened", {
    { "samples", "frames", "CPU ms (least-most)", "goal" },
    { m.samples, ("%.1f"):format(m.frames), kit.spread(m.cold_ms, "%.2f"), FIRST_GOAL_MS .. " ms" },
  })
end
