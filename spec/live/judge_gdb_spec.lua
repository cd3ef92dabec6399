-- Stacks against gdb's at a hardware breakpoint: programs come to one function by the ways they
-- have, gdb stops there each time, and every recorded stack through it is one that gdb saw.
--
-- Compared are addresses, as ELF has them, of all callers up to the outermost; gdb's frames of
-- tail calls are not on the stack, and inlined ones share their caller's address.  For programs
-- with debug information names and inlined functions are compared too.

local capture = require("microscope.capture")
local helper = require("spec.helper")

local FIXTURES = helper.root .. "/fixtures/known/"
local NONE = capture.NONE
-- gdb's frame kinds (gdb.FrameType).
local INLINE, TAIL_CALL, SIGNAL = 2, 3, 4
local SIGNAL_KIND = 1 -- MIC_LOCATION_SIGNAL
-- MIC_END_OUTERMOST, MIC_END_ENTRY, MIC_END_NO_CALLER
local WHOLE = { [1] = true, [2] = true, [20] = true }

local function have(program)
  return select(3, helper.run("command -v " .. program)) == 0
end

-- Names as far as gdb and demanglers agree: without parameters, template arguments, the names
-- made up for lambdas, and the mark of a function's unlikely part, which is a symbol of its own.
local function plain(name)
  local bare = name:gsub("%b<>", ""):gsub(" %[clone [^%]]*%]", ""):gsub("%.cold$", "")
    :gsub("%b()", ""):gsub("%b{}", ""):gsub(" const$", "")
  return (bare:gsub("^.* ([^ ]+)$", "%1"):gsub("^.*::::", ""):gsub("^::", ""))
end

