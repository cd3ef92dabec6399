--- profile_text.lua - a profile for a person: header, function table, call tree.

local interval = require("microscope.query.interval")
local keys_query = require("microscope.query.keys")
local profile_query = require("microscope.query.profile")
local text = require("microscope.report.text")

local M = {}

-- From this width on the table has columns of absolute amounts too.
local WIDE = 120
-- Where lines may be of any width: a stack can have tens of thousands of frames, and to indent
-- each by its depth would take gigabytes.
local INDENT_MOST = 200

-- An amount of what was measured.
local function amount(profile, weight)
  local unit = profile.source and profile.source.unit
  if unit == "ns" then return text.time(weight) end
  if unit == "bytes" then return text.size(weight) end
  return text.count(weight) .. (unit == "cycles" and " cycles" or "")
end

local function join(parts) return table.concat(parts, ", ") end

local function program_lines(profile, say)
  local s = profile.summary
  local where = {}
  if s.meta.host then where[#where + 1] = "on " .. text.escape(s.meta.host) end
  where[#where + 1] = "for " .. text.time(s.duration_ns)
  where[#where + 1] = text.count(s.processes) .. (s.processes == 1 and " process" or " processes")
  where[#where + 1] = text.plural(s.threads, "thread")
  say("%s", text.escape(s.meta.command or s.program))
  say("recorded %s", join(where))
end

local function measure_line(profile, say)
  local source, tree = profile.source, profile.tree
  if not source then
    say("nothing was measured")
    return
  end
  local rate = profile.summary.settings.rate
  local period = source.unit == "ns" and text.time(source.period)
    or text.count(source.period) .. " " .. source.unit
  local how = rate and text.escape(rate) or "one each " .. period
  say("%s of %s, %s: %s%s", text.plural(tree.samples, "sample"), text.escape(source.name), how,
    amount(profile, tree.weight), source.unit == "ns" and " of CPU time" or "")
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
      text.percent(s.lost_samples / (profile.tree.samples + s.lost_samples)))
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
  if not user_ns or not profile.source or profile.source.unit ~= "ns" then return end
  local on = s.duration_ns > 0 and 1 - s.off.total_ns / s.duration_ns or 1
  local unseen = user_ns * on - profile.tree.weight - s.lost_samples * profile.source.period
  if unseen < user_ns / 10 or unseen < 50e6 then return end
  say("the program spent %s of user CPU time: samples stand for %s of it, as threads that live for"
    .. " less than %s are seldom sampled, and ticks can be missed", text.time(user_ns),
    text.percent(profile.tree.weight / user_ns), text.time(profile.source.period))
end

local function end_lines(profile, say)
  local short, count = {}, 0
  for _, entry in ipairs(profile.ends) do
    if not entry.whole then
      short[#short + 1] = entry
      count = count + entry.samples
    end
  end
  local all = profile.tree.samples
  if count > 0 then
    say("%s of stacks end short:", text.percent(count / all))
    for _, entry in ipairs(short) do
      say("  %s  [%s]%s", text.right(text.percent(entry.samples / all), 7), entry.reason,
        entry.advice and ": " .. entry.advice or "")
    end
  end
  if profile.frame_pointer_samples > 0 then
    say("%s of stacks have frames that only frame pointers tell of",
      text.percent(profile.frame_pointer_samples / all))
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

--- The lines above the tables.
function M.header(profile, columns, out)
  local function say(format, ...) wrap(format:format(...), columns, out) end
  program_lines(profile, say)
  measure_line(profile, say)
  cost_line(profile, say)
  loss_lines(profile, say)
  unseen_line(profile, say)
  end_lines(profile, say)
  problem_lines(profile, say)
end

-- What stands in a row for a function: its name, place and module, escaped, in at most `room`
-- columns.  Where that is too little the module goes first, then the end of the name.
local function label(what, room)
  local name, place = text.escape(what.name), ""
  if what.file then
    place = " " .. text.escape(what.file:match("[^/]*$")) .. (what.line and ":" .. what.line or "")
  end
  local whole = name .. place
  if what.module ~= "" and what.name:sub(1, #what.module + 1) ~= what.module .. "+" then
    whole = whole .. " (" .. text.escape(what.module) .. ")"
  end
  if not room or text.width(whole) <= room then return whole end
  return text.fit(name, room - text.width(place)) .. place
end

local function share_columns(count, all)
  local low, high = interval.wilson(count, all)
  return text.right(text.percent(count / all), 8)
    .. text.right(("%.1f-%.1f"):format(low * 100, high * 100), 12)
end

--- The function table: self and total of each, with 95 % intervals.
function M.functions(cap, profile, options, out)
  local costs, tree, columns = profile.costs, profile.tree, options.columns
  local wide = not columns or columns >= WIDE
  local share = "  95 %, in %" .. (wide and "      TIME" or "")
  out("\n    SELF", share, "    TOTAL", share, "  FUNCTION\n")
  for i, key in ipairs(profile.ranked) do
    if i > options.limit then
      out(("  and %s more (--limit)\n"):format(text.plural(#profile.ranked - options.limit,
        "function")))
      break
    end
    local function group(count, weight)
      return share_columns(count, tree.samples)
        .. (wide and text.right(amount(profile, weight), 10) or "")
    end
    local numbers = group(costs.self_count[key], costs.self[key]) .. " "
      .. group(costs.total_count[key], costs.total[key]) .. "  "
    local what = keys_query.describe(cap, profile.keys, key)
    out(numbers, label(what, columns and columns - text.width(numbers)), "\n")
  end
end

--- The call tree, nodes of at least options.min_percent of all.
function M.tree(cap, profile, options, out)
  local tree, columns = profile.tree, options.columns
  local wide = not columns or columns >= WIDE
  out("\n   TOTAL    SELF", wide and "      TIME" or "", "  CALL TREE\n")
  local least = tree.weight * options.min_percent / 100
  local most = columns and math.floor(columns / 2) or INDENT_MOST
  local hidden = profile_query.walk(profile, least, function(node, depth)
    local numbers = text.right(text.percent(tree.total_count[node] / tree.samples), 8)
      .. text.right(text.percent(tree.self_count[node] / tree.samples), 8)
      .. (wide and text.right(amount(profile, tree.total[node]), 10) or "") .. "  "
    -- Past half of the line the depth is written as a number, so that a name has room.
    local size, mark = depth * 2, ""
    if size > most then
      mark = ("(%d) "):format(depth)
      size = most - #mark
    end
    local indent = (" "):rep(size) .. mark
    local room = columns and columns - text.width(numbers) - #indent
    out(numbers, indent, label(profile_query.describe_node(cap, profile, node), room), "\n")
  end, function() end)
  if hidden > 0 then
    out(("  %s under %s not shown (--min-percent)\n"):format(text.plural(hidden, "node"),
      ("%g %%"):format(options.min_percent)))
  end
end

--- The whole report: out(...) gets pieces of text; options: tree, limit, min_percent, columns.
function M.write(cap, profile, options, out)
  M.header(profile, options.columns, out)
  if profile.tree.samples == 0 then return end
  if options.tree then
    M.tree(cap, profile, options, out)
  else
    M.functions(cap, profile, options, out)
  end
end

return M
