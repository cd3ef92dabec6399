--- losses.lua - what a capture holds, in words: what a format that cannot carry it loses.
--
-- A format's `keeps` lists the facts it carries, by the names below.  What a capture really holds
-- and the format does not keep is its loss.  A table that no fact stands for is a fact by itself,
-- under the table's name.  `keeps.NAME` may be a function of the capture that says whether.

local core = require("microscope.core")

local C = core.C

local M = {}

local ANON, UNMAPPED = 2, 3 -- mic_location
local NOT_STATED = 19 -- MIC_END_NOT_STATED
local OUTERMOST = 1 -- MIC_END_OUTERMOST
local NONE, OPEN = 0xffffffff, 0xffffffffffffffffULL

-- Whether any row's value is not the one that means nothing.
local function other_than(values, rows, nothing)
  for i = 0, rows - 1 do
    if values[i] ~= nothing then return true end
  end
  return false
end

local function any(cap, tab, column, nothing)
  local values, rows = cap:array(tab, column)
  return values ~= nil and other_than(values, rows, nothing)
end

-- Whether a column of texts has one that is not empty.
local function other_texts(cap, tab, column)
  local ids, rows = cap:array(tab, column)
  for i = 0, rows - 1 do
    if cap:size(ids[i]) > 0 then return true end
  end
  return false
end

local function addresses(cap)
  local kind, rows = cap:array("locations", "kind")
  for i = 0, rows - 1 do
    local k = kind[i]
    if k == ANON or k == UNMAPPED or C.mic_location_in_module(k) ~= 0 then return true end
  end
  return false
end

local function short_ends(cap)
  local ends, rows = cap:array("stacks", "end")
  for i = 0, rows - 1 do
    local code = ends[i]
    if code ~= 0 and code ~= NOT_STATED and C.mic_end_is_whole(code) == 0 then return true end
  end
  return false
end

-- Whole stacks, by what proves that they are.
local function whole_ends(cap)
  local ends, rows = cap:array("stacks", "end")
  for i = 0, rows - 1 do
    if C.mic_end_is_whole(ends[i]) ~= 0 then return true end
  end
  return false
end

-- A text that is no UTF-8.
local function odd_bytes(cap)
  for id = 0, cap:rows("strings") - 1 do
    local bytes, size = cap:bytes(id)
    if C.mic_utf8_find_odd(bytes, size) < size then return true end
  end
  return false
end

local function kin(cap)
  local pid, ns_pid = cap:array("processes", "pid"), cap:array("processes", "ns_pid")
  for i = 0, cap:rows("processes") - 1 do
    if ns_pid[i] ~= 0 and ns_pid[i] ~= pid[i] then return true end
  end
  return any(cap, "processes", "parent", NONE) or other_texts(cap, "processes", "cgroup")
end

local function renames(cap)
  local thread, name = cap:array("thread_names", "thread"), cap:array("thread_names", "name")
  local last = cap:array("threads", "name")
  for i = 0, cap:rows("thread_names") - 1 do
    if last[thread[i]] ~= name[i] then return true end
  end
  return cap:rows("process_execs") > 0
end

-- What a module is known to be beside its path and build ID.
local function module_facts(cap)
  return other_texts(cap, "modules", "problem") or any(cap, "modules", "inode", 0)
    or any(cap, "modules", "size", 0)
end

local function lives(cap)
  return any(cap, "threads", "start_ns", 0) or any(cap, "threads", "end_ns", OPEN)
    or any(cap, "processes", "start_ns", 0) or any(cap, "processes", "end_ns", OPEN)
end

local function linkage_names(cap)
  local name, linkage = cap:array("functions", "name"), cap:array("functions", "linkage_name")
  for i = 0, cap:rows("functions") - 1 do
    if name[i] ~= linkage[i] then return true end
  end
  return false
end

local function more_rows(tab, than)
  return function(cap) return cap:rows(tab) > than end
end

