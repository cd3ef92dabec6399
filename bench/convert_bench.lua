-- convert_bench.lua - `microscope convert` beside the tools whose files it reads and writes.
--
-- pprof: reading and writing a profile of 200,000 samples beside `go tool pprof`, which
-- reads it to print -top.  Folded: 5,000,000 lines beside an awk program that adds up each stack.
-- Then files as large as disks allow of each format.  The tables a conversion reads or makes stand
-- beside its peak.  Five runs in turn with the peer's, medians.

local capture = require("microscope.capture")
local kit = require("bench.kit")
local large = require("spec.support.large")

local RUNS = 5

kit.run("mkdir -p '%s/convert'", kit.folder)
local folder = kit.folder .. "/convert"

local rows = { { "what", "CPU s (least-most)", "peak MiB", "tables MiB", "peer", "CPU s",
  "peak MiB", "ratio (least-most)" } }

-- What the rows of a capture take in memory: what a conversion's peak is to be compared with.
local function tables_mib(path)
  return assert(capture.with(path, function(cap)
    return ("%.0f"):format(cap:info().memory_bytes / 2 ^ 20)
  end))
end

-- What a command costs once: CPU seconds and the most memory.
local function cost(command)
  local path = folder .. "/cost"
  kit.run(("cd '%s' && export HOME='%s' && "):format(folder, folder) .. kit.costed(path, command)
    .. " >out.txt 2>err.txt")
  local got = kit.cost(path)
  assert(got.status == 0, command)
  return got.cpu_s, got.rss_mib
end

local function measure(what, command, cap, peer, theirs)
  local cpu, rss, peer_cpu, peer_rss, ratio = {}, {}, {}, {}, {}
  for i = 1, theirs and RUNS or 1 do
    cpu[i], rss[i] = cost(command)
    if theirs then
      peer_cpu[i], peer_rss[i] = cost(theirs)
      ratio[i] = cpu[i] / peer_cpu[i]
    end
  end
  local function median(list, form) return list[1] and form:format((kit.median(list))) or "-" end
  rows[#rows + 1] = { what, kit.spread(cpu, "%.2f"), median(rss, "%.0f"),
    cap and tables_mib(folder .. "/" .. cap) or "-", peer or "-", median(peer_cpu, "%.2f"),
    median(peer_rss, "%.0f"), theirs and kit.spread(ratio, "%.2f") or "-" }
end

local function convert(arguments)
  return ("'%s' convert %s"):format(kit.microscope, arguments)
end

assert(capture.generate { path = folder .. "/a.usprof", samples = 200000, stacks = 20000,
  threads = 64, labels = 1000, labelled = 2 })
measure("write pprof, 200,000 samples", convert("a.usprof a.pb.gz"), "a.usprof")
measure("read pprof, 200,000 samples", convert("a.pb.gz b.usprof"), "b.usprof",
  "go tool pprof -top", "go tool pprof -symbolize=none -top a.pb.gz")
kit.run("cd '%s' && gzip -dc a.pb.gz >a.pb", folder)
measure("the same, not compressed", convert("a.pb b.usprof"), "b.usprof",
  "go tool pprof -top", "go tool pprof -symbolize=none -top a.pb")

kit.run([[cd '%s' && awk 'BEGIN { for (i = 0; i < 5000000; i++)
  print "main;serve;handle_" i %% 977 ";query_" i %% 389 ";leaf_" i %% 11 " " i %% 5 + 1
  }' >a.folded]], folder)
measure("read 5,000,000 folded lines", convert("a.folded c.usprof"), "c.usprof", "awk collapse",
  [[awk '{ n = $NF; sub(/ [0-9]+$/, ""); s[$0] += n } END { for (k in s) print k, s[k] }' ]]
  .. "a.folded")
measure("write folded", convert("c.usprof c.folded"), "c.usprof")

-- As large as a disk allows: what a number counts stands in large.lua.
for _, case in ipairs {
  { "pprof deep", 10000000, "pprof" }, { "pprof labels", 10000000, "pprof" },
  { "pprof lines", 10000000, "pprof" }, { "pprof strings", 10000000, "pprof" },
  { "pprof samples", 3000000, "pprof" }, { "folded names", 5000000, "folded" },
  { "perf-script", 3000000, "perf-script" }, { "chrome complete", 10000000, "chrome" },
  { "chrome pairs", 10000000, "chrome" }, { "speedscope sampled", 3000000, "speedscope" },
} do
  large.write(case[1], folder .. "/large", case[2])
  measure(("read %s, %s"):format(case[1], kit.count(case[2])),
    convert("--from " .. case[3] .. " large large.usprof"), "large.usprof")
end

kit.print(("conversions beside the tools that do the same (medians of %d)"):format(RUNS), rows)
kit.run("rm -rf '%s'", folder)
