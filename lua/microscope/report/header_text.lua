--- header_text.lua - the lines above a report's tables: what was recorded, what that cost, what is
-- missing, and what was left out of the report.

local ends_query = require("microscope.query.ends")
local numbers = require("microscope.report.numbers")
local profile_query = require("microscope.query.profile")
local text = require("microscope.report.text")

local M = {}

local function join(parts) return table.concat(parts, ", ") end

local function program_lines(profile, say)
  local s = profile.summary
  local where = {}
  if s.meta.host then where[#where + 1] = "on " .. text.escape(s.meta.host) end
  if s.duration_ns > 0 then where[#where + 1] = "for " .. text.time(s.duration_ns) end
  where[#where + 1] = text.count(s.processes) .. (s.processes == 1 and " process" or " processes")
  where[#where + 1] = text.plural(s.threads, "thread")
  say("%s", text.escape(s.meta.command or s.program))
  say("recorded %s", join(where))
end

-- All rows of the source, whatever was left out of the report.
local function rows_of(profile)
  return profile.weights.samples + profile.weights.left_out.samples
end

local function measure_line(profile, say)
  local source = profile.source
  if not source then
    local zones = profile.summary.zones
    say("%s", zones > 0 and text.plural(zones, "zone") .. ", no samples" or "nothing was measured")
    return
  end
  local all = numbers.amount(source, profile.recorded)
    .. (source.is_cpu and " of CPU time" or "")
  if source.period == 0 then
    -- Other files' values, as bytes of a heap, are sums of what was sampled.
    local sampled = source.is_cpu or source.unit == "cycles"
    say("%s of %s: %s", text.plural(rows_of(profile), sampled and "sample" or "value"),
      text.escape(source.name), all)
    return
  end
  local rate = profile.summary.settings.rate
  local how = rate and text.escape(rate) or "one each " .. numbers.amount(source, source.period)
  say("%s of %s, %s: %s", text.plural(profile_query.samples(profile, profile.recorded), "sample"),
    text.escape(source.name), how, all)
end

local function sources_line(profile, say)
  local others = {}
  for _, source in ipairs(profile.sources) do
    if source.id ~= profile.source_id then others[#others + 1] = text.escape(source.name) end
  end
  if #others > 0 then say("also measured (--source): %s", join(others)) end
end

local function cost_line(profile, say)
  local s = profile.summary
  local share, budget = profile_query.running_share(s), profile_query.budget_share(s)
  if not share then return end
  local parts = { ("%s of a CPU"):format(text.percent(share)) }
  if budget then
    parts[#parts + 1] = ("%s of its budget of %s"):format(text.percent(share / budget),
      text.percent(budget))
  end
  say("recording cost %s while the program ran; start-up took %s of CPU time, finishing %s",
    join(parts), text.time(s.costs.startup.cpu_ns), text.time(s.costs.finishing.cpu_ns))
end

local OFF = {
  { "queue_ns", "processing fell behind: a lower --rate or --stack-bytes keeps more" },
  { "budget_ns", "to keep the budget" },
  { "throttle_ns", "the kernel throttled it: a lower --rate keeps more" },
}

local function loss_lines(profile, say)
  local s = profile.summary
  for _, kind in ipairs(OFF) do
    local off_ns = s.off[kind[1]]
    if off_ns > 0 then
      say("sampling was off for %s (%s of the time): %s", text.time(off_ns),
        text.percent(s.duration_ns > 0 and off_ns / s.duration_ns or 0), kind[2])
    end
  end
  if s.off.one_cpu_ns > 0 then
    say("sampling was off for %s on single CPUs: the kernel throttled it: a lower --rate keeps"
      .. " more", text.time(s.off.one_cpu_ns))
  end
  if s.lost_samples > 0 then
    say("the kernel dropped %s (%s of all)", text.plural(s.lost_samples, "sample"),
      text.percent(s.lost_samples / ((profile_query.samples(profile, profile.recorded)
        or rows_of(profile)) + s.lost_samples)))
  end
  if s.lost_records > 0 then
    say("the kernel dropped %s of mappings, names and forks",
      text.plural(s.lost_records, "record"))
  end
end

-- Time that samples do not stand for.  A thread is first sampled when it has run for a whole
-- period, so what lives shorter is not seen; a busy machine misses ticks.  The kernel's split of
-- user and system time is itself a matter of ticks, so less than a tenth says nothing.
local function unseen_line(profile, say)
  local s = profile.summary
  local user_ns = s.program_user_ns
  if not user_ns or not profile.source or not profile.source.is_cpu then return end
  local on = s.duration_ns > 0 and 1 - s.off.total_ns / s.duration_ns or 1
  local unseen = user_ns * on - profile.recorded - s.lost_samples * profile.source.period
  if unseen < user_ns / 10 or unseen < 50e6 then return end
  say("the program spent %s of user CPU time: samples stand for %s of it, as threads that live for"
    .. " less than %s are seldom sampled, and ticks can be missed", text.time(user_ns),
    text.percent(profile.recorded / user_ns), text.time(profile.source.period))
end

local STEPS = {
  where = "%s left out %s",
  drop = "%s removed %s",
  merge = "%s gave %s to callers",
  collapse = "%s cut stacks of %s",
  ["collapse-recursion"] = "%s cut stacks of %s",
}

local function step_lines(profile, say)
  local removed = 0
  for _, step in ipairs(profile.steps) do
    local what = "--" .. step.what .. (step.text and " '" .. text.escape(step.text) .. "'" or "")
    if step.functions > 1 then what = ("%s (%d functions)"):format(what, step.functions) end
    local share = profile.recorded > 0 and step.weight / profile.recorded or 0
    say(STEPS[step.what], what, ("%s (%s of all)"):format(numbers.amount(profile.source,
      step.weight), text.percent(share)))
    if step.removed then removed = removed + step.weight end
  end
  if removed > 0 then
    say("shares are of the %s that is left", numbers.amount(profile.source, profile.tree.weight))
  end
end

-- The legend of typed ends: how many stacks end short, why, and what helps.
local function end_lines(profile, say)
  local short, weight, not_stated = {}, 0, 0
  for _, entry in ipairs(profile.ends) do
    if ends_query.is_not_stated(entry.code) then
      not_stated = entry.weight
    elseif not entry.whole then
      short[#short + 1] = entry
      weight = weight + entry.weight
    end
  end
  local function share(part) return text.percent(numbers.share(profile, part)) end
  if weight > 0 then
    say("%s of stacks end short:", share(weight))
    for _, entry in ipairs(short) do
      say("  %s  [%s]%s", text.right(share(entry.weight), 7), entry.reason,
        entry.advice and ": " .. entry.advice or "")
    end
  end
  if not_stated > 0 then
    say("of %s of stacks it is not stated whether they are whole", share(not_stated))
  end
  if profile.frameless_weight > 0 then
    say("%s of stacks have no frame: they stand in no function", share(profile.frameless_weight))
  end
  if profile.frame_pointer_weight > 0 then
    say("%s of stacks have frames that only frame pointers tell of",
      share(profile.frame_pointer_weight))
  end
end

-- Most programs and libraries come without lines; that is said where lines are asked for.
local function is_of_lines(problem) return problem.text:match(": no debug information$") ~= nil end

local function problem_lines(profile, say)
  if profile.summary.names_later then
    say("functions and lines were left for later: `microscope symbolize` adds them")
  end
  for _, problem in ipairs(profile.summary.problems) do
    if profile.lines or not is_of_lines(problem) then
      say("problem: %s%s", text.escape(problem.text),
        problem.count > 1 and (" (%s times)"):format(text.count(problem.count)) or "")
    end
  end
  local why = profile.source and profile_query.too_short(profile)
  if why then say("too short to judge: %s", why) end
end

-- Break a header line at blanks to the width; what follows is indented.
local function wrap(line, width, out)
  while width and text.width(line) > width do
    local head = text.head(line, width)
    local cut = head:match("^.*()%s%S*$")
    local indent = line:match("^%s*")
    if not cut or cut <= #indent + 1 then break end
    out(line:sub(1, cut - 1), "\n")
    line = indent .. "  " .. line:sub(cut + 1)
    if not line:find("%S%s", #indent + 3) then break end
  end
  out(line, "\n")
end

--- Write one line of a header, broken at blanks to the width (nil: any).
M.wrap = wrap

--- The lines above the tables; columns is how wide they may be (nil: any width).
function M.write(profile, columns, out)
  local function say(format, ...) wrap(format:format(...), columns, out) end
  program_lines(profile, say)
  measure_line(profile, say)
  sources_line(profile, say)
  cost_line(profile, say)
  loss_lines(profile, say)
  unseen_line(profile, say)
  step_lines(profile, say)
  end_lines(profile, say)
  problem_lines(profile, say)
end

return M
