--- losses.lua - what a capture holds, in words: what a format that cannot carry it loses.
--
-- A format's `keeps` lists the facts it carries, by the names below.  What a capture really holds
-- and the format does not keep is its loss.  A table that no fact stands for is a fact by itself,
-- under the table's name.  `keeps.NAME` may be a function of the capture that says whether.

local core = require("microscope.core")

local C = core.C

local M = {}

local NATIVE, ANON, UNMAPPED, FILE, RELATIVE = 0, 2, 3, 5, 6 -- mic_location
local NOT_STATED = 19 -- MIC_END_NOT_STATED

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

local function addresses(cap)
  local kind, rows = cap:array("locations", "kind")
  for i = 0, rows - 1 do
    local k = kind[i]
    if k == NATIVE or k == ANON or k == UNMAPPED or k == FILE or k == RELATIVE then return true end
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

-- Texts with %d get the rows of the first table.
local FACTS = {
  { name = "times", tables = { "samples" }, text = "when each sample was taken",
    here = function(cap) return any(cap, "samples", "time_ns", 0) end },
  { name = "cpus", tables = {}, text = "the CPU of each sample",
    here = function(cap) return any(cap, "samples", "cpu", 0) end },
  { name = "sources", tables = { "sources" }, text = "more than one of %d measured quantities",
    here = more_rows("sources", 1) },
  { name = "threads", tables = { "threads" }, text = "which of %d threads each sample is of",
    here = function(cap) return cap:rows("threads") > 1 or any(cap, "threads", "tid", 0) end },
  { name = "processes", tables = { "processes" }, text = "processes",
    here = function(cap) return cap:rows("processes") > 1 or any(cap, "processes", "pid", 0) end },
  { name = "lives", tables = { "process_execs", "thread_names" },
    text = "when processes and threads began, ended and changed their names",
    here = function(cap)
      return cap:rows("process_execs") > 0 or any(cap, "threads", "start_ns", 0)
    end },
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
  { name = "addresses", tables = {}, text = "addresses of code", here = addresses },
  { name = "naming", tables = { "naming" }, text = "how modules were named",
    here = more_rows("naming", 0) },
  { name = "images", tables = { "image_parts", "image_bytes" }, text = "%d kept parts of images",
    here = more_rows("image_parts", 0) },
  { name = "mappings", tables = { "mappings" }, text = "where modules were mapped",
    here = more_rows("mappings", 0) },
  { name = "ends", tables = {}, text = "why stacks end short", here = short_ends },
  { name = "evidence", tables = {}, text = "how frames were proven",
    here = function(cap) return any(cap, "locations", "evidence", 0) end },
  { name = "labels", tables = { "sample_labels", "labels" }, text = "%d labels of samples",
    here = more_rows("sample_labels", 0) },
  { name = "zones", tables = { "zones", "sites" }, text = "%d zones",
    here = more_rows("zones", 0) },
  { name = "clocks", tables = { "clocks" }, text = "when the recording was made",
    here = function(cap) return any(cap, "clocks", "realtime_ns", 0) end },
  { name = "facts", tables = { "meta" }, text = "facts about the recording",
    here = more_rows("meta", 0) },
  { name = "settings", tables = { "settings" }, text = "the recording's options",
    here = more_rows("settings", 0) },
  { name = "gaps", tables = { "off_spans", "losses", "duty" },
    text = "when nothing could be recorded, and lost records",
    here = function(cap) return cap:rows("off_spans") > 0 or cap:rows("losses") > 0 end },
  { name = "costs", tables = { "costs" }, text = "what recording cost",
    here = more_rows("costs", 0) },
  { name = "problems", tables = { "problems" }, text = "%d problems",
    here = more_rows("problems", 0) },
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

local function set_of(cap, list)
  local out = {}
  for _, name in ipairs(list) do out[name] = true end
  for name, keeps in pairs(list) do
    if type(keeps) == "function" then out[name] = keeps(cap) end
  end
  return out
end

--- What a capture holds that a format with this list `keeps` loses: a list of texts.
function M.of(cap, keeps)
  if keeps.everything then return {} end
  local kept, out = set_of(cap, keeps), {}
  for _, fact in ipairs(FACTS) do
    if not kept[fact.name] and fact.here(cap) then
      out[#out + 1] = fact.text:format(fact.tables[1] and cap:rows(fact.tables[1]) or 0)
    end
  end
  for _, tab in ipairs(require("microscope.capture").tables()) do
    if not told[tab] and not kept[tab] and cap:rows(tab) > 0 then
      out[#out + 1] = ("%d %s"):format(cap:rows(tab), (tab:gsub("_", " ")))
    end
  end
  return out
end

M._other_than = other_than
return M
