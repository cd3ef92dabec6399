-- symbolize_bench.lua - name 100,000 distinct addresses of a large C++ program with inlined
-- functions, beside llvm-symbolizer and perf script.
--
-- The program is generated: a unit of templates that are inlined three deep into functions of
-- their own, linked in 40 times, with its debug information each time.  The capture has one module
-- and a location for each address, spread evenly over the code of all functions; llvm-symbolizer
-- gets the same addresses in the same order.  perf script names the samples of a recording of its
-- own, so it is measured in addresses a second.  The page cache is warm for all.

local ffi = require("ffi")

local capture = require("microscope.capture")
local kit = require("bench.kit")
local naming = require("microscope.query.naming")
local writer = require("microscope.writer")

local UNITS, FUNCTIONS = 40, 1500
local ADDRESSES = 100000
local RUNS = 3
local PERF_LIMIT_S = 60

local folder = kit.folder .. "/symbolize"
local program = folder .. "/large"

-- All of it has internal linkage, so that each copy of the unit keeps its own code.
local UNIT = [[
#include <vector>
namespace {
template <int N> struct inner {
  static inline __attribute__((always_inline)) long twist(long x) {
    return x % (N + 3) == 0 ? x / (N + 1) : x * 3 + N;
  }
};
template <int N> struct middle {
  static inline __attribute__((always_inline)) long turn(long x) {
    long sum = 0;
    for (long i = 0; i < (x & 3); i++) sum += inner<N>::twist(x + i);
    return sum ^ inner<N + 1>::twist(sum);
  }
};
template <int N> struct outer {
  static inline __attribute__((always_inline)) long whirl(long x) {
    return middle<N>::turn(x) + middle<N + 2>::turn(x >> 1);
  }
  __attribute__((noinline)) static long spin(long x, std::vector<long> &all) {
    long got = whirl(x);
    if (got % 1000003 == 7) all.push_back(got);
    return got + (all.empty() ? 0 : all[(unsigned long)got % all.size()]);
  }
};
template <int N> struct calls {
  __attribute__((noinline)) static long all(long x, std::vector<long> &values) {
    return outer<N>::spin(calls<N - 1>::all(x, values), values) & 0xffff;
  }
};
template <> struct calls<0> {
  static long all(long x, std::vector<long> &) { return x; }
};
}
extern "C" long run(long x) {
  static std::vector<long> values;
  return calls<FUNCTIONS>::all(x, values);
}
]]

local function make_sources()
  local main = { "#include <cstdio>\n#include <cstdlib>\nextern \"C\" {\n" }
  for u = 1, UNITS do main[#main + 1] = ("long run%d(long);\n"):format(u) end
  main[#main + 1] = "}\nint main(int argc, char **argv) {\n  long x = argc;\n"
    .. "  for (int i = atoi(argv[1]); i > 0; i--) {\n"
  for u = 1, UNITS do main[#main + 1] = ("    x = run%d(x);\n"):format(u) end
  main[#main + 1] = "  }\n  printf(\"%ld\\n\", x);\n}\n"
  kit.write(folder .. "/main.cc", table.concat(main))
  kit.write(folder .. "/unit.cc", UNIT)
end

local function build()
  kit.run("mkdir -p '%s'", folder)
  if os.execute(("test -x '%s'"):format(program)) == 0 then return end
  make_sources()
  kit.run([[cd '%s' && g++ -O1 -g -ftemplate-depth=4000 -DFUNCTIONS=%d -c unit.cc
    for u in $(seq %d); do objcopy --redefine-sym run=run$u unit.o unit$u.o; done
    g++ -g -Wl,--build-id -o large main.cc unit[0-9]*.o && rm -f *.o]], folder, FUNCTIONS, UNITS)
end

-- Addresses spread evenly over the code of all functions, shuffled by a fixed rule.
local function addresses()
  local out, total, functions = {}, 0, {}
  for at, size in kit.run("nm -S '%s'", program):gmatch("(%x+) (%x+) [tTwW] ") do
    functions[#functions + 1] = { tonumber(at, 16), tonumber(size, 16) }
    total = total + functions[#functions][2]
  end
  local step, left = total / ADDRESSES, 0
  for _, fn in ipairs(functions) do
    while left < fn[2] do
      out[#out + 1] = fn[1] + math.floor(left)
      left = left + step
    end
    left = left - fn[2]
  end
  for i = #out, 2, -1 do
    local j = i * 7919 % i + 1
    out[i], out[j] = out[j], out[i]
  end
  return out, #functions
end

local function write_capture(path, list)
  local build_id = kit.run("readelf -n '%s'", program):match("Build ID: (%x+)")
  assert(writer.with(path, function(w)
    w:row("modules", { kind = "elf", path = w:string(program), name = w:string("large"),
      build_id = w:string(build_id) })
    local offsets = ffi.new("uint64_t[?]", #list)
    for i, at in ipairs(list) do offsets[i - 1] = at end
    w:rows("locations", #list, { offset = offsets, module = ffi.new("uint32_t[?]", #list) })
  end))
end

local rows = { { "command", "addresses", "wall s (least-most)", "CPU s", "peak MiB",
  "addresses/s" } }

local function measure(name, count, command)
  local wall, cpu, rss = {}, {}, {}
  local costed = kit.costed(folder .. "/cost", command)
  kit.run(costed)
  for i = 1, RUNS do
    kit.run(costed)
    local cost = kit.cost(folder .. "/cost")
    wall[i], cpu[i], rss[i] = cost.wall_s, cost.cpu_s, cost.rss_mib
  end
  rows[#rows + 1] = { name, kit.count(count), kit.spread(wall, "%.2f"),
    ("%.2f"):format((kit.median(cpu))), ("%.0f"):format((kit.median(rss))),
    kit.count(math.floor(count / kit.median(wall))) }
end

-- How many samples perf script names within its limit.
local function measure_perf()
  kit.run("cd '%s' && perf record -q -e cpu-clock -F 4999 -o perf.data ./large 300 >/dev/null",
    folder)
  for _, fields in ipairs { "ip,sym", "ip,sym,srcline" } do
    local lines = kit.run([[cd '%s' && s=$(date +%%s.%%N)
      timeout %d perf script -i perf.data -F %s 2>/dev/null | grep -c '[0-9a-f]' || true
      date +%%s.%%N | awk -v s=$s '{ print $1 - s }']], folder, PERF_LIMIT_S, fields)
    local count, wall = lines:match("(%d+)\n([%d.]+)")
    count, wall = tonumber(count), tonumber(wall)
    rows[#rows + 1] = { "perf script -F " .. fields, kit.count(count), ("%.2f"):format(wall), "-",
      "-", kit.count(math.floor(count / wall)) }
  end
end

build()
local list, functions = addresses()
local bare, named = folder .. "/bare.usprof", folder .. "/named.usprof"
write_capture(bare, list)
local words = {}
for i, at in ipairs(list) do words[i] = ("0x%x"):format(at) end
kit.write(folder .. "/addresses", table.concat(words, "\n") .. "\n")
measure("symbolize", #list, ("'%s' symbolize -q -o '%s' '%s'"):format(kit.microscope, named, bare))
measure("llvm-symbolizer", #list, ("llvm-symbolizer -e '%s' <'%s/addresses' >/dev/null"):format(
  program, folder))
measure_perf()
local found = capture.with(named, naming.of)
local lines = capture.with(named, function(cap) return cap:rows("lines") end)
kit.print(("%s addresses in %s functions, %s named, %s frames (medians of %d)"):format(
  kit.count(#list), kit.count(functions), kit.count(found.named), kit.count(lines), RUNS), rows)
