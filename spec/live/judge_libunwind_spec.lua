-- Stacks against libunwind's over the same samples: each program is recorded, and libunwind walks
-- the registers and the copied bytes of every sample (fixtures/unwind/tape_judge.c).  Each stack
-- must be the same frame by frame, or differ in a way that the judge can explain and prove.

local helper = require("spec.helper")

local FIXTURES = helper.root .. "/fixtures/known/"
local JUDGE = helper.quote(helper.build .. "/tests/record/tape_judge")
local PERIOD_NS = 100010

local function have(program)
  return select(3, helper.run("command -v " .. program)) == 0
end

describe("stacks agree with libunwind's over the same samples:", function()
  local folder
  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  -- What the judge counted.
  local function judged(command, env)
    local out, err, status = helper.run(("export %s; timeout -s KILL 100 %s judged.tape %d %s")
      :format(env or "LC_ALL=C", JUDGE, PERIOD_NS, command), folder)
    assert(status == 0, ("status %d of %s\n%s%s"):format(status, command, out, err))
    local counts = {}
    for name, count in out:gmatch("([%w_]+) (%d+)\n") do counts[name] = tonumber(count) end
    return counts, out
  end

  -- at_least: stacks; some_short: not all end whole.
  local function check(p)
    if p.needs and not have(p.needs) then return pending(p.needs .. " is not installed") end
    if p.build then
      local out, err, status = helper.run(p.build, folder)
      assert(status == 0, out .. err)
    end
    local counts, out = judged(p.command, p.env)
    assert.equal(0, counts.unexplained, out)
    assert.is_true(counts.stacks >= p.at_least, out)
    -- Of .init and .fini nobody has a table, and libunwind has no say: short programs are in them
    -- for one sample in a hundred, up to two where the machine is busy.
    assert.is_true(counts.same >= 0.99 * (counts.stacks - counts.no_table), out)
    assert.is_true(counts.no_table <= 0.03 * counts.stacks, out)
    -- _init and what crtbegin.o adds (frame_dummy and its kin) have no call-frame information in
    -- Debian 12; and the kernel copies no page that is not there at the moment.
    if not p.some_short then assert.is_true(counts.whole >= 0.99 * counts.stacks, out) end
  end

  local function fixture(title, compiler, source, arguments, more)
    local p = { at_least = 200, command = "./program " .. arguments,
      build = ("%s %s%s -o program -lpthread -ldl"):format(compiler, FIXTURES, source) }
    for key, value in pairs(more or {}) do p[key] = value end
    it(title, function() check(p) end)
  end

  fixture("C, calls and callbacks", "gcc -O2", "stacks.c", "calls 6 3000000")
  fixture("C, threads", "gcc -O2", "stacks.c", "threads 6 3000000")
  fixture("C, a signal handler", "gcc -O2", "stacks.c", "signal 6 3000000")
  fixture("C, stripped", "gcc -O2 -s -rdynamic", "stacks.c", "calls 6 3000000")
  fixture("C, static", "gcc -O2 -static -Wl,--eh-frame-hdr", "stacks.c",
    "calls 6 3000000")
  fixture("C, with frame pointers and no PIE", "gcc -O2 -fno-omit-frame-pointer -no-pie",
    "stacks.c", "calls 6 3000000")
  fixture("C, by clang and lld", "clang -O2 -fuse-ld=lld", "stacks.c", "calls 6 3000000",
    { needs = "clang" })
  fixture("C, a library opened and closed", ("gcc -O2 -shared -fPIC %splugin.c -o plugin.so && "
    .. "gcc -O2"):format(FIXTURES), "stacks.c", "plugin 6 3000000", { env = "PLUGIN=./plugin.so" })
  fixture("C++, inlines, templates and exceptions", "g++ -O2", "stacks.cc", "6 3000000")
  fixture("C++, by clang", "clang++ -O2", "stacks.cc", "6 3000000", { needs = "clang++" })
  it("Rust", function()
    check { needs = "rustc", build = ("rustc -O %sstacks.rs -o program"):format(FIXTURES),
      command = "./program 6 3000000", at_least = 200 }
  end)

  it("python3", function()
    helper.write(folder .. "/join.py", [[
words = [str(i) * 3 for i in range(9)]
def joined(n): return len(" ".join(words)) + n
class Words:
    def __str__(self): return " ".join(words)
for i in range(200000): joined(i), len(str(Words())), max(map(joined, [1]))
]])
    check { command = "/usr/bin/python3 -S -E join.py", at_least = 500 }
  end)

  it("perl", function()
    helper.write(folder .. "/sort.pl", [[
my @w = map { ($_ * 7919) % 100003 } 1 .. 60000;
sub by { my @s = sort { $a <=> $b } @w; scalar @s }
sub deep { my $n = shift; $n ? deep($n - 1) : by() }
for (1 .. 3) { by(); deep(5); my @x = map { by() } 1; eval { by() }; }
]])
    check { needs = "/usr/bin/perl", command = "/usr/bin/perl sort.pl", at_least = 200 }
  end)

  it("sqlite3", function()
    helper.write(folder .. "/many.sql", ".output /dev/null\nwith recursive c(x) as (select 1 "
      .. "union all select x+1 from c limit 400000) select sum(length(printf('%d',x))) from c;")
    check { needs = "sqlite3", at_least = 500,
      command = "sqlite3 -batch :memory: '.read many.sql'" }
  end)

  -- Its stacks can be longer than the longest copy, and libgmp's assembly has no information.
  it("cc1plus and what g++ starts", function()
    check { command = ("g++ -O2 -c -o busy.o %sstacks.cc"):format(FIXTURES), at_least = 2000,
      some_short = true }
  end)

  -- Short processes: program entry, exit handlers, code before and after main.
  it("bash and what it starts", function()
    check { command = "bash -c 'for i in {1..200}; do x=$(echo $i | sed s/1/2/); done'",
      at_least = 500, some_short = true }
  end)
end)
