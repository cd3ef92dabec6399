--- microscope: what a user's script requires.
--
--   local microscope = require("microscope")
--   microscope.with_capture("server.usprof", function(cap)
--     local profile = microscope.profile(cap)
--     ...
--   end)
--
-- Queries, reports and what is typed at the prompt get this table as `microscope`.  Everything
-- here is pure: it reads an open capture, never a clock, a live process or the network, and gives
-- the same for the same.  For a plain luajit `microscope lua-path` prints what LUA_PATH must be.

local ffi = require("ffi")

local capture = require("microscope.capture")
local cli = require("microscope.cli")
local costs_query = require("microscope.query.costs")
local diff_query = require("microscope.query.diff")
local ends_query = require("microscope.query.ends")
local group = require("microscope.api.group")
local groups_query = require("microscope.query.groups")
local interval_query = require("microscope.query.interval")
local invert_query = require("microscope.query.invert")
local json = require("microscope.report.json")
local keys_query = require("microscope.query.keys")
local neighbours = require("microscope.api.neighbours")
local profile_query = require("microscope.query.profile")
local result_table = require("microscope.report.table")
local sample_list = require("microscope.query.sample_list")
local select_query = require("microscope.api.select")
local summary_query = require("microscope.query.summary")
local symbols = require("microscope.query.symbols")
local text = require("microscope.report.text")
local trees = require("microscope.api.trees")
local tree_query = require("microscope.query.tree")

local M = {}

--- The version, as `microscope --version` prints it.
M.version = cli.version

--- The id that stands for none in a u32 column.
M.NONE = capture.NONE

-- ## Captures

