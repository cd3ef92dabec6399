-- convert_bench.lua - `microscope convert` beside the tools whose files it reads and writes.
--
-- pprof: reading and writing a profile of 200,000 samples beside `go tool pprof`, which
-- reads it to print -top.  Folded: 5,000,000 lines beside an awk program that adds up each stack.
-- The tables a conversion reads or makes stand beside its peak.  Three runs, medians.

local capture = require("microscope.capture")
local kit = require("bench.kit")

local RUNS = 3

kit.run("mkdir -p '%s/convert'", kit.folder)
local folder = kit.folder .. "/convert"

local rows = { { "what", "wall s (least-most)", "CPU s", "peak MiB", "tables MiB" } }

-- What the rows of a capture take in memory: what a conversion's peak is to be compared with.
local function tables_mib(path)
  return assert(capture.with(path, function(cap)
    return ("%.0f"):format(cap:info().memory_bytes / 2 ^ 20)
  end))
end

local function measure(what, command, made)
  local wall, cpu, rss, cost_path = {}, {}, {}, folder .. "/cost"
  local script = ("cd '%s' && export HOME='%s' && "):format(folder, folder)
    .. kit.costed(cost_path, command) .. " >out.txt 2>err.txt"
  for i = 1, RUNS do
    kit.run(script)
    local cost = kit.cost(cost_path)
    wall[i], cpu[i], rss[i] = cost.wall_s, cost.cpu_s, cost.rss_mib
  end
  rows[#rows + 1] = { what, kit.spread(wall, "%.2f"), ("%.2f"):format((kit.median(cpu))),
    ("%.0f"):format((kit.median(rss))), made and tables_mib(folder .. "/" .. made) or "-" }
end

local function convert(arguments)
  return ("'%s' convert %s"):format(kit.microscope, arguments)
end

assert(capture.generate { path = folder .. "/a.usprof", samples = 200000, stacks = 20000,
  threads = 64, labels = 1000, labelled = 2 })
measure("write pprof", convert("a.usprof a.pb.gz"), "a.usprof")
measure("read pprof", convert("a.pb.gz b.usprof"), "b.usprof")
measure("  go tool pprof -top", "go tool pprof -symbolize=none -top a.pb.gz")

kit.run([[cd '%s' && awk 'BEGIN { for (i = 0; i < 5000000; i++)
  print "main;serve;handle_" i %% 977 ";query_" i %% 389 ";leaf_" i %% 11 " " i %% 5 + 1
  }' >a.folded]], folder)
measure("read 5,000,000 folded lines", convert("a.folded c.usprof"), "c.usprof")
measure("  awk collapse", [[awk '{ n = $NF; sub(/ [0-9]+$/, ""); s[$0] += n } END { for (k in s) ]]
  .. [[print k, s[k] }' a.folded]])
measure("write folded", convert("c.usprof c.folded"))

kit.print(("conversions beside the tools that do the same (medians of %d)"):format(RUNS), rows)
kit.run("rm -rf '%s'", folder)
