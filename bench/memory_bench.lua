-- memory_bench.lua - the recorder's memory over time: `max`, a program that goes on making stacks.
--
-- Bounded means: what the queue and the caches hold is constant; what grows is the tree of
-- distinct stacks, with the program's and not with time.  The rings are locked memory of the
-- kernel's and not in these figures; the capture's size shows that rows go to the file.

local kit = require("bench.kit")

local MARKS = { 5, 20, 60 } -- seconds

local function record(command)
  local out = kit.run(([[
cd '%s'; rm -rf memory; mkdir memory; cd memory
%s >/dev/null & program=$!
'%s' record -q --preset max -o m.usprof --pid $program & recorder=$!
before=0
for mark in %s; do
  sleep $((mark - before)); before=$mark
  grep -E 'VmHWM|RssAnon' /proc/$recorder/status | tr -dc '0-9\n' | tr '\n' ' '
  stat -c %%s m.usprof.tmp.*
done
kill -INT $recorder; wait $recorder || true
kill -9 $program; wait $program 2>/dev/null || true
'%s' report --format json m.usprof | grep -o '"samples":[0-9]*' | head -n 1
]]):format(kit.folder, command, kit.microscope, table.concat(MARKS, " "), kit.microscope))
  local numbers = {}
  for number in out:gmatch("%d+") do numbers[#numbers + 1] = tonumber(number) end
  return numbers
end

local rows = { { "program", "samples", "5 s: peak / anonymous MiB, file MiB", "20 s", "60 s" } }
for _, name in ipairs { "deep C", "python3" } do
  local n = record(kit.workload(name, 400))
  local row = { name, kit.count(n[#MARKS * 3 + 1]) }
  for i = 0, #MARKS - 1 do
    row[#row + 1] = ("%.0f / %.0f, %.2f"):format(n[3 * i + 1] / 1024, n[3 * i + 2] / 1024,
      n[3 * i + 3] / 2 ^ 20)
  end
  rows[#rows + 1] = row
end
kit.print("the recorder's memory, max", rows)