--- Open a capture, or a folder of captures as one: see [captures](#captures-cap).
-- Gives the capture, or nil and an error {code=, message=} that prints as its message.  Close it
-- with cap:close().
function M.open(path) return capture.open(path) end

--- Open a capture, call a function with it and close it again, also when the function raises: the
-- usual form.  Gives what the function returns, or nil and the error of opening.
function M.with_capture(path, fn) return capture.with(path, fn) end

--- The names of all tables, in order of dependency: a list.
function M.tables() return capture.tables() end

--- What a row of a table is, in words; nil for no such table.
function M.table_doc(name) return capture.table_doc(name) end

--- The name of an enum's value: enum("mic_loss", 1) is "records".  nil for a value that this
-- version has no name for.
function M.enum(name, value) return capture.enum(name, value) end

--- Why stacks end: {number=, text=, advice=} for a value of stacks.end; nil for 0.
function M.ending(number) return capture.ending(number) end

--- Make a capture for tests: generate { path =, samples =, stacks =, seed =, ... }, the options
-- being those of core/capture/generate.h.  true, or nil and an error.
function M.generate(options) return capture.generate(options) end

--- Write a capture from Lua: fn(w) gets a writer; w:string(text) gives a string's id,
-- w:row(table, {column = value}) adds a row and gives its id.  true, or nil and an error, when
-- the rows break a rule of docs/format.md too.
function M.write_capture(path, fn) return require("microscope.writer").with(path, fn) end

-- ## Facts

--- What was measured: a list of {id=, name=, unit=, period=}; unit is "ns", "cycles", "count" or
-- "bytes", and is that of the weights of the source's samples.
function M.sources(cap) return summary_query.sources(cap) end

--- One source by its id or name; without one the first of CPU time, else the first; nil for a
-- capture without any.
function M.source(cap, id) return select_query.source(cap, id) end

--- The facts of the recording, as stand above a report: program (in words), meta and settings
-- (tables of texts), duration_ns, costs (of recording, by part of its life), off (ns without
-- samples, by reason), lost_samples, lost_records, threads, processes (how many), problems (a
-- list of {text=, count=}), program_user_ns (nil when not known).
function M.summary(cap) return summary_query.of(cap) end

--- The threads: a list, by id, of {id=, tid=, name=, process=, pid=, start_ns=, end_ns=}; end_ns is
-- nil for one that outlived the recording, start_ns 0 for one that was there before.
function M.threads(cap)
  local out = {}
  local process, tid, name = cap:array("threads", "process"), cap:array("threads", "tid"),
    cap:array("threads", "name")
  local from, to = cap:array("threads", "start_ns"), cap:array("threads", "end_ns")
  local pid = cap:array("processes", "pid")
  for i = 0, cap:rows("threads") - 1 do
    out[i + 1] = {
      id = i, tid = tid[i], name = cap:string(name[i]), process = process[i],
      pid = pid[process[i]], start_ns = tonumber(from[i]),
      end_ns = to[i] ~= 0xffffffffffffffffULL and tonumber(to[i]) or nil,
    }
  end
  return out
end

--- The processes: a list, by id, of {id=, pid=, name=, parent=, start_ns=, end_ns=, command=};
-- parent is the id of the recorded process that forked it, command the last program it became;
-- both may be nil, and so may end_ns.
function M.processes(cap)
  local out = {}
  local pid, name, parent = cap:array("processes", "pid"), cap:array("processes", "name"),
    cap:array("processes", "parent")
  local from, to = cap:array("processes", "start_ns"), cap:array("processes", "end_ns")
  for i = 0, cap:rows("processes") - 1 do
    out[i + 1] = {
      id = i, pid = pid[i], name = cap:string(name[i]),
      parent = parent[i] ~= M.NONE and parent[i] or nil, start_ns = tonumber(from[i]),
      end_ns = to[i] ~= 0xffffffffffffffffULL and tonumber(to[i]) or nil,
    }
  end
  local process, path = cap:array("process_execs", "process"), cap:array("process_execs", "path")
  for i = 0, cap:rows("process_execs") - 1 do
    local command = cap:string(path[i])
    if command ~= "" then out[process[i] + 1].command = command end
  end
  return out
end

-- ## Selections: which samples

--- Select samples.  options, all optional: source (id or name; the one of CPU time), from_ns and
-- to_ns (from <= time < to), thread, process, cpu (an id or a list of ids), where (an expression
-- as `report --where` takes it).
-- Gives {rows = FFI u8[samples] of 0 and 1, count = how many rows, samples = how many samples they
-- stand for, weight =, source = id, unit =, period =}.  Where the source has a period a row stands
-- for weight / period samples; where it has none (0) rows are values and count as one each, which
-- tells nothing of shares.  Raises for what is not there.
function M.selection(cap, options) return select_query.of(cap, options or {}) end

--- Sums of samples by "thread", "process", "cpu", "stack" or "all" (one sum).  selection: of
-- M.selection, or all.  Gives {by=, count = number of ids, weight = FFI double[count], samples =
-- FFI double[count]}, by id from 0; weight is in the source's unit.
function M.sums(cap, by, selection) return group.sums(cap, by, selection or M.selection(cap)) end

--- Samples over time: lanes of buckets.  options, all optional: by ("thread", "process", "cpu",
-- "all"), buckets (100), from_ns (0), to_ns (the recording's end, past the last sample), select (a
-- selection).
-- Gives {by=, buckets=, from_ns=, to_ns=, bucket_ns=, unit=, lanes = a list of {id=, weight = FFI
-- double[buckets], samples = FFI double[buckets], total_weight=, total_samples=}}, only of ids
-- that have samples.
function M.lanes(cap, options)
  options = options or {}
  return group.lanes(cap, options, options.select or M.selection(cap))
end

-- ## Keys: what frames are told apart by

--- Keys of a capture's frames.  options.by: "function" (the default) or "line" (function, file and
-- line); options.fold: true counts inlined functions as part of those they were inlined into, else
-- they are frames of their own; options.look: "logical" (the default) or "native", what a person
-- wrote or what threads ran, the same in captures that have no frames of tasks or interpreters, and
-- none has yet.  A place that no function is proven for is a key too.  Gives
-- {count = number of keys; ids are 0 to count - 1, start =, frame =}: the frames of location l are
-- frame[start[l]] to frame[start[l + 1] - 1], outermost first.
function M.keys(cap, options)
  local by = options and options.by or "function"
  local look = options and options.look or "logical"
  if look ~= "logical" and look ~= "native" then
    error(("keys: look must be 'logical' or 'native', not '%s'"):format(tostring(look)), 2)
  end
  if by ~= "function" and by ~= "line" then
    error(("keys: by must be 'function' or 'line', not '%s'"):format(tostring(by)), 2)
  end
  return keys_query.build(cap, { lines = by == "line", fold = options and options.fold })
end

