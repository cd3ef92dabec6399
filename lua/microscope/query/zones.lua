--- zones.lua - what zones cost: spans of time that a program marked itself.

local ffi = require("ffi")

local capture = require("microscope.capture")

local M = {}

local NONE = capture.NONE
local OPEN = 0xffffffffffffffffULL

-- Whether rows of one thread follow one another in order of their starts, as importers write them.
local function in_order(thread, start_ns, rows, seen)
  for i = 1, rows - 1 do
    local t = thread[i]
    if t == thread[i - 1] then
      if start_ns[i] < start_ns[i - 1] then return false end
    else
      seen[thread[i - 1]] = 1
      if seen[t] == 1 then return false end
    end
  end
  return true
end

-- The rows by thread and start; nil where they lie so.
local function order_of(thread, start_ns, rows, threads)
  local u8, u32 = ffi.typeof("uint8_t[?]"), ffi.typeof("uint32_t[?]")
  if in_order(thread, start_ns, rows, u8(threads + 1)) then return nil end
  local list = {}
  for i = 0, rows - 1 do list[i + 1] = i end
  table.sort(list, function(a, b)
    if thread[a] ~= thread[b] then return thread[a] < thread[b] end
    if start_ns[a] ~= start_ns[b] then return start_ns[a] < start_ns[b] end
    return a < b
  end)
  local order = u32(rows + 1)
  for i = 1, rows do order[i - 1] = list[i] end
  return order
end

-- Sums over the zones of each site; those that did not end are counted apart.
local function add_up(site, start_ns, end_ns, rows, open, count, unended, length, longest)
  for i = 0, rows - 1 do
    local s = site[i]
    if end_ns[i] == open then
      unended[s] = unended[s] + 1
    else
      local long = tonumber(end_ns[i] - start_ns[i])
      count[s] = count[s] + 1
      length[s] = length[s] + long
      if long > longest[s] then longest[s] = long end
    end
  end
end

-- What of each thread's time zones of a site take: of those within one another the outermost
-- counts.  covered is up to when a site's zones took the time of its last thread, last[s] - 1.
local function add_cover(site, thread, start_ns, end_ns, order, rows, open, last, covered, total)
  for k = 0, rows - 1 do
    local i = order and order[k] or k
    local s = site[i]
    local from, to = start_ns[i], end_ns[i]
    if to ~= open then
      if last[s] ~= thread[i] + 1 then
        last[s] = thread[i] + 1
        covered[s] = 0
      end
      if from < covered[s] then from = covered[s] end
      if to > from then
        total[s] = total[s] + tonumber(to - from)
        covered[s] = to
      end
    end
  end
end

--- The zones of a capture by site, the one of most time first: a list of {site=, name=, category=,
-- file=, line= (or nil), count=, unended=, total_ns=, mean_ns= (or nil), longest_ns=}.  total_ns is
-- the time of threads in which one was open: a zone within another of its site adds nothing to it,
-- but its length to mean_ns.  Zones that began and were not seen to end are in unended alone.
function M.by_site(cap)
  local sites = cap:rows("sites")
  local f64, u64 = ffi.typeof("double[?]"), ffi.typeof("uint64_t[?]")
  local count, unended, length = f64(sites + 1), f64(sites + 1), f64(sites + 1)
  local total, longest = f64(sites + 1), f64(sites + 1)
  local site, rows = cap:array("zones", "site")
  local thread = cap:array("zones", "thread")
  local start_ns, end_ns = cap:array("zones", "start_ns"), cap:array("zones", "end_ns")
  add_up(site, start_ns, end_ns, rows, OPEN, count, unended, length, longest)
  add_cover(site, thread, start_ns, end_ns,
    order_of(thread, start_ns, rows, cap:rows("threads")), rows, OPEN, u64(sites + 1),
    u64(sites + 1), total)
  local out = {}
  for s = 0, sites - 1 do
    if count[s] + unended[s] > 0 then
      local file, line = cap:array("sites", "file")[s], cap:array("sites", "line")[s]
      out[#out + 1] = {
        site = s,
        name = cap:string(cap:array("sites", "name")[s]),
        category = cap:string(cap:array("sites", "category")[s]),
        file = file ~= NONE and cap:string(cap:array("files", "path")[file]) or nil,
        line = line ~= 0 and line or nil,
        count = count[s],
        unended = unended[s],
        total_ns = total[s],
        mean_ns = count[s] > 0 and length[s] / count[s] or nil,
        longest_ns = longest[s],
      }
    end
  end
  table.sort(out, function(a, b)
    if a.total_ns ~= b.total_ns then return a.total_ns > b.total_ns end
    return a.site < b.site
  end)
  return out
end

M._add_up, M._add_cover = add_up, add_cover
return M
