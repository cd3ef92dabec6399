-- Names of code that no file has, in perf.data: of just-in-time compilers and BPF programs, beside
-- what perf script says.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kernel_kit = require("spec.symbolize.kernel_kit")
local kit = require("spec.formats.kit")
local perf_kit = require("spec.formats.perf_kit")

local SCRIPT = [[
function leaf(n) { let x = 0; for (let i = 0; i < n; i++) x = (x + i * i) % 1000003; return x; }
function deep(d, n) { return d ? deep(d - 1, n) + 1 : leaf(n); }
let sum = 0, k = 0;
for (const end = Date.now() + 1000; Date.now() < end; k++) {
  sum += deep(k % 20, 20000);
  const list = [];
  for (let i = 0; i < 2000; i++) list.push((i * 7919) % 1999);
  list.sort((x, y) => x - y);
  sum += JSON.stringify(list.map(v => ({ v }))).length;
}
console.log(process.pid);
]]

-- Loops of machine code in anonymous memory at fixed addresses, called from main.
local MAKER = [[
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
  /* mov $0x20000000,%ecx; 1: dec %ecx; jnz 1b; ret */
  static const unsigned char code[] = { 0xb9, 0, 0, 0, 0x20, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
  char *at = mmap((void *)0x10000000, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (at != (char *)0x10000000) return 1;
  memcpy(at, code, sizeof code);
  memcpy(at + 4096, code, sizeof code);
  ((void (*)(void))at)();
  ((void (*)(void))(at + 4096))();
  printf("%d\n", (int)getpid());
}
]]

local BPF = [[
struct __sk_buff;
__attribute__((section("tc"), used)) int spinning(struct __sk_buff *skb) {
  unsigned long long x = 1;
#pragma clang loop unroll(disable)
  for (int i = 0; i < 5000; i++) {
    x = x * 6364136223846793005ULL + i;
    asm volatile("" : "+r"(x));
  }
  return (int)(x & 1);
}
char _license[] __attribute__((section("license"), used)) = "GPL";
]]

local function shell(command, folder)
  local out, err, status = helper.run(command, folder)
  assert(status == 0, command .. ": " .. err)
  return out
end

local function why_not(...)
  for _, program in ipairs { "perf", ... } do
    if not kit.has(program) then return program .. " is not installed" end
  end
  local _, _, status = helper.run("perf record -q -e cpu-clock -o probe.data true")
  return status ~= 0 and "perf may not record here (CAP_PERFMON)" or nil
end

-- The ranges of a perf map: {start, past, name}.
local function ranges(path)
  local list = {}
  for line in io.lines(path) do
    local start, size, name = line:match("^(%x+) (%x+) (.+)$")
    start = tonumber(start, 16)
    list[#list + 1] = { start, start + tonumber(size, 16), name }
  end
  return list
end

-- The names that a map has for an address: a set, and how many.
local function names_at(list, address)
  local set, count = {}, 0
  for _, range in ipairs(list) do
    if address >= range[1] and address < range[2] and not set[range[3]] then
      set[range[3]], count = true, count + 1
    end
  end
  return set, count
end

local function problems(path)
  return assert(capture.with(path, function(cap)
    local out, text = {}, cap:array("problems", "text")
    for i = 0, cap:rows("problems") - 1 do out[#out + 1] = cap:string(text[i]) end
    return table.concat(out, "\n")
  end))
end

describe("code that no file has, of a perf.data:", function()
  local folder, maps
  setup(function() folder, maps = helper.folder(), {} end)
  teardown(function()
    for _, map in ipairs(maps) do os.remove(map) end
    helper.remove(folder)
  end)

  it("is named by its process's perf map as perf script does", function()
    local refused = why_not("node")
    if refused then return pending(refused) end
    helper.write(folder .. "/work.js", SCRIPT)
    local pid = shell("timeout -s KILL 60 perf record -q -g -e cpu-clock -F 1997 -o node.data"
      .. " node --perf-basic-prof work.js", folder):match("%d+")
    local map = "/tmp/perf-" .. pid .. ".map"
    maps[#maps + 1] = map
    kit.convert(folder, "node.data node.usprof")
    local ours, theirs = perf_kit.ours(folder .. "/node.usprof"),
      perf_kit.script(folder, "node.data")
    local list, same, ambiguous, more = ranges(map), 0, 0, 0
    assert.equal(#theirs, #ours)
    for i, sample in ipairs(theirs) do
      for k, frame in ipairs(sample.frames) do
        local own = ours[i].frames[k]
        if own and own.path == map then
          local set, count = names_at(list, tonumber(own.offset))
          if not own.name then
            assert.is_true(count > 1)
            ambiguous = ambiguous + 1
          else
            assert.same({ [own.name] = true }, set)
            local after = k > 1 and frame.offset == 0
            -- Where ranges overlap perf's tree of them can miss the one that holds an address.
            if not frame.name then
              more = more + 1
            elseif not after then
              assert.equal(frame.name, own.name)
              same = same + 1
            end
          end
        elseif own and frame.image == map and frame.name then
          -- A return address past the end of one function: the call was in another.
          local _, count = names_at(list, tonumber(own.offset))
          assert.equal(0, count)
        end
      end
    end
    assert.is_true(same > 500, ("%d the same, %d ambiguous, %d more"):format(same, ambiguous, more))
    assert.is_true(ambiguous + more < same / 20)
  end)

  it("is named from the files that perf inject makes of a jitdump", function()
    local refused = why_not("node")
    if refused then return pending(refused) end
    helper.write(folder .. "/work.js", SCRIPT)
    shell("mkdir -p dump && cd dump && timeout -s KILL 60 perf record -q -k mono -g -e cpu-clock"
      .. " -F 997 -o plain.data node --perf-prof ../work.js && perf inject --jit -i plain.data"
      .. " -o jit.data", folder)
    -- As perf wrote them before Linux 6.2: without program headers.
    for _, headers in ipairs { true, false } do
      if not headers then
        for path in shell("ls -d $PWD/dump/jitted-*.so", folder):gmatch("[^\n]+") do
          local bytes = helper.read(path)
          helper.write(path, bytes:sub(1, 56) .. "\0\0" .. bytes:sub(59))
        end
      end
      kit.convert(folder, "dump/jit.data jit.usprof")
      local ours, theirs = perf_kit.ours(folder .. "/jit.usprof"),
        perf_kit.script(folder, "dump/jit.data")
      local same = 0
      for i, sample in ipairs(theirs) do
        for k, frame in ipairs(sample.frames) do
          local own = ours[i].frames[k]
          if own and frame.image:find("jitted-", 1, true) and own.path == frame.image then
            assert.equal(frame.name, own.name)
            same = same + 1
          end
        end
      end
      assert.is_true(same > 300, tostring(same))
    end
  end)

  describe("a perf map", function()
    local refused, map, pid

    local function record(name, options)
      helper.write(folder .. "/maker.c", MAKER)
      pid = shell(("cc -O1 maker.c -o maker && timeout -s KILL 60 perf record -q -e cpu-clock"
        .. " -F 997 %s -o %s.data ./maker"):format(options or "", name), folder):match("%d+")
      map = "/tmp/perf-" .. pid .. ".map"
      maps[#maps + 1] = map
    end

    -- The names of the samples in the made code, by how many; and the problems that are told.
    local function names(name)
      kit.convert(folder, name .. ".data " .. name .. ".usprof")
      local out = {}
      for _, sample in ipairs(perf_kit.ours(folder .. "/" .. name .. ".usprof")) do
        local frame = sample.frames[1]
        if frame.offset >= 0x10000000ULL and frame.offset < 0x10002000ULL then
          local what = frame.name or frame.path
          out[what] = (out[what] or 0) + 1
        end
      end
      return out, problems(folder .. "/" .. name .. ".usprof")
    end

    setup(function()
      refused = why_not("cc")
      if not refused then record("made") end
    end)

    after_each(function() if map then helper.run("rm -rf " .. map) end end)

    -- Older than the recording's end, as the map of its process is.
    local function write_map(text)
      helper.write(map, text)
      shell("touch -d '1 hour ago' " .. map, folder)
    end

    it("may be absent", function()
      if refused then return pending(refused) end
      local found, told = names("made")
      assert.is_nil(told:find(map, 1, true))
      assert.is_true(found[""] > 100)
    end)

    it("names what one line covers, and not what lines name differently", function()
      if refused then return pending(refused) end
      write_map("10000000 a first function\n10001000 a old\nnonsense\n10001000 20 new\n")
      local found, told = names("made")
      assert.is_true(found["first function"] > 50)
      assert.is_true(found[map] > 50)
      assert.is_nil(found.old or found.new or found[""])
      assert.matches("lines of perf maps are not START SIZE NAME", told)
      local out = helper.microscope("report made.usprof", folder)
      assert.matches("problem: perf%-%d+%.map: the perf map has several names for an address", out)
      assert.matches(map:match("perf%-%d+.map"):gsub("%p", "%%%0") .. "%+0x1000100", out)
    end)

    it("keeps its names through symbolize", function()
      if refused then return pending(refused) end
      write_map("10000000 a kept\n")
      names("made")
      os.remove(map)
      shell(helper.quote(helper.stage .. "/bin/microscope") .. " symbolize -q made.usprof", folder)
      local out = helper.microscope("report made.usprof", folder)
      assert.matches("kept %(perf%-", out)
    end)

    it("is not believed when another may have written it", function()
      if refused then return pending(refused) end
      local line = "10000000 2000 forged\n"
      local function doubted(why)
        local found, told = names("made")
        assert.is_nil(found.forged)
        assert.is_truthy(told:find(map .. " is not used: " .. why, 1, true), told)
      end
      helper.write(map, line)
      doubted("it was made after the recording")
      write_map(line)
      shell("chown 65534 " .. map, folder)
      doubted("it is neither root's nor yours")
      shell(("rm %s && mkfifo %s"):format(map, map), folder)
      doubted("it is no regular file")
      shell(("rm %s && mkdir %s"):format(map, map), folder)
      doubted("it is no regular file")
      shell("rmdir " .. map, folder)
      helper.write(folder .. "/elsewhere", line)
      shell(("touch -d '1 hour ago' elsewhere && ln -s $PWD/elsewhere %s"):format(map), folder)
      local found = names("made")
      assert.is_nil(found.forged)
      shell("rm " .. map, folder)
      write_map(line)
      shell("truncate -s 1073741825 " .. map .. " && touch -d '1 hour ago' " .. map, folder)
      doubted("" .. map .. ": more than 1073741824 bytes")
      os.remove(map)
      write_map(line)
      local host = shell("uname -n", folder):gsub("\n", "")
      local bytes = helper.read(folder .. "/made.data")
      local at = bytes:find(host .. "\0", 1, true)
      helper.write(folder .. "/made.data", bytes:sub(1, at - 1) .. ("x"):rep(#host)
        .. bytes:sub(at + #host))
      doubted("the recording is of another host")
      helper.write(folder .. "/made.data", bytes)
      found = names("made")
      assert.is_true(found.forged > 100)
    end)

    it("of an earlier process is not believed where the clock is known", function()
      if refused then return pending(refused) end
      record("clock", "-k mono")
      write_map("10000000 2000 forged\n")
      local found, told = names("clock")
      assert.is_nil(found.forged)
      assert.is_truthy(told:find("an earlier process with its id wrote it", 1, true), told)
    end)

    it("of a process in other namespaces is in that one's own /tmp", function()
      if refused then return pending(refused) end
      local _, _, status = helper.run("unshare -mpf true")
      if status ~= 0 then return pending("no namespaces of one's own: CAP_SYS_ADMIN") end
      -- It lives until the recording is converted, as the place of its map is its own.
      helper.write(folder .. "/stay.c", (MAKER:gsub('printf%("%%d\\n", %(int%)getpid%(%)%);',
        'FILE *f = fopen("/tmp/perf-1.map", "w"); fprintf(f, "10000000 2000 contained\\n");'
        .. ' fclose(f); puts("ready"); fflush(stdout); for (;;) ((void (*)(void))at)();')))
      shell("cc -O1 stay.c -o stay", folder)
      shell(([[
        unshare -mpf --kill-child sh -c 'mount -t tmpfs none /tmp && exec ./stay' >said & box=$!
        for _ in $(seq 1200); do grep -q ready said && break; sleep 0.05; done
        timeout -s KILL 60 perf record -q -a -e cpu-clock -F 997 -o in.data ./maker >/dev/null &&
          %s/bin/microscope convert in.data in.usprof
        status=$?
        kill -KILL $box
        exit $status]]):format(helper.quote(helper.stage)), folder)
      local count = 0
      for _, sample in ipairs(perf_kit.ours(folder .. "/in.usprof")) do
        if sample.frames[1].name == "contained" then count = count + 1 end
      end
      local report = helper.microscope("report in.usprof", folder)
      assert.is_true(count > 100, report)
    end)
  end)

  it("is named by the kernel's record of a BPF program as perf script does", function()
    local refused = why_not("clang-14", "bpftool") or kernel_kit.why_not()
    if refused then return pending(refused) end
    helper.write(folder .. "/prog.bpf.c", BPF)
    shell("clang-14 -O2 -target bpf -c prog.bpf.c -o prog.bpf.o && head -c 64 /dev/zero >in.bin",
      folder)
    local pin = "/sys/fs/bpf/spec" .. folder:match("[^./]*$")
    local _, err, status = helper.run(("bpftool prog load prog.bpf.o %s"):format(pin), folder)
    if status ~= 0 then return pending("no BPF here: " .. err) end
    -- One that was there before, and one that comes and goes.
    shell(([[timeout -s KILL 60 perf record -q -a -g -e cpu-clock -F 1997 -o bpf.data sh -c '
      run() { bpftool prog run pinned $1 data_in in.bin repeat 30000; }
      run %s && bpftool prog load prog.bpf.o %s2 && run %s2 && rm %s2' >/dev/null; rm %s]])
      :format(pin, pin, pin, pin, pin), folder)
    kit.convert(folder, "bpf.data bpf.usprof")
    local ours, theirs = perf_kit.ours(folder .. "/bpf.usprof"),
      perf_kit.script(folder, "bpf.data")
    local count = 0
    for i, sample in ipairs(theirs) do
      for k, frame in ipairs(sample.frames) do
        if frame.image:find("^bpf_prog_") then
          local own = ours[i].frames[k]
          assert.same({ frame.name, frame.image }, { own.name, own.path })
          assert.equal(frame.offset - (k > 1 and 1 or 0), tonumber(own.offset))
          count = count + 1
        end
      end
    end
    assert.is_true(count > 100, tostring(count))
    assert.equal(1, assert(capture.with(folder .. "/bpf.usprof", function(cap)
      local found, name = 0, cap:array("modules", "name")
      for m = 0, cap:rows("modules") - 1 do
        if cap:string(name[m]):find("_spinning$") then found = found + 1 end
      end
      return found
    end)))
  end)
end)