--- What a key is called: {name=, module=, file=, line=}; file and line only for keys by line, nil
-- where not known.  Names are bytes from outside: M.escape makes them fit to print.
function M.describe(cap, keys, key) return keys_query.describe(cap, keys, key) end

--- A key in one piece of text: "name (module)", and "name file:line (module)" for keys by line.
function M.label(cap, keys, key)
  local what = keys_query.describe(cap, keys, key)
  local label = what.name
  if what.file then
    label = label .. " " .. text.last_part(what.file) .. (what.line and ":" .. what.line or "")
  end
  if what.module == "" or what.name:sub(1, #what.module + 1) == what.module .. "+" then
    return label
  end
  return label .. " (" .. what.module .. ")"
end

--- The functions that a symbol means: NAME, NAME@MODULE, NAME@FILE:LINE, a glob, or /regex/.
-- Gives {keys = one key of each, mask = FFI u8 by key: 1 for each of their keys, count =, names =};
-- nil and a line that lists candidates when there is none, or more than one and options.one is set.
function M.match(cap, keys, symbol, options) return symbols.match(cap, keys, symbol, options) end

--- The frames of a stack (an id of stacks): a list of keys, the innermost first, and the number of
-- its end (for M.ending).
function M.frames(cap, keys, stack)
  local locations, ending = cap:stack(stack)
  local out = {}
  for _, l in ipairs(locations) do
    for f = keys.start[l + 1] - 1, keys.start[l], -1 do out[#out + 1] = keys.frame[f] end
  end
  return out, ending
end

-- ## Trees and costs

--- The call tree of selected samples (of M.selection, or all of CPU time): stacks whose frames have
-- the same keys are one path.  Gives {count = number of nodes, parent =, key = FFI u32[count],
-- self =, total = FFI double[count] (in the source's unit), self_count =, total_count = the same in
-- samples (see M.selection), samples =, weight = of all, unit =, period =}; nil and why for one too
-- large.  Nodes 0 to M.ROOTS - 1 are roots: node e stands for stacks that end with reason e and has
-- no key; a node's parent has a lower number.
function M.tree(cap, keys, selection)
  return trees.build(cap, keys, selection or M.selection(cap))
end

--- How many nodes of a tree are roots, one for each end.
M.ROOTS = tree_query.ROOTS

--- The children of all nodes as two FFI u32 arrays: first[node] and next_one[child]; 0xffffffff
-- ends a list.
function M.children(tree) return tree_query.children(tree) end

--- The nodes on the way from the top to a node: a list that ends with it; and its end's number.
function M.path(tree, node) return neighbours.path(tree, node) end

--- What each key costs: {self=, total= FFI double[keys.count], self_count=, total_count=}.  A stack
-- in which a key stands several times (recursion) counts once in its total.
function M.costs(tree, keys) return trees.costs(tree, keys) end

--- The keys that cost anything: a list, most self time first.
function M.ranked(costs, keys) return costs_query.ranked(costs, keys.count) end

--- Who calls a key (or the functions of a mask, of M.match) and whom it calls: {self=, total=,
-- self_samples=, total_samples=, callers=, callees= lists of {key=, weight=, samples=}, most
-- first}.  A caller without a key stands for stacks that begin with it.  Calls of itself are no
-- callers or callees; callers add up to total, callees and self too.
function M.neighbours(tree, keys, which) return neighbours.of(tree, keys, which) end

--- Transform a tree: kind "collapse" cuts stacks back to the first call of each function of the
-- mask (of M.match; nil: of any) that they call again, "merge" hides functions and gives their cost
-- to their callers, "drop" removes samples through them.  Gives the new tree, and the weight that
-- was cut, moved or removed: tree.weight and what was dropped are what there was.
function M.transform(tree, keys, kind, mask) return trees.transform(tree, keys, kind, mask) end

--- The tree of what runs in a mask's functions and below: its tops are their outermost calls.
function M.subtree(tree, keys, mask) return trees.subtree(tree, keys, mask) end

--- The tree of callers: what ran at the top, its callers below.  Weights only, no counts; nil and
-- why for one too large.  A node's key may be keys.count + an end.
function M.invert(tree, keys)
  local inverted = invert_query.build(tree, keys)
  if not inverted then return nil, "its callers have more frames than a tree can hold" end
  inverted.unit = tree.unit
  return inverted
end

--- Why the stacks of a tree end: a list of {code=, reason=, advice= (or nil), whole=, stated=,
-- samples=, weight=}, most first; whole ones reach the program's entry or the outermost frame; of
-- those that are not stated it is not known whether they do.
function M.ends(tree)
  local ends = ends_query.of(tree)
  for _, entry in ipairs(ends) do
    entry.samples = tree.total_count and tree.total_count[entry.code]
  end
  return ends
end

--- The zones of a capture by site, the one of most time first: a list of {site=, name=,
-- category=, file=, line= (or nil), count=, unended=, total_ns=, mean_ns= (or nil), longest_ns=}.
-- Zones that were not seen to end are in unended alone.
function M.zones(cap) return require("microscope.query.zones").by_site(cap) end

--- All that `microscope report` says, in one piece: {summary=, source=, keys=, tree=, costs=,
-- ranked=, ends=, steps=, ...}, see query/profile.lua.  options, all optional: lines (true: tell
-- functions apart by line), fold (true: inlined functions are part of what they were inlined
-- into), source (a name), where (an expression, as --where takes it), transforms (a list of {kind=
-- "collapse-recursion", "collapse", "merge" or "drop", symbol=}), sort ("self", "total" or
-- "name"); select: a selection, instead of source and where.  nil and why when there is none.
function M.profile(cap, options)
  local all = {}
  for name, value in pairs(options or {}) do all[name] = value end
  local selection = all.select
  if selection then
    all.source, all.where = selection.source, nil
    function all.filter(first) return selection.rows + first end
  end
  return profile_query.of(cap, all)
end

--- What things cost that samples are told apart by: by is a list of one or two of "thread",
-- "process", "cpu", "function", "module", "file", "line".  Gives {by=, rows = a list of {values=,
-- self=, total=}}, most self first: values[i] describes the thing of by[i], in fields as id (of a
-- thread or process), key (of a function, for M.label), name, tid, pid, cpu, module, file, line.
-- profile is one of M.profile (with lines for "file" and "line").
-- nil and why when there are too many.
function M.groups(cap, profile, by) return groups_query.of(cap, profile, by) end

--- Compare a profile with a base, both of M.profile.  options, all optional: share (true: shares,
-- not amounts), measure ("self" or "total").  Gives {rows = a list of {class=, base=, other=,
-- difference=, low=, high=, noise=}, the largest first; base=, other=, pairs=, ...}: low and high
-- bound the difference with 95 % confidence, noise says that chance explains it.  Functions pair
-- by identity, also across rebuilds.  Raises for profiles of different units or kinds of keys.
function M.diff(base_cap, base, cap, profile, options)
  local a, b = base.source, profile.source
  if not a or not b or not diff_query.compares(a, b) then
    error(("diff: the base measured %s and the other %s: their units do not compare"):format(
      a and "'" .. a.name .. "'" or "nothing", b and "'" .. b.name .. "'" or "nothing"), 2)
  elseif base.lines ~= profile.lines then
    error("diff: one profile tells functions apart by line, the other does not", 2)
  end
  return diff_query.of(base_cap, base, cap, profile, options or {})
end

--- What a row of a diff is about: {name=, module=, ...}, as M.describe.
function M.diff_describe(base_cap, base, cap, profile, diff, row)
  return diff_query.describe(base_cap, base, cap, profile, diff.pairs, row.class)
end

--- Iterate over samples in order of time: `for sample in microscope.each_sample(cap) do`, each
-- {time_ns=, thread=, thread_name=, tid=, pid=, cpu=, stack=, weight=, row=}, the same table again
-- each time.  selection: of M.selection, or all.
function M.each_sample(cap, selection)
  selection = selection or M.selection(cap)
  local source = { id = selection.source or -1 }
  -- The array itself, not a pointer into it: the list keeps what it is given alive.
  return sample_list.each(sample_list.of(cap, source, function() return selection.rows end))
end

--- Write a tree as a flame graph, a page of HTML that needs nothing else, through out(...).
-- options, all optional: title, subtitle, min_share (nodes under it are left out).
function M.write_flame(cap, keys, tree, options, out)
  options = options or {}
  require("microscope.report.flame").write(cap, keys, tree, { title = options.title,
    subtitle = options.subtitle, min_share = options.min_share, unit = M.unit(tree.unit) }, out)
end

--- The lines of a source file of this machine, a list of texts; nil when there is none at this
-- absolute path, or what is there is no file of at most 64 MiB.
function M.source_lines(path)
  local source = require("microscope.report.sources").find(path)
  return source and source.lines or nil
end

-- ## How sure a number is

--- The 95 % interval of a share of which k in n samples were found: low, high (0 to 1).  Wilson's.
function M.interval(k, n) return interval_query.wilson(k, n) end

--- The 95 % interval of the difference k2/n2 - k1/n1 of two shares: low, high.  Newcombe's hybrid
-- of two Wilson intervals (R. G. Newcombe, 1998, Statistics in Medicine 17, method 10).
function M.difference(k1, n1, k2, n2)
  if n1 <= 0 or n2 <= 0 then return -1, 1 end
  local low1, high1 = interval_query.wilson(k1, n1)
  local low2, high2 = interval_query.wilson(k2, n2)
  local low, high = interval_query.of_difference(k1 / n1, low1, high1, k2 / n2, low2, high2)
  return math.max(-1, low), math.min(1, high)
end

-- ## Results and text

local Result = { __tostring = function(self) return result_table.to_text(self) end }

--- A result that `microscope query` and the prompt print as a table, as JSON or as CSV.  columns is
-- a list of {name=, unit=, heading=}, or of names; rows a list of lists; extra may have title and
-- notes (a list of lines).  Units: text, count, number, ns, bytes, share (0 to 1), cycles, line,
-- bar (a share drawn).
function M.result(columns, rows, extra)
  local out = { columns = {}, rows = rows, title = extra and extra.title,
    notes = extra and extra.notes }
  for i, column in ipairs(columns) do
    out.columns[i] = type(column) == "string" and { name = column } or column
  end
  local fault = result_table.fault(out)
  if fault then error("result: " .. fault, 2) end
  return setmetatable(out, Result)
end

--- The unit for a result's column that holds weights of a source's unit: "ns", "cycles", "bytes" or
-- "count".
function M.unit(unit)
  return (unit == "ns" or unit == "cycles" or unit == "bytes") and unit or "count"
end

--- Nanoseconds for a person: "1.23 s".
function M.time(time_ns) return text.time(time_ns) end

--- A whole number for a person: "1,234,567".
function M.count(n) return text.count(n) end

--- Bytes for a person: "12.3 MiB".
function M.size(bytes) return text.size(bytes) end

--- That n things more were not shown, for a result's notes: "2 more threads (--limit)".  option (or
-- nil) is what was asked with instead of --limit.
function M.more(n, noun, option)
  return ("%s more %s%s (%s)"):format(text.count(n), noun, n == 1 and "" or "s",
    option or "--limit")
end

--- A share for a person: "45.1 %".
function M.percent(share) return text.percent(share) end

--- A weight in a unit of a source for a person.
function M.amount(weight, unit)
  if unit == "ns" then return text.time(weight) end
  if unit == "bytes" then return text.size(weight) end
  return text.count(weight) .. (unit == "cycles" and " cycles" or "")
end

--- A name from outside with nothing in it that a terminal would act on.
function M.escape(name) return text.escape(name) end

--- A value as JSON text.  Objects are M.object { "name", value, ... } in that order, lists
-- M.array { ... }; M.null is null.  Strings that are no UTF-8 are mended.
function M.json(value) return json.encode(value) end

--- A JSON object of names and values in turn.
function M.object(pairs_of) return json.object(pairs_of) end

--- A JSON array of a list.
function M.array(list) return json.array(list) end

--- JSON's null.
M.null = json.null

--- A new FFI array of n zeros: type "double", "uint32_t", "uint64_t" or "uint8_t".  For row loops
-- of your own: keep a loop in a named function whose arguments are such arrays, and it is compiled.
function M.zeros(kind, n)
  if type(kind) ~= "string" or not M._kinds[kind] then
    error("zeros: the type must be double, uint32_t, uint64_t or uint8_t", 2)
  end
  return M._kinds[kind](n)
end

M._kinds = { double = ffi.typeof("double[?]"), uint32_t = ffi.typeof("uint32_t[?]"),
  uint64_t = ffi.typeof("uint64_t[?]"), uint8_t = ffi.typeof("uint8_t[?]") }

return M