-- gdb's stacks: chains of addresses, and of names in the program's own file.
local function read_gdb(path, own)
  local chains, names, at, named = {}, {}, nil, nil
  local function close()
    if not at then return end
    chains[table.concat(at, "\n")] = true
    names[table.concat(named, "\n")] = true
  end
  for line in io.lines(path) do
    local address, file, kind, name = line:match("^(%x+)|(.-)|(%d)|(.*)$")
    kind = tonumber(kind)
    if line == "stop" then
      close()
      at, named = {}, {}
    elseif kind ~= TAIL_CALL then
      if kind ~= INLINE then
        at[#at + 1] = kind == SIGNAL and "signal" or address .. " " .. file
      end
      if file == own and kind ~= SIGNAL then named[#named + 1] = plain(name) end
    end
  end
  close()
  return chains, names
end

-- The functions of each location, innermost first.
local function functions_by_location(cap)
  local out = {}
  local location, fn, depth = cap:array("lines", "location"), cap:array("lines", "function"),
    cap:array("lines", "depth")
  local name = cap:array("functions", "name")
  for i = 0, cap:rows("lines") - 1 do
    local list = out[location[i]] or {}
    out[location[i]] = list
    list[depth[i] + 1] = cap:string(name[fn[i]])
  end
  return out
end

local COPY_EXHAUSTED = 3 -- of core/capture/ends.def

-- The recorded stacks through a function, from it outwards: chains as read_gdb's; their names; how
-- many end short, by reason; and the chains that end with the copy of the stack.
local function read_own(path, marked, own)
  local chains, names, short, cut = {}, {}, {}, {}
  local cap = assert(capture.open(path))
  local functions = functions_by_location(cap)
  local kind, module, offset = cap:array("locations", "kind"), cap:array("locations", "module"),
    cap:array("locations", "offset")
  local module_name, seen = cap:array("modules", "name"), {}
  local function file(l) return module[l] == NONE and "?" or cap:string(module_name[module[l]]) end
  local function is_marked(l)
    local list = functions[l]
    return list and plain(list[#list]) == marked
  end
  local function add(frames, from, ending)
    -- Of the function itself gdb has its first instruction, a sample any.
    local at, named = { "-" }, { marked }
    for i = from + 1, #frames do
      local l = frames[i]
      local is_signal = kind[l] == SIGNAL_KIND
      at[#at + 1] = is_signal and "signal"
        or ("%x %s"):format(tonumber(offset[l]), file(l))
      if not is_signal and file(l) == own then
        for _, name in ipairs(functions[l] or { "?" }) do named[#named + 1] = plain(name) end
      end
    end
    if not WHOLE[ending] then short[ending] = (short[ending] or 0) + 1 end
    if ending == COPY_EXHAUSTED then
      cut[table.concat(at, "\n")] = true
      return
    end
    chains[table.concat(at, "\n")] = true
    names[table.concat(named, "\n")] = true
  end
  local stack = cap:array("samples", "stack")
  for i = 0, cap:rows("samples") - 1 do
    if not seen[stack[i]] then
      seen[stack[i]] = true
      local frames, ending = cap:stack(stack[i])
      for k, l in ipairs(frames) do
        if is_marked(l) then
          add(frames, k, ending)
          break
        end
      end
    end
  end
  cap:close()
  return chains, names, short, cut
end

-- The chains of a that no chain of b begins with.
local function no_beginnings(a, b)
  local out = {}
  for short in pairs(a) do
    local found = false
    for whole in pairs(b) do
      found = found or (whole .. "\n"):sub(1, #short + 1) == short .. "\n"
    end
    if not found then out[#out + 1] = short end
  end
  return table.concat(out, "\n\n")
end

-- The first element is the function itself, where gdb has its first instruction.
local function without_first(set, first)
  local out = {}
  for chain in pairs(set) do out[(chain:gsub("^[^\n]*", first, 1))] = true end
  return out
end

local function count(set)
  local n = 0
  for _ in pairs(set) do n = n + 1 end
  return n
end

local function difference(a, b)
  local out = {}
  for key in pairs(a) do
    if not b[key] then out[#out + 1] = key end
  end
  return table.concat(out, "\n\n")
end

describe("stacks agree with gdb's:", function()
  local folder
  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  local function run(command)
    local out, err, status = helper.run(command, folder)
    assert(status == 0, ("status %d of %s\n%s%s"):format(status, command, out, err))
  end

  -- p: command to record, gdb (the same for one round), marked, stops, own (its file's name), env,
  -- names (compare them), some (not every way is taken in each run), deep (its stacks can be longer
  -- than the longest copy).
  local function check(p)
    local marked = p.symbol or p.marked
    run(("export %s; export MARKED=%s STOPS=%d STACKS=gdb.out; "
      .. "gdb -nx -batch -iex 'set debuginfod enabled off' -iex 'set auto-load off' "
      .. "-x %sgdb_stacks.py --args %s >gdb.log 2>&1 || { cat gdb.log; false; }"):format(
      p.env or "LC_ALL=C", helper.quote(marked), p.stops or 100, FIXTURES, p.gdb))
    run(("export %s; %s record -q -F 1999 --stack-bytes 64K -o own.usprof -- %s >/dev/null"):format(
      p.env or "LC_ALL=C", helper.quote(helper.stage .. "/bin/microscope"), p.command))
    local theirs, their_names = read_gdb(folder .. "/gdb.out", p.own)
    local ours, our_names, short, cut = read_own(folder .. "/own.usprof", p.marked, p.own)
    theirs = without_first(theirs, "-")
    assert.is_true(count(theirs) > 0, "gdb never stopped")
    assert.is_true(count(ours) > 0, "no sample in " .. p.marked)
    if p.deep then short[COPY_EXHAUSTED] = nil end
    assert.equal("", no_beginnings(cut, theirs))
    assert.same({}, short)
    assert.equal("", difference(ours, theirs))
    if not p.some then assert.equal("", difference(theirs, ours)) end
    if p.names then
      assert.equal("", difference(our_names, without_first(their_names, p.marked)))
    end
  end

  local function fixture(title, p)
    it(title, function()
      if p.needs and not have(p.needs) then return pending(p.needs .. " is not installed") end
      run(p.build)
      p.marked, p.own = "marked", p.own or "program"
      p.gdb = "./program " .. p.arguments:format(2, 10)
      -- A thread is first sampled when it has run for a whole period: each way takes several.
      p.command = "./program " .. p.arguments:format(12, 3000000)
      check(p)
    end)
  end

  local function c(flags, arguments, more)
    local p = { arguments = arguments, names = true,
      build = ("gcc -O2 -g %s %sstacks.c -o program -lpthread -ldl"):format(flags, FIXTURES) }
    for key, value in pairs(more or {}) do p[key] = value end
    return p
  end

  fixture("C, calls and callbacks", c("", "calls %d %d"))
  fixture("C, threads", c("", "threads %d %d"))
  fixture("C, a signal handler", c("", "signal %d %d"))
  fixture("C, stripped", c("-s -rdynamic", "calls %d %d", { names = false }))
  fixture("C, static", c("-static", "calls %d %d 2>/dev/null", { names = false }))
  fixture("C, with frame pointers and no PIE", c("-fno-omit-frame-pointer -no-pie", "calls %d %d"))
  fixture("C, by clang and lld", c("", "calls %d %d", { needs = "clang",
    build = ("clang -O2 -g -fuse-ld=lld %sstacks.c -o program -lpthread -ldl"):format(FIXTURES) }))
  fixture("C, a library opened and closed", c("", "plugin %d %d", { env = "PLUGIN=./plugin.so",
    build = ("gcc -O2 -g %sstacks.c -o program -lpthread -ldl && "
      .. "gcc -O2 -g -shared -fPIC %splugin.c -o plugin.so"):format(FIXTURES, FIXTURES) }))
  fixture("C++, inlines, templates and exceptions", { arguments = "%d %d", names = true,
    build = ("g++ -O2 -g %sstacks.cc -o program"):format(FIXTURES) })
  fixture("C++, by clang", { arguments = "%d %d", names = true, needs = "clang++",
    build = ("clang++ -O2 -g %sstacks.cc -o program"):format(FIXTURES) })
  fixture("Rust", { arguments = "%d %d", needs = "rustc",
    build = ("rustc -O -g %sstacks.rs -o program"):format(FIXTURES) })

  it("python3", function()
    helper.write(folder .. "/join.py", [[
import sys
words = [str(i) * 3 for i in range(int(sys.argv[2]))]
def joined(n): return len(" ".join(words)) + n
class Words:
    def __str__(self): return " ".join(words)
def all_of(n): return [joined(n), len(str(Words())), max(map(joined, [1]))]
for i in range(int(sys.argv[1])): all_of(i)
]])
    check { env = "PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 PYTHONNOUSERSITE=1",
      marked = "_PyUnicode_JoinArray", own = "python3.11", stops = 10000,
      -- As many rounds, as the interpreter rewrites code that runs often.
      gdb = "/usr/bin/python3 -S -E join.py 60 9",
      command = "/usr/bin/python3 -S -E join.py 60 200000",
      some = true }
  end)

  it("perl", function()
    if not have("/usr/bin/perl") then return pending("perl is not installed") end
    helper.write(folder .. "/sort.pl", [[
my @w = map { ($_ * 7919) % 100003 } 1 .. 60000;
sub by { my @s = sort { $a <=> $b } @w; scalar @s }
sub deep { my $n = shift; $n ? deep($n - 1) : by() }
for (1 .. $ARGV[0]) { by(); deep(5); my @x = map { by() } 1; eval { by() }; }
]])
    check { marked = "Perl_pp_sort", own = "perl", gdb = "/usr/bin/perl sort.pl 2",
      command = "/usr/bin/perl sort.pl 12", stops = 200, some = true }
  end)

  it("sqlite3", function()
    if not have("sqlite3") then return pending("sqlite3 is not installed") end
    local query = "with recursive c(x) as (select 1 union all select x+1 from c limit %d) "
      .. "select sum(length(printf('%%d',x))) from c;"
    helper.write(folder .. "/one.sql", query:format(10))
    helper.write(folder .. "/many.sql", query:format(400000))
    check { marked = "sqlite3_step", own = "libsqlite3.so.0.8.6", stops = 1000, some = true,
      gdb = "sqlite3 -batch :memory: '.read one.sql'",
      command = "sqlite3 -batch :memory: '.read many.sql'" }
  end)

  it("cc1", function()
    local source = {}
    for i = 1, 60 do
      source[#source + 1] = ([[
int f%d(int *p, int n) { int s = %d; for (int i = 0; i < n; i++) {
  if (p[i] > s) s += p[i] * %d; else switch (p[i] & 7) { case 1: s ^= n; break; case 2: s <<= 1;
  break; default: s -= i; } } return s; }
]]):format(i, i, i)
    end
    helper.write(folder .. "/busy.c", table.concat(source))
    local cc1 = helper.run("gcc -print-prog-name=cc1"):gsub("%s+$", "")
    local command = cc1 .. " -quiet -O2 -o /dev/null busy.c"
    check { marked = "cgraph_node::expand", symbol = "cgraph_node::expand", own = "cc1",
      gdb = command, command = command, stops = 1000, some = true, deep = true }
  end)
end)
