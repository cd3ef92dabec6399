--- zones.lua - what zones cost: spans of time that a program marked itself.

local capture = require("microscope.capture")

local M = {}

local NONE = capture.NONE

-- Sums over the zones of each site; those that did not end are counted apart.
local function add_up(site, start_ns, end_ns, rows, open, count, unended, total, longest)
  for i = 0, rows - 1 do
    local s = site[i]
    if end_ns[i] == open then
      unended[s] = unended[s] + 1
    else
      local length = tonumber(end_ns[i] - start_ns[i])
      count[s] = count[s] + 1
      total[s] = total[s] + length
      if length > longest[s] then longest[s] = length end
    end
  end
end

--- The zones of a capture by site, the one of most time first: a list of {site=, name=, category=,
-- file=, line= (or nil), count=, unended=, total_ns=, mean_ns= (or nil), longest_ns=}.  Zones that
-- began and were not seen to end are in unended alone.
function M.by_site(cap)
  local ffi = require("ffi")
  local sites = cap:rows("sites")
  local f64 = ffi.typeof("double[?]")
  local count, unended = f64(sites + 1), f64(sites + 1)
  local total, longest = f64(sites + 1), f64(sites + 1)
  local site, rows = cap:array("zones", "site")
  add_up(site, cap:array("zones", "start_ns"), cap:array("zones", "end_ns"), rows,
    0xffffffffffffffffULL, count, unended, total, longest)
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
        mean_ns = count[s] > 0 and total[s] / count[s] or nil,
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

M._add_up = add_up
return M
