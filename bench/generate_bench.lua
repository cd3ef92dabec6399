-- generate_bench.lua - what writing and opening captures costs, on generated ones.
--
-- Medians of five runs on a warm page cache.  CPU seconds are those of all threads; wall
-- seconds come from /proc/uptime, whose hundredths are enough for what takes tenths.  Writing
-- includes generating the rows.  Peak memory is this process's, so it grows down the table.

local capture = require("microscope.capture")

local RUNS = 5
local SIZES = { { 1000000, 100000 }, { 10000000, 1000000 } } -- samples, distinct stacks

local function wall()
  local file = assert(io.open("/proc/uptime"))
  local seconds = file:read("*n")
  file:close()
  return seconds
end

local function peak_mib()
  for line in io.lines("/proc/self/status") do
    local kib = line:match("^VmHWM:%s*(%d+)")
    if kib then return tonumber(kib) / 1024 end
  end
end

-- The median CPU and wall seconds of a function.
local function measure(fn, ...)
  local cpu_s, wall_s = {}, {}
  for i = 1, RUNS do
    local cpu_start, wall_start = os.clock(), wall()
    fn(...)
    cpu_s[i], wall_s[i] = os.clock() - cpu_start, wall() - wall_start
  end
  table.sort(cpu_s)
  table.sort(wall_s)
  local middle = (RUNS + 1) / 2
  return cpu_s[middle], wall_s[middle]
end

local function write(path, samples, stacks)
  assert(capture.generate { path = path, samples = samples, stacks = stacks })
end

local function open(path)
  assert(capture.open(path)):close()
end

local path = os.tmpname()
print("  samples  stack nodes  write cpu s  wall s  samples/s  bytes/sample  open cpu s  wall s"
  .. "  rows MiB  peak MiB")
for _, size in ipairs(SIZES) do
  local samples, stacks = size[1], size[2]
  local write_cpu, write_wall = measure(write, path, samples, stacks)
  local open_cpu, open_wall = measure(open, path)
  assert(capture.with(path, function(cap)
    local info = cap:info()
    print(("%9d  %11d  %11.2f  %6.2f  %9.0f  %12.2f  %10.3f  %6.2f  %8.0f  %8.0f"):format(
      samples, cap:rows("stacks"), write_cpu, write_wall, samples / write_cpu,
      info.file_bytes / samples, open_cpu, open_wall, info.memory_bytes / 2 ^ 20, peak_mib()))
    return true
  end))
end
os.remove(path)
