--- kept.lua - random captures with every table filled, and what each fact of losses.lua is in one.
--
--   kept.make(path, seed)         a capture, the same for the same seed
--   kept.views(path, options)     facts of a capture as plain tables, by the facts' names
--
-- Two captures have a fact in common when their views of it are the same.  Views look at what
-- samples and zones reach, as other formats have nothing else, and not at numbers of rows.

local capture = require("microscope.capture")
local ends_query = require("microscope.query.ends")
local keys_query = require("microscope.query.keys")
local losses = require("microscope.losses")
local writer = require("microscope.writer")

local M = {}

local NONE = capture.NONE
local NAMES = { "main", "f(int, char const*)", "größe", "日本語", "a<b>::c&", 'say "x"\\', "tab\there",
  "x y 3", "operator()", ("long"):rep(80), "b\1ell", "<script>", "\226\128\174turned" }
local ODD = { "\255\254 bytes", "cut \226\130" }

-- ---- making ------------------------------------------------------------------------------------

local function pick(list) return list[math.random(#list)] end
local function often(n) return math.random(n) > 1 end

local function put_modules(w, made)
  for i = 1, math.random(1, 4) do
    local name = ("lib%d.so"):format(i)
    made.modules[i] = w:row("modules", { kind = "elf", path = w:string("/usr/lib/" .. name),
      name = w:string(name), build_id = w:string(i == 1 and "" or ("%040x"):format(i * 7919)),
      problem = w:string(made.rich and "no debug file" or ""), inode = made.rich and i or 0,
      size = made.rich and 4096 * i or 0 })
  end
  for i = 1, 4 do
    made.files[i] = w:row("files", { path = w:string(("/src/%s%d.c"):format(pick(NAMES), i)) })
  end
end

local function put_functions(w, made)
  for i = 1, math.random(4, 14) do
    local name = i <= #made.names and made.names[i] or "fn" .. i
    made.functions[i] = { name = name, file = often(4) and pick(made.files) or NONE,
      module = pick(made.modules) }
    local f = made.functions[i]
    f.row = w:row("functions", { name = w:string(name),
      linkage_name = w:string(often(3) and made.rich and "_Z" .. i or name), module = f.module,
      file = f.file, line = f.file ~= NONE and i * 10 or 0 })
  end
end

-- A location of each kind; lines for most.
local function put_location(w, made, i)
  local kind = made.kinds[(i - 1) % #made.kinds + 1]
  local f = pick(made.functions)
  local module = (kind == "anon" or kind == "unmapped") and NONE or f.module
  local offset = kind == "named" and w:string(f.name) or kind == "anon" and 0x7f0000000000 + i * 64
    or 0x1000 + i * 64
  local l = w:row("locations", { kind = kind, module = module, offset = offset,
    evidence = made.rich and i % 3 or 0 })
  made.locations[i] = l
  local bare = { anon = true, unmapped = true, signal = true, native = i % 5 == 0 }
  if bare[kind] then return end
  local depth = made.inlines and kind ~= "named" and math.random(0, 3) or 0
  for d = 0, depth do
    local g = d == depth and f or pick(made.functions)
    w:row("lines", { location = l, ["function"] = g.row, file = g.file, depth = d,
      line = g.file ~= NONE and math.random(1, 500) or 0 })
  end
end

local function put_stacks(w, made)
  local nodes = {}
  for _, e in ipairs(made.ends) do
    nodes[#nodes + 1] = { w:row("stacks", { ["end"] = e }), 0 }
  end
  local roots = #nodes
  for i = 1, math.random(20, 60) do
    local under = i <= roots and nodes[i] or pick(nodes)
    local row = w:row("stacks", { parent = under[1], location = pick(made.locations) })
    nodes[#nodes + 1] = { row, under[2] + 1 }
    made.stacks[i] = row
  end
end

local function put_threads(w, made)
  local t = 0
  for p = 1, math.random(1, 3) do
    local rich = made.rich
    local process = w:row("processes", { pid = made.ids and 100 * p or 0,
      ns_pid = rich and p or 0, parent = rich and p > 1 and 0 or NONE,
      name = w:string(made.ids and pick(made.names) .. p or ""),
      cgroup = w:string(rich and "/a" or ""),
      start_ns = made.lives and p * 100 or 0, end_ns = made.lives and p == 1 and 9000000 or nil })
    if rich then
      w:row("process_execs", { process = process, path = w:string("/bin/x"), time_ns = 5 })
    end
    for k = 1, math.random(1, 3) do
      t = t + 1
      local name = w:string(made.ids and pick(made.names) .. t or "")
      made.threads[t] = w:row("threads", { process = process, tid = made.ids and 100 * p + k or 0,
        name = name, start_ns = made.lives and k * 1000 or 0,
        end_ns = made.lives and k == 2 and 8000000 or nil })
      if rich then
        w:row("thread_names", { thread = made.threads[t], name = w:string("before"), time_ns = 0 })
        w:row("thread_names", { thread = made.threads[t], name = name, time_ns = 50 })
      end
    end
  end
end

local function put_labels(w, made)
  for i = 1, 6 do
    local number = i % 2 == 0
    made.labels[i] = w:row("labels", { key = w:string("key" .. i % 4),
      kind = number and "number" or "text", text = w:string(number and "" or pick(made.names)),
      number = number and i * 1000 or 0, unit = w:string(number and "bytes" or "") })
  end
end

local function put_samples(w, made)
  for i = 1, math.random(50, 200) do
    local s = pick(made.sources)
    local row = w:row("samples", { time_ns = made.timed and i * 1000 + i % 7 or 0,
      thread = pick(made.threads), stack = pick(made.stacks),
      weight = math.random(1, 5) * (s.period > 0 and s.period or 1),
      cpu = made.rich and i % 4 or 0, source = s.row })
    if made.labelled and often(2) then
      local first = math.random(1, 3)
      w:row("sample_labels", { sample = row, label = made.labels[first] })
      if often(2) then w:row("sample_labels", { sample = row, label = made.labels[first + 3] }) end
    end
  end
end

-- Zones of each thread within one another and, in a lane of their own, across them.
local function put_zones(w, made)
  for i = 1, 4 do
    local placed = made.rich and i == 1
    made.sites[i] = w:row("sites", { name = w:string(pick(made.names) .. i),
      category = w:string(i % 2 == 0 and "cat" .. i or ""),
      file = placed and made.files[1] or NONE, line = placed and 3 or 0 })
  end
  for _, thread in ipairs(made.threads) do
    local at = 1000
    for _ = 1, math.random(0, 4) do
      w:row("zones", { thread = thread, site = pick(made.sites), start_ns = at,
        end_ns = at + 900, lane = 0 })
      w:row("zones", { thread = thread, site = pick(made.sites), start_ns = at + 100,
        end_ns = at + 500, lane = 0 })
      at = at + 1000
    end
  end
end

local function put_rest(w, made)
  if made.timed then
    w:row("clocks", { monotonic_ns = made.rich and 5000000000 or 0,
      realtime_ns = 1700000000000000000ULL, duration_ns = 7000000, boot_id = w:string("") })
  end
  if made.facts then
    w:row("meta", { key = w:string("host"), value = w:string("größe: 3") })
    w:row("meta", { key = w:string("command"), value = w:string("app --x") })
  end
  if not made.rich then return end
  local empty = w:string("")
  w:row("settings", { key = w:string("rate"), value = w:string("99") })
  w:row("costs", { kind = "running", cpu_ns = 5, wall_ns = 6 })
  w:row("naming", { module = made.modules[1], state = "done", image = empty, debug = empty,
    named = 1, unnamed = 2, problem = empty })
  w:row("mappings", { process = 0, module = made.modules[1], address = 0x400000, size = 0x100000,
    file_offset = 0 })
  w:row("losses", { time_ns = 1, kind = "samples", count = 3 })
  w:row("off_spans", { start_ns = 1, end_ns = 2, kind = "queue" })
  w:row("duty", { time_ns = 1, permille = 500 })
  w:row("problems", { text = w:string("it rained"), count = 1 })
  w:row("image_bytes", { byte = 7 })
  w:row("image_parts", { module = made.modules[1], offset = 0, ["end"] = 1 })
end

local SOURCES = {
  { name = "cpu-clock", unit = "cpu_ns", period = 1000000 },
  { name = "alloc_space", unit = "bytes", period = 0 },
  { name = "page-faults", unit = "count", period = 1 },
  { name = "delay", unit = "ns", period = 0 },
  { name = "lock waits", unit = "other", period = 0, word = "waits" },
}

--- A capture; what is in it is drawn by the seed, the first one has everything.
function M.make(path, seed)
  math.randomseed(seed)
  local function has() return seed == 1 or math.random(2) == 1 end
  local made = { rich = has(), ids = has(), lives = has(), labelled = has(), timed = has(),
    facts = has(), inlines = has(), modules = {}, files = {}, functions = {}, locations = {},
    stacks = {}, threads = {}, labels = {}, sources = {}, sites = {}, names = {} }
  for i, name in ipairs(NAMES) do made.names[i] = name end
  if has() then for _, name in ipairs(ODD) do table.insert(made.names, 1, name) end end
  made.kinds = has() and { "native", "named", "signal", "anon", "native", "unmapped" }
    or has() and { "named" } or { "native", "native", "named" }
  made.ends = has() and { "OUTERMOST", "ENTRY", "DEPTH_LIMIT", "NO_CALLER", "NOT_STATED",
    "NO_REGISTERS" } or has() and { "NOT_STATED" } or { "OUTERMOST", "DEPTH_LIMIT" }
  return writer.with(path, function(w)
    for i = 1, seed == 1 and 5 or math.random(1, 3) do
      local s = SOURCES[i]
      made.sources[i] = { period = s.period, row = w:row("sources", { name = w:string(s.name),
        unit = s.unit, period = s.period, unit_name = w:string(s.word or "") }) }
    end
    put_modules(w, made)
    put_functions(w, made)
    for i = 1, math.random(12, 30) do put_location(w, made, i) end
    put_stacks(w, made)
    put_threads(w, made)
    put_labels(w, made)
    put_samples(w, made)
    if has() then put_zones(w, made) end
    put_rest(w, made)
  end)
end

-- ---- looking -----------------------------------------------------------------------------------

local function sorted(list)
  table.sort(list)
  return list
end

local function add(map, key, value) map[key] = (map[key] or 0) + value end

-- A map from texts to numbers as one text.
local function flat(map)
  local out = {}
  for key, value in pairs(map) do out[#out + 1] = ("%s = %.9g"):format(key, value) end
  return table.concat(sorted(out), "\n")
end

-- Each stack's frames, outermost first: their names, and their places.
local function stacks_of(cap, text)
  local keys, names, out = keys_query.build(cap, false), {}, {}
  local parent, location = cap:array("stacks", "parent"), cap:array("stacks", "location")
  local ends = cap:array("stacks", "end")
  for i = 0, cap:rows("stacks") - 1 do
    local l = location[i]
    if l == NONE then
      out[i] = { path = "", places = "", ["end"] = ends[i], locations = {} }
    else
      local up, at = out[parent[i]], {}
      for f = keys.start[l], keys.start[l + 1] - 1 do
        local key = keys.frame[f]
        names[key] = names[key] or text(keys_query.describe(cap, keys, key).name)
        at[#at + 1] = names[key]
      end
      out[i] = { path = up.path .. ";" .. table.concat(at, ";"),
        places = up.places .. ";" .. table.concat(at, "+"), ["end"] = up["end"], up = up, l = l }
    end
  end
  return out
end

local function labels_of(cap, text)
  local out = {}
  local sample, label = cap:array("sample_labels", "sample"), cap:array("sample_labels", "label")
  local key, value = cap:array("labels", "key"), cap:array("labels", "text")
  local number, unit = cap:array("labels", "number"), cap:array("labels", "unit")
  for i = 0, cap:rows("sample_labels") - 1 do
    local s, l = sample[i], label[i]
    out[s] = (out[s] or "") .. (" %s=%s%s %s"):format(cap:string(key[l]),
      text(cap:string(value[l])), tostring(number[l]), cap:string(unit[l]))
  end
  return out
end

-- What of units speedscope's tell apart.
local CLASSES = { cpu_ns = "time", ns = "time", bytes = "bytes" }
local function class_of(cap, source)
  return CLASSES[capture.enum("mic_unit", cap:array("sources", "unit")[source])] or "count"
end

-- The samples: { path, places, end, time, thread, weight, cpu, source, labels }.
local function samples_of(cap, o)
  local stacks, labels, out, total = stacks_of(cap, o.text), labels_of(cap, o.text), {}, 0
  local function column(name) return cap:array("samples", name) end
  local time, thread, stack, weight = column("time_ns"), column("thread"), column("stack"),
    column("weight")
  local cpu, source = column("cpu"), column("source")
  for i = 0, cap:rows("samples") - 1 do
    local name = cap:string(cap:array("sources", "name")[source[i]])
    if (not o.source or name == o.source) and not (o.ignored and name:match(o.ignored)) then
      local at = stacks[stack[i]]
      out[#out + 1] = { path = at.path, places = at.places, ["end"] = at["end"], stack = at,
        time = tostring(time[i]), thread = thread[i], weight = tonumber(weight[i]), cpu = cpu[i],
        source = o.classes and class_of(cap, source[i]) or source[i], row = source[i], name = name,
        labels = labels[i] or "" }
      total = total + out[#out].weight
    end
  end
  if o.shares then
    local of = {}
    for _, s in ipairs(out) do add(of, s.source, s.weight) end
    for _, s in ipairs(out) do s.weight = s.weight / of[s.source] end
  end
  return out
end

local function summed(samples, key_of)
  local out = {}
  for _, s in ipairs(samples) do
    local key = key_of(s)
    if key then add(out, key, s.weight) end
  end
  return flat(out)
end

local function set_of(list)
  local seen, out = {}, {}
  for _, text in ipairs(list) do
    if not seen[text] then out[#out + 1] = text end
    seen[text] = true
  end
  return table.concat(sorted(out), "\n")
end

-- Groups of samples, whatever the groups are called.
local function grouped(samples, group_of)
  local groups, out = {}, {}
  for _, s in ipairs(samples) do
    local group = group_of(s)
    groups[group] = groups[group] or {}
    add(groups[group], s.path, s.weight)
  end
  for _, group in pairs(groups) do out[#out + 1] = flat(group) end
  return table.concat(sorted(out), "\n--\n")
end

-- Rows of a table as texts: each column a number, or a string's text.
local function rows_of(cap, tab, names)
  local out = {}
  for i = 0, cap:rows(tab) - 1 do
    local parts = {}
    for k, name in ipairs(names) do
      local column = name:match("^%$(.*)")
      local value = cap:array(tab, column or name)[i]
      parts[k] = column and cap:string(value) or tostring(value)
    end
    out[i + 1] = table.concat(parts, " ")
  end
  return table.concat(out, "\n")
end

local function reached(samples)
  local locations, seen = {}, {}
  for _, s in ipairs(samples) do
    local at = s.stack
    while at and at.l do
      if not seen[at.l] then locations[#locations + 1] = at.l end
      seen[at.l], at = true, at.up
    end
  end
  return locations, seen
end

local VIEWS = {}

function VIEWS.times(_, samples)
  local out = {}
  for _, s in ipairs(samples) do
    if s.time ~= "0ULL" then out[#out + 1] = s.time .. s.path end
  end
  return table.concat(sorted(out), "\n")
end
function VIEWS.cpus(_, samples)
  return summed(samples, function(s) return s.cpu ~= 0 and s.cpu .. s.path or nil end)
end
function VIEWS.sources(_, samples) return grouped(samples, function(s) return s.row end) end
function VIEWS.quantities(cap, samples)
  local out = {}
  for i, s in ipairs(samples) do
    out[i] = ("%s %d %s %s"):format(s.name, cap:array("sources", "unit")[s.row],
      tostring(cap:array("sources", "period")[s.row]),
      cap:string(cap:array("sources", "unit_name")[s.row]))
  end
  return set_of(out)
end
function VIEWS.threads(_, samples)
  return grouped(samples, function(s) return s.row .. " " .. s.thread end)
end
local function process_of(cap, s, text)
  local p = cap:array("threads", "process")[s.thread]
  return ("%d %s"):format(cap:array("processes", "pid")[p],
    text(cap:string(cap:array("processes", "name")[p]))), p
end
local function thread_of(cap, s, text)
  return ("%d %s"):format(cap:array("threads", "tid")[s.thread],
    text(cap:string(cap:array("threads", "name")[s.thread])))
end
function VIEWS.processes(cap, samples, text)
  return summed(samples, function(s) return process_of(cap, s, text) .. s.path end)
end
function VIEWS.ids(cap, samples, text)
  return summed(samples, function(s) return thread_of(cap, s, text) .. s.path end)
end
function VIEWS.kin(cap, samples, text)
  local out = {}
  for i, s in ipairs(samples) do
    local _, p = process_of(cap, s, text)
    local parent = cap:array("processes", "parent")[p]
    out[i] = ("%d %s %s"):format(cap:array("processes", "ns_pid")[p],
      parent ~= NONE and cap:array("processes", "pid")[parent] or "-",
      cap:string(cap:array("processes", "cgroup")[p]))
  end
  return set_of(out)
end
function VIEWS.lives(cap, samples, text)
  local out = {}
  for i, s in ipairs(samples) do
    local _, p = process_of(cap, s, text)
    local function at(tab, column, row) return tostring(cap:array(tab, column)[row]) end
    out[i] = table.concat({ at("processes", "start_ns", p),
      at("processes", "end_ns", p), at("threads", "start_ns", s.thread),
      at("threads", "end_ns", s.thread) }, " ")
  end
  return set_of(out)
end
function VIEWS.renames(cap)
  local out = {}
  local thread, name = cap:array("thread_names", "thread"), cap:array("thread_names", "name")
  for i = 0, cap:rows("thread_names") - 1 do
    if cap:array("threads", "name")[thread[i]] ~= name[i] then
      out[#out + 1] = cap:string(name[i])
    end
  end
  return set_of(out) .. rows_of(cap, "process_execs", { "$path", "time_ns" })
end
function VIEWS.functions(_, samples) return summed(samples, function(s) return s.path end) end
function VIEWS.inlines(_, samples) return summed(samples, function(s) return s.places end) end

-- Lines of the locations that samples reach: what `say` makes of a row.
local function lines_of(cap, samples, say)
  local _, seen = reached(samples)
  local location, out = cap:array("lines", "location"), {}
  for i = 0, cap:rows("lines") - 1 do
    if seen[location[i]] then out[#out + 1] = say(i) end
  end
  return set_of(out)
end
function VIEWS.linkage_names(cap, samples, text)
  return lines_of(cap, samples, function(i)
    local f = cap:array("lines", "function")[i]
    local name = text(cap:string(cap:array("functions", "name")[f]))
    local linkage = text(cap:string(cap:array("functions", "linkage_name")[f]))
    return linkage ~= name and name .. " " .. linkage or nil
  end)
end
function VIEWS.lines(cap, samples, text)
  return lines_of(cap, samples, function(i)
    local f, file = cap:array("lines", "function")[i], cap:array("lines", "file")[i]
    if file == NONE then return nil end
    return ("%s %s %d"):format(text(cap:string(cap:array("functions", "name")[f])),
      cap:string(cap:array("files", "path")[file]), cap:array("lines", "line")[i])
  end)
end
function VIEWS.modules(cap, samples)
  local out, module = {}, cap:array("locations", "module")
  for _, l in ipairs((reached(samples))) do
    local m = module[l]
    if m ~= NONE then
      out[#out + 1] = cap:string(cap:array("modules", "path")[m]) .. " "
        .. cap:string(cap:array("modules", "build_id")[m])
    end
  end
  return set_of(out)
end
function VIEWS.module_facts(cap)
  return (rows_of(cap, "modules", { "$problem", "inode", "size" }):gsub(" 0ULL 0ULL\n?", ""))
end
function VIEWS.addresses(cap, samples)
  local out = {}
  for _, l in ipairs((reached(samples))) do
    local kind, m = cap:array("locations", "kind")[l], cap:array("locations", "module")[l]
    if kind ~= 4 then
      out[#out + 1] = ("%d %s %s"):format(kind, m ~= NONE
        and cap:string(cap:array("modules", "path")[m]) or "-",
        tostring(cap:array("locations", "offset")[l]))
    end
  end
  return set_of(out)
end
function VIEWS.naming(cap) return rows_of(cap, "naming", { "module", "state", "named" }) end
function VIEWS.images(cap) return rows_of(cap, "image_parts", { "module", "offset", "end" }) end
function VIEWS.mappings(cap) return rows_of(cap, "mappings", { "address", "size" }) end
function VIEWS.ends(_, samples)
  return summed(samples, function(s)
    return not ends_query.is_silent(s["end"]) and s["end"] .. s.path or nil
  end)
end
function VIEWS.whole(_, samples)
  return summed(samples, function(s)
    return ends_query.is_silent(s["end"]) and s["end"] .. s.path or nil
  end)
end
function VIEWS.evidence(cap, samples)
  local out = {}
  for _, l in ipairs((reached(samples))) do
    out[#out + 1] = tostring(cap:array("locations", "evidence")[l])
  end
  return set_of(out)
end
function VIEWS.labels(_, samples)
  return summed(samples, function(s) return s.labels .. s.path end)
end
function VIEWS.zones(cap, _, text)
  local threads, out = {}, {}
  for i = 0, cap:rows("zones") - 1 do
    local site, thread = cap:array("zones", "site")[i], cap:array("zones", "thread")[i]
    threads[thread] = threads[thread] or {}
    local start, stop = cap:array("zones", "start_ns")[i], cap:array("zones", "end_ns")[i]
    table.insert(threads[thread], table.concat({
      text(cap:string(cap:array("sites", "name")[site])),
      cap:string(cap:array("sites", "category")[site]), tostring(start), tostring(stop) }, " "))
  end
  for _, zones in pairs(threads) do out[#out + 1] = table.concat(sorted(zones), "\n") end
  return table.concat(sorted(out), "\n--\n")
end
function VIEWS.marks(cap)
  local out = {}
  for s = 0, cap:rows("sites") - 1 do
    local file = cap:array("sites", "file")[s]
    out[s + 1] = file ~= NONE and cap:string(cap:array("files", "path")[file]) or nil
  end
  return set_of(out)
end
function VIEWS.clocks(cap)
  if cap:rows("clocks") == 0 then return "" end
  local function at(name) return cap:array("clocks", name)[0] end
  if at("realtime_ns") == 0 and at("duration_ns") == 0 then return "" end
  return tostring(at("realtime_ns")) .. " " .. tostring(at("duration_ns"))
end
function VIEWS.monotonic(cap)
  return cap:rows("clocks") > 0 and tostring(cap:array("clocks", "monotonic_ns")[0]) or "0ULL"
end
function VIEWS.facts(cap, _, text)
  local meta = cap:meta()
  return ("%s %s"):format(text(meta.host or ""), text(meta.command or ""))
end
function VIEWS.settings(cap) return rows_of(cap, "settings", { "$key", "$value" }) end
function VIEWS.gaps(cap)
  return rows_of(cap, "losses", { "count" }) .. rows_of(cap, "off_spans", { "start_ns" })
    .. rows_of(cap, "duty", { "permille" })
end
function VIEWS.costs(cap) return rows_of(cap, "costs", { "cpu_ns" }) end
function VIEWS.problems(cap) return rows_of(cap, "problems", { "$text" }) end
-- Bytes that are no UTF-8 in names of functions that samples reach.
function VIEWS.bytes(cap, samples)
  return lines_of(cap, samples, function(i)
    return (cap:string(cap:array("functions", "name")[cap:array("lines", "function")[i]])
      :gsub("\239\191\189", ""):gsub("[\1-\127]", ""))
  end)
end

--- All facts of a capture.  Options: source, the one whose samples count; classes, to tell sources
-- by the class of their units; ignored, a pattern of sources to leave out; shares, weights as
-- shares of their source; text(s), what a text is on both sides.
function M.views(path, options)
  local text = options.text or function(s) return s end
  return assert(capture.with(path, function(cap)
    local o = { source = options.source, shares = options.shares, text = text,
      classes = options.classes, ignored = options.ignored }
    local samples, out = samples_of(cap, o), {}
    for name, view in pairs(VIEWS) do out[name] = view(cap, samples, text) end
    o.source = nil
    out.sources = VIEWS.sources(cap, samples_of(cap, o))
    return out
  end))
end

--- The names of facts that have no view: those that losses.lua has and this file does not.
function M.unseen()
  local out = {}
  for _, name in ipairs(losses.names()) do
    if not VIEWS[name] then out[#out + 1] = name end
  end
  return out
end

return M
