--- kit.lua - what the benches share: programs to measure, costs of processes, tables.
--
-- Run through ./dev bench, which builds the installed tree and sets MIC_ROOT, MIC_BUILD and
-- MIC_STAGE.  Numbers are medians; where a machine is noisy the least and most stand beside.

local M = {}

M.root = assert(os.getenv("MIC_ROOT"), "run the benches through ./dev bench")
M.build_folder = assert(os.getenv("MIC_BUILD"))
M.stage = assert(os.getenv("MIC_STAGE"))
M.folder = M.build_folder .. "/bench"
M.microscope = M.stage .. "/bin/microscope"
M.python = "/usr/bin/python3"

os.execute("mkdir -p '" .. M.folder .. "'")

--- Run a shell script; raises when it fails.  Its standard output is returned.
function M.run(script, ...)
  script = select("#", ...) > 0 and script:format(...) or script
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write("set -e\n", script, "\n")
  file:close()
  local pipe = assert(io.popen("timeout -s KILL 600 bash " .. path
    .. " </dev/null; echo \" $?\""))
  local out = pipe:read("*a")
  pipe:close()
  os.remove(path)
  local text, status = out:match("^(.*) (%d+)\n$")
  if status ~= "0" then
    error(("status %s of:\n%s\n%s"):format(status, script, text), 2)
  end
  return text
end

--- A file's text.
function M.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

function M.write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function newer(path, source)
  return os.execute(("test '%s' -nt '%s'"):format(path, source)) == 0
end

--- Build a program of fixtures/bench or bench; its path.
function M.program(source, flags)
  local name = source:match("([^/]+)%.%w+$")
  local path, from = M.folder .. "/" .. name, M.root .. "/" .. source
  if not newer(path, from) then
    local compiler = source:match("%.cc$") and "g++" or "gcc"
    M.run("%s %s -o '%s' '%s' -lpthread -lm", compiler, flags or "-O2 -g", path, from)
  end
  return path
end

-- A C file that keeps a compiler busy: functions of loops and branches, each a little different.
local function busy_source(functions)
  local path = M.folder .. "/busy_" .. functions .. ".c"
  local parts = { "extern int other(int, int);\n" }
  for i = 1, functions do
    parts[#parts + 1] = ([[
struct s%d { int a[%d]; long b; struct s%d *next; };
int f%d(struct s%d *p, int n) {
  int sum = %d;
  for (int i = 0; i < n; i++) {
    for (struct s%d *q = p; q; q = q->next) {
      if (q->a[i %% %d] > sum) sum += q->a[(i * %d) %% %d] * n;
      else if (q->b & %d) sum ^= other(sum, q->a[0]);
      else switch (sum & 7) { case 1: sum += 3; break; case 2: sum <<= 1; break; default: sum--; }
    }
    if (sum %% %d == 0) return sum / (n + 1);
  }
  return sum;
}
]]):format(i, i % 17 + 3, i, i, i, i, i, i % 17 + 3, i % 13 + 2, i % 17 + 3, i % 31 + 1, i % 11 + 2)
  end
  M.write(path, table.concat(parts))
  return path
end

-- Of fixtures/bench/deep.c in a second of CPU time.
local DEEP_ROUNDS = 35000

--- The programs that are recorded, as shell words, by name.  `scale` is about seconds of CPU time.
function M.workload(name, scale)
  if name == "deep C" then
    return ("'%s' 40 %d"):format(M.program("fixtures/bench/deep.c"), scale * DEEP_ROUNDS)
  elseif name == "C++" then
    return ("'%s' %d"):format(M.program("fixtures/bench/words.cc"), math.ceil(scale * 54))
  elseif name == "cc1" then
    local cc1 = M.run("gcc -print-prog-name=cc1"):gsub("%s+$", "")
    return ("%s -quiet -O2 -o /dev/null '%s'"):format(cc1, busy_source(math.ceil(scale * 90)))
  elseif name == "python3" then
    return ("%s '%s/fixtures/bench/objects.py' %d"):format(M.python, M.root, math.ceil(scale * 17))
  elseif name == "busy" then
    return ("'%s' 1 %d"):format(M.program("fixtures/bench/deep.c"), scale * DEEP_ROUNDS)
  end
  error("no workload " .. name)
end

--- The words of a shell command, in an array.
function M.words(command)
  local out = {}
  for word in M.run("printf '%s\\n' " .. command):gmatch("[^\n]+") do out[#out + 1] = word end
  return out
end

--- The median of a list of numbers, its least and most.
function M.median(list)
  local sorted = {}
  for i, value in ipairs(list) do sorted[i] = value end
  table.sort(sorted)
  local n = #sorted
  local middle = (sorted[math.floor((n + 1) / 2)] + sorted[math.ceil((n + 1) / 2)]) / 2
  return middle, sorted[1], sorted[n]
end

--- A shell word that runs COMMAND and writes what it cost to a file (bench/cost.c).
function M.costed(out, command)
  return ("'%s' '%s' %s"):format(M.program("bench/cost.c"), out, command)
end

--- What such a file says: {cpu_s=, wall_s=, rss_mib=, status=}.
function M.cost(path)
  local cpu, wall, rss, status = M.read(path):match("(%d+) (%d+) (%d+) (%d+)")
  return { cpu_s = cpu / 1e9, wall_s = wall / 1e9, rss_mib = rss / 1024, status = tonumber(status) }
end

--- A number with thousands separated.
function M.count(value)
  local text = ("%.0f"):format(value)
  local sign, digits = text:match("^(-?)(%d+)$")
  return sign .. digits:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", "")
end

--- "median (least-most)".
function M.spread(list, form)
  local middle, least, most = M.median(list)
  return (form .. " (" .. form .. "-" .. form .. ")"):format(middle, least, most)
end

--- Print rows of texts as an aligned table; the first row is the head.
function M.print(title, rows)
  local widths = {}
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i] or 0, #tostring(cell)) end
  end
  print("\n" .. title)
  for _, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      -- Numbers to the right, names to the left.
      cells[i] = (i == 1 and "%-" or "%") .. widths[i] .. "s"
      cells[i] = cells[i]:format(tostring(cell))
    end
    print(("  " .. table.concat(cells, "  ")):gsub("%s+$", "") .. "")
  end
  io.stdout:flush()
end

return M
