--- record: run a program, or attach to processes, and write a capture.

local capture = require("microscope.capture")
local cli = require("microscope.cli")
local options = require("microscope.options")
local session = require("microscope.session")
local summary = require("microscope.query.summary")
local text = require("microscope.report.text")

local M = {
  name = "record",
  summary = "Record where a program spends CPU time.",
  usage = "record [OPTIONS] [--] PROGRAM [ARGS]\n"
    .. "       microscope record [OPTIONS] --pid PID[,PID...]",
  takes_program = true,
  examples = {
    { "microscope record ./server --port 8080", "run a program; writes ./microscope.usprof" },
    { "microscope record -o server.usprof --pid 1842", "attach; Ctrl-C stops and saves" },
    { "microscope record --preset prod --duration 60 --pid 1842",
      "a minute at a bounded cost of 1 % of one CPU" },
    { "microscope record -F 4999 --stack-bytes 64K ./deep",
      "a higher rate, and more of each stack" },
  },
}

-- A converter for argparse: a number in decimal, checked as the option of that name.
local function number(name)
  return function(word)
    local value = word:match("^%d+%.?%d*$") and tonumber(word)
    if not value then return nil, ("%s must be a number, not '%s'"):format(name, word) end
    local ok, why = options.check(name, value)
    if not ok then return nil, why end
    return value
  end
end

-- "32768" or "32K".
local function bytes(word)
  local digits, kilo = word:match("^(%d+)([kK]?)$")
  if not digits then return nil, ("stack-bytes must be a size, not '%s'"):format(word) end
  local value = tonumber(digits) * (kilo ~= "" and 1024 or 1)
  -- 64K is what one says for the most that perf can copy.
  if value == 65536 then value = options.MAX_STACK_BYTES end
  local ok, why = options.check("stack_bytes", value)
  if not ok then return nil, why end
  return value
end

local function period(word)
  local value = word:match("^%d+$") and tonumber(word)
  if not value or value < 1 or value > 1e15 then
    return nil, ("period must be a whole number, not '%s'"):format(word)
  end
  return value
end

