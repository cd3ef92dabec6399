--- zones_text.lua - the table of zones in a report.

local text = require("microscope.report.text")
local zones_query = require("microscope.query.zones")

local M = {}

--- Write the table of a capture's zones, at most options.limit sites; nothing without zones.
function M.write(cap, options, out)
  if cap:rows("zones") == 0 then return end
  local sites = zones_query.by_site(cap)
  out("\n", text.right("ZONES", 10), text.right("TOTAL", 11), text.right("MEAN", 11),
    text.right("LONGEST", 11), "  NAME\n")
  for i, site in ipairs(sites) do
    if i > (options.limit or math.huge) then break end
    local figures = text.right(text.count(site.count), 10)
      .. text.right(text.time(site.total_ns), 11)
      .. text.right(site.mean_ns and text.time(site.mean_ns) or "-", 11)
      .. text.right(text.time(site.longest_ns), 11)
    local label = text.escape(site.name)
    if site.category ~= "" then label = label .. " (" .. text.escape(site.category) .. ")" end
    if site.unended > 0 then label = ("%s, %s without an end"):format(label,
      text.count(site.unended)) end
    local room = options.columns and options.columns - text.width(figures) - 2
    out(figures, "  ", text.fit(label, room), "\n")
  end
  local hidden = #sites - (options.limit or math.huge)
  if hidden > 0 then out(("  and %s more (--limit)\n"):format(text.plural(hidden, "site"))) end
end

return M