-- Texts with %d get the rows of the first table; `one` is that of one row.
local FACTS = {
  { name = "times", tables = { "samples" }, text = "when each sample was taken",
    here = function(cap) return any(cap, "samples", "time_ns", 0) end },
  { name = "cpus", tables = {}, text = "the CPU of each sample",
    here = function(cap) return any(cap, "samples", "cpu", 0) end },
  { name = "sources", tables = { "sources" }, text = "more than one of %d measured quantities",
    here = more_rows("sources", 1) },
  { name = "quantities", tables = {}, text = "names, units and periods of what was measured",
    here = more_rows("sources", 0) },
  { name = "threads", tables = { "threads" }, text = "which of %d threads each sample is of",
    here = more_rows("threads", 1) },
  { name = "processes", tables = { "processes" }, text = "processes",
    here = function(cap) return cap:rows("processes") > 1 or any(cap, "processes", "pid", 0) end },
  { name = "ids", tables = {}, text = "names and ids of threads",
    here = function(cap)
      return any(cap, "threads", "tid", 0) or other_texts(cap, "threads", "name")
    end },
  { name = "kin", tables = {}, text = "parents and control groups of processes", here = kin },
  { name = "lives", tables = {}, text = "when processes and threads began and ended",
    here = lives },
  { name = "renames", tables = { "process_execs", "thread_names" },
    text = "when they changed programs and names", here = renames },
  { name = "functions", tables = { "functions", "locations", "stacks", "files" },
    text = "functions", here = more_rows("functions", 0) },
  { name = "linkage_names", tables = {}, text = "names as linkers know them",
    here = linkage_names },
  { name = "lines", tables = { "lines" }, text = "source files and lines",
    here = function(cap) return any(cap, "lines", "line", 0) end },
  { name = "inlines", tables = {}, text = "which functions were inlined",
    here = function(cap) return any(cap, "lines", "depth", 0) end },
  { name = "modules", tables = { "modules" }, text = "modules and their build IDs",
    here = more_rows("modules", 0) },
  { name = "module_facts", tables = {}, text = "sizes, inodes and problems of modules",
    here = module_facts },
  { name = "addresses", tables = {}, text = "addresses of code", here = addresses },
  { name = "naming", tables = { "naming" }, text = "how modules were named",
    here = more_rows("naming", 0) },
  { name = "images", tables = { "image_parts", "image_bytes" }, text = "%d kept parts of images",
    one = "1 kept part of an image",
    here = more_rows("image_parts", 0) },
  { name = "mappings", tables = { "mappings" }, text = "where modules were mapped",
    here = more_rows("mappings", 0) },
  { name = "ends", tables = {}, text = "why stacks end short", here = short_ends },
  { name = "whole", tables = {}, text = "which stacks are whole, and how they end",
    here = whole_ends },
  { name = "evidence", tables = {}, text = "how frames were proven",
    here = function(cap) return any(cap, "locations", "evidence", 0) end },
  { name = "labels", tables = { "sample_labels", "labels" }, text = "%d labels of samples",
    one = "1 label of a sample",
    here = more_rows("sample_labels", 0) },
  { name = "zones", tables = { "zones", "sites" }, text = "%d zones",
    one = "1 zone",
    here = more_rows("zones", 0) },
  { name = "marks", tables = {}, text = "where in the source zones are marked",
    here = function(cap) return any(cap, "sites", "file", NONE) end },
  { name = "clocks", tables = { "clocks" }, text = "when the recording was made, and how long",
    here = function(cap)
      return any(cap, "clocks", "realtime_ns", 0) or any(cap, "clocks", "duration_ns", 0)
    end },
  { name = "monotonic", tables = {}, text = "its start on the machine's own clock",
    here = function(cap) return any(cap, "clocks", "monotonic_ns", 0) end },
  { name = "facts", tables = { "meta" }, text = "facts about the recording",
    here = more_rows("meta", 0) },
  { name = "settings", tables = { "settings" }, text = "the recording's options",
    here = more_rows("settings", 0) },
  { name = "gaps", tables = { "off_spans", "losses", "duty" },
    text = "when nothing could be recorded, and lost records",
    here = function(cap)
      return cap:rows("off_spans") > 0 or cap:rows("losses") > 0 or cap:rows("duty") > 0
    end },
  { name = "costs", tables = { "costs" }, text = "what recording cost",
    here = more_rows("costs", 0) },
  { name = "problems", tables = { "problems" }, text = "%d problems",
    one = "1 problem",
    here = more_rows("problems", 0) },
  { name = "bytes", tables = {}, text = "bytes in texts that are no UTF-8", here = odd_bytes },
}

-- Tables of which some fact above tells; the bytes of strings go with what names them.
local told = { strings = true, string_bytes = true }
for _, fact in ipairs(FACTS) do
  for _, tab in ipairs(fact.tables) do told[tab] = true end
end

--- The names of facts that a format may keep, as `keeps` lists them.
function M.names()
  local out = {}
  for _, fact in ipairs(FACTS) do out[#out + 1] = fact.name end
  return out
end

--- A `keeps` of everything, also of tables that come later.
function M.everything() return setmetatable({}, { __index = { everything = true } }) end

--- For `keeps`: whether no two threads have the same names and ids, by which alone some formats
-- tell them apart.
function M.threads_differ(cap) return C.mic_tables_threads_differ(cap:handle()) ~= 0 end

--- For `keeps`: whether every location is of one of these kinds, names of mic_location.
function M.has_only(cap, kinds)
  local enum = require("microscope.capture").enum
  local of, rows = cap:array("locations", "kind")
  local known, here = {}, {}
  for _, kind in ipairs(kinds) do known[kind] = true end
  for i = 0, rows - 1 do here[of[i]] = true end
  for kind in pairs(here) do
    if not known[enum("mic_location", kind)] then return false end
  end
  return true
end

--- For `keeps` of a format that says that stacks are whole, not how they end: whether it is all.
function M.ends_plainly(cap)
  local ends, rows = cap:array("stacks", "end")
  for i = 0, rows - 1 do
    if ends[i] ~= OUTERMOST and C.mic_end_is_whole(ends[i]) ~= 0 then return false end
  end
  return true
end

local function set_of(cap, list)
  local out = {}
  for _, name in ipairs(list) do out[name] = true end
  for name, keeps in pairs(list) do
    if type(keeps) == "function" then out[name] = keeps(cap) end
  end
  return out
end

--- What a capture holds that a format with this list `keeps` loses: a list of {name=, text=}, the
-- names being those of facts, or of tables that no fact stands for.
function M.lost(cap, keeps)
  if keeps.everything then return {} end
  local kept, out = set_of(cap, keeps), {}
  for _, fact in ipairs(FACTS) do
    if not kept[fact.name] and fact.here(cap) then
      local rows = fact.tables[1] and cap:rows(fact.tables[1]) or 0
      local text = rows == 1 and fact.one or fact.text:format(rows)
      out[#out + 1] = { name = fact.name, text = text }
    end
  end
  for _, tab in ipairs(require("microscope.capture").tables()) do
    if not told[tab] and not kept[tab] and cap:rows(tab) > 0 then
      out[#out + 1] = { name = tab, text = ("%d %s"):format(cap:rows(tab), (tab:gsub("_", " "))) }
    end
  end
  return out
end

--- The same as a list of texts.
function M.of(cap, keeps)
  local out = M.lost(cap, keeps)
  for i, loss in ipairs(out) do out[i] = loss.text end
  return out
end

M._other_than = other_than
return M
