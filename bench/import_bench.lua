-- import_bench.lua - others' files read, beside the tools that read them: perf.data and its text
-- beside perf script and an awk collapse, Chrome traces beside json.load of python3.
--
-- Each row is the whole work of a fresh process: `microscope convert` writes a capture, perf script
-- prints text (to /dev/null), the others hold what they read.  Medians of 5; the page cache is
-- warm.

local kit = require("bench.kit")

local RUNS = 5
local LINES, EVENTS = 2000000, 1000000

local folder = kit.folder .. "/import"
kit.run("rm -rf '%s'; mkdir -p '%s'", folder, folder)

-- What a command costs: medians of CPU seconds, and of the most memory.
local function cost(command)
  local cpu_s, rss_mib = {}, {}
  for i = 1, RUNS do
    local out = ("%s/cost.%d"):format(folder, i)
    kit.run("cd '%s'; %s >/dev/null 2>&1", folder, kit.costed(out, command))
    local got = kit.cost(out)
    assert(got.status == 0, command)
    cpu_s[i], rss_mib[i] = got.cpu_s, got.rss_mib
  end
  return (kit.median(cpu_s)), (kit.median(rss_mib))
end

local rows = { { "what", "size", "microscope s", "MiB", "peer", "s", "MiB", "ratio" } }

local function measure(what, size, ours, name, theirs)
  local cpu_s, rss_mib = cost(ours)
  local peer_s, peer_mib = cost(theirs)
  rows[#rows + 1] = { what, size, ("%.2f"):format(cpu_s), ("%.0f"):format(rss_mib), name,
    ("%.2f"):format(peer_s), ("%.0f"):format(peer_mib), ("%.2f"):format(cpu_s / peer_s) }
end

local function convert(from) return ("%s convert %s out.usprof"):format(kit.microscope, from) end

local function samples_of(name)
  return tonumber(kit.run("cd '%s'; perf report -i %s --stats 2>/dev/null | "
    .. "awk '/SAMPLE events/ { print $3; exit }'", folder, name)) or 0
end

local function perf_data()
  local record = "perf record -q -F 1999 -e cpu-clock --buildid-all"
  for _, name in ipairs { "deep C", "cc1" } do
    for _, mode in ipairs { { "fp", "-g" }, { "dwarf", "--call-graph dwarf,8192" } } do
      local file = mode[1] .. ".data"
      kit.run("cd '%s'; %s %s -o %s %s >/dev/null 2>&1", folder, record, mode[2], file,
        kit.workload(name, 2))
      measure(("perf.data of %s, %s"):format(name, mode[2]),
        kit.count(samples_of(file)) .. " samples", convert(file), "perf script --no-inline",
        "perf script --no-inline -i " .. file)
    end
  end
end

-- A text of some hundreds of stacks over and over, as perf script prints it.
local TEXT = [[BEGIN { srand(1)
  for (b = 0; b < 500; b++) {
    n[b] = 5 + int(rand() * 8)
    for (i = 0; i < n[b]; i++)
      block[b] = block[b] sprintf("\t%16x fn_%d+0x%x (/usr/lib/lib%d.so)\n",
        4096 + rand() * 2^24, rand() * 2000, rand() * 255, rand() * 20)
  }
  for (lines = 0; lines < LINES; lines += n[b] + 2) {
    b = int(rand() * 500)
    t += 1
    printf "worker %d/%d [%03d] %.6f:    1000000 cpu-clock: \n%s\n", 100 + t % 4, 100 + t % 7,
      t % 2, 1000 + t / 1000, block[b]
  }
}]]
local COLLAPSE = [[/^\t/ { sub(/\+0x[0-9a-f]+$/, "", $2); s = $2 (s == "" ? "" : ";" s); next }
NF == 0 { count[s]++; s = "" }
END { for (s in count) print s, count[s] }]]
local TRACE = [[BEGIN { printf "["
  for (i = 0; i < EVENTS; i++) {
    printf "%s{\"ph\":\"X\",\"name\":\"fn_%d\",", i ? "," : "", i % 500
    printf "\"cat\":\"c\",\"ts\":%.3f,\"dur\":0.5,\"pid\":1,\"tid\":%d}\n", i * 0.7, i % 4
  }
  print "]" }]]

local function script_text()
  kit.write(folder .. "/text.awk", TEXT)
  kit.write(folder .. "/collapse.awk", COLLAPSE)
  kit.run("cd '%s'; awk -v LINES=%d -f text.awk >script.txt", folder, LINES)
  measure("perf script's text", kit.count(LINES) .. " lines", convert("script.txt"), "awk collapse",
    "awk -f collapse.awk script.txt")
end

local function chrome()
  kit.write(folder .. "/trace.awk", TRACE)
  kit.run("cd '%s'; awk -v EVENTS=%d -f trace.awk >trace.json", folder, EVENTS)
  local load = [[ -c 'import json; json.load(open("trace.json"))']]
  measure("Chrome trace", kit.count(EVENTS) .. " events", convert("trace.json"),
    "python3 json.load", kit.python .. load)
end

perf_data()
script_text()
chrome()
kit.print("Others' files read, CPU seconds and most memory", rows)
kit.run("rm -rf '%s'", folder)