local function pids(word)
  local out = {}
  for piece in (word .. ","):gmatch("([^,]*),") do
    local pid = piece:match("^%d+$") and tonumber(piece)
    -- PID_MAX_LIMIT of the kernel (include/linux/threads.h).
    if not pid or pid < 1 or pid > 4194304 then
      return nil, ("'%s' is not a process id"):format(piece)
    end
    out[#out + 1] = pid
  end
  return out
end

function M.options(parser)
  parser:option("-o --output"):argname("FILE")
    :description("The capture to write (./microscope.usprof); an older one is kept as FILE.old.")
  parser:option("-p --pid"):argname("PID[,PID...]"):convert(pids):count("*"):action("concat")
    :description("Attach to these processes instead of starting a program.")
  parser:option("--preset"):argname("NAME"):default("dev"):show_default(false)
    :description("prod, dev (the default) or max; or a preset file of yours, by name or path.")
  parser:option("-F --rate"):argname("HZ"):convert(number("rate"))
    :description("Samples a second of CPU time.")
  parser:option("-c --period"):argname("N"):convert(period)
    :description("Instead of a rate: nanoseconds of CPU time, or cycles, between two samples.")
  parser:option("-e --event"):argname("EVENT"):choices { "cpu-clock", "cycles" }
    :description("What is measured: cpu-clock (the default), or cycles where the CPU counts them.")
  parser:option("--stack-bytes"):argname("BYTES"):convert(bytes)
    :description("How much of each stack is copied: a multiple of 8, at most 65528.")
  parser:option("--budget"):argname("PERCENT"):convert(number("budget"))
    :description("Of one CPU, for the recorder itself; it samples less to keep it.")
  parser:flag("--no-children"):target("no_children")
    :description("Leave out processes that the recorded ones start.")
  parser:option("--symbols"):argname("WHEN"):choices { "now", "later" }
    :description("now (the default): functions and lines are named here; later: by symbolize.")
  parser:flag("--keep-images"):target("keep_images")
    :description("Keep symbols and unwind tables of what ran in the capture.")
  parser:option("--delay"):argname("SECONDS"):convert(number("delay"))
    :description("Begin to sample this much later.")
  parser:option("--duration"):argname("SECONDS"):convert(number("duration"))
    :description("Stop after sampling this long.")
  parser:flag("-g"):description("Taken for perf's sake: stacks are always recorded.")
  parser:flag("--dry-run"):description("Print what would be recorded with, and record nothing.")
  parser:flag("-q --quiet"):description("Print nothing but errors.")
end

local function to_options(args)
  if #args.program > 0 and args.pid and #args.pid > 0 then
    cli.misuse("give a program or --pid, not both")
  end
  if args.output == "-" then
    cli.misuse("a capture is written to a file, not to a pipe (./- is a file of that name)")
  end
  local has_pids = args.pid and #args.pid > 0
  if #args.program == 0 and not has_pids then
    cli.misuse("what to record? Usage: microscope record [OPTIONS] PROGRAM [ARGS], or --pid PID")
  end
  if args.rate and args.period then cli.misuse("give --rate or --period, not both") end
  local result, err = options.new(args.preset, {
    event = args.event,
    rate = args.rate,
    period = args.period,
    stack_bytes = args.stack_bytes,
    budget = args.budget,
    children = not args.no_children,
    symbols = args.symbols,
    keep_images = args.keep_images,
    delay = args.delay,
    duration = args.duration,
    output = args.output,
    program = #args.program > 0 and args.program or nil,
    pids = has_pids and args.pid or nil,
  })
  if not result then cli.misuse("%s", err) end
  return result
end

local function print_options(o)
  local pairs_of = options.pairs(o)
  pairs_of[#pairs_of + 1] = { "output", o.output }
  pairs_of[#pairs_of + 1] = o.program and { "program", table.concat(o.program, " ") }
    or { "pids", table.concat(o.pids, " ") }
  for _, pair in ipairs(pairs_of) do
    io.stdout:write(text.left(pair[1], 12), " ", text.escape(pair[2]), "\n")
  end
end

local function say(line) io.stderr:write("microscope: ", line, "\n") end

-- A recording that is over by then needs no line, and most programs that take the screen for
-- themselves have taken it.
local LIVE_AFTER_NS = 1e9

-- The live line: rewritten in place, cleared before anything else is said.  Not while a program
-- edits lines or draws on this screen.  Gives whether there is one now.
local function live_line(n)
  if n.elapsed_ns < LIVE_AFTER_NS or not text.reads_lines(2) then return false end
  io.stderr:write(("\r\27[K%s  %s  %s lost  %s"):format(text.time(n.elapsed_ns),
    text.plural(n.samples, "sample"), text.count(n.lost_samples), text.size(n.bytes)))
  return true
end

local function say_losses(n)
  if n.lost_samples > 0 then
    local share = n.lost_samples / (n.samples + n.lost_samples)
    say(("the kernel dropped %s (%s): the recorder was starved of CPU, or its rings are small")
      :format(text.plural(n.lost_samples, "sample"), text.percent(share)))
  end
  if n.lost_records > 0 then
    say(("the kernel dropped %s of mappings, names and forks"):format(
      text.plural(n.lost_records, "record")))
  end
  if n.off_queue_ns > 0 then
    say(("sampling was off for %s, as processing fell behind: a lower --rate or --stack-bytes"
      .. " keeps more"):format(text.time(n.off_queue_ns)))
  end
  if n.off_budget_ns > 0 then
    say(("sampling was off for %s to keep the budget"):format(text.time(n.off_budget_ns)))
  end
  local other = n.off_ns - n.off_queue_ns - n.off_budget_ns
  if other > 0 then
    say(("sampling was off for %s on single CPUs: the kernel throttled it: a lower --rate keeps"
      .. " more"):format(text.time(other)))
  end
end

local function say_rings(n)
  if n.ring_bytes >= n.ring_bytes_asked then return end
  say(("each CPU's ring is %s instead of %s, for want of memory that may be locked: raise"
    .. " `ulimit -l` or the sysctl kernel.perf_event_mlock_kb"):format(text.size(n.ring_bytes),
    text.size(n.ring_bytes_asked)))
end

-- What no later attempt will name is said while it can be recorded again.
local function say_nameless(path)
  local cap = capture.open(path)
  if not cap then return end
  for _, of in ipairs(summary.nameless(cap)) do
    say(("%s: %s"):format(text.escape(of.name), text.escape(of.why)))
  end
  cap:close()
end

local function say_end(n, o)
  say(("%s of %s in %s, %s in %s"):format(text.plural(n.samples, "sample"),
    text.plural(n.threads, "thread"), text.time(n.elapsed_ns), text.size(n.bytes),
    text.escape(o.output)))
  if o.symbols == "later" then
    say(("functions and lines were left for later: microscope symbolize %s"):format(
      text.escape(o.output)))
    say_nameless(o.output)
  end
  say_losses(n)
  say_rings(n)
end

-- Poll to the end.  `live` is nil or false for no live line.  Gives the exit status, and the signal
-- that stopped the recording; nil and why when it failed.
local function drive(s, live)
  -- Five lines a second are read as motion, and cost nothing.
  local tick_ms = live and 200 or 1000
  local status, signal
  while true do
    local kind, value = s:poll(tick_ms)
    if not kind then return nil, value end
    if kind == "done" then break end
    if kind == "failed" then return nil, s:error() or "the recording failed" end
    if kind == "exited" then status = value end
    if kind == "interrupted" and not signal then
      signal = value
      s:stop()
    elseif kind == "duration" then
      s:stop()
    elseif live and kind == "tick" then
      live.drawn = live_line(s:numbers())
    end
  end
  return status, signal
end

-- One session from start to its last word; the status for the shell.
local function record(s, o, args)
  local ok, err = s:start()
  if not ok then cli.fail("%s", err.message) end
  local live = not args.quiet and text.is_terminal(2) and { drawn = false }
  local status, signal = drive(s, live)
  -- Only a line of ours is cleared: the program may have ended in the middle of one of its own.
  if live and live.drawn then io.stderr:write("\r\27[K") end
  if status == nil and signal ~= nil and type(signal) ~= "number" then
    cli.fail("%s", tostring(signal))
  end
  if not args.quiet then say_end(s:numbers(), o) end
  if o.pids then return 0 end
  -- A program that still runs when the recording was stopped is ended with it.
  return status or s:end_program()
end

function M.run(args)
  local o = to_options(args)
  if args.dry_run then
    print_options(o)
    return 0
  end
  local s, err = session.new(o)
  if not s then cli.fail("%s", err.message) end
  local ok, result = pcall(record, s, o, args)
  s:free()
  if not ok then error(result, 0) end
  return result
end

return M
