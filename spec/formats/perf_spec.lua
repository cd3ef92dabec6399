-- perf.data files: what `perf script` says of them, and what is odd or damaged.

local ffi = require("ffi")

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")
local perf_kit = require("spec.formats.perf_kit")

local CORPUS = helper.root .. "/fixtures/fuzz/perfdata/"

-- Sorts through the C library, recurses, and maps and unmaps memory: leaves of two images, a chain
-- of known depth, time in the kernel.
local SOURCE = [[
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) unsigned leaf(unsigned n) {
  volatile unsigned x = 0;
  for (unsigned i = 0; i < n; i++) x += i * i;
  return x;
}
__attribute__((noinline)) unsigned deep(unsigned depth, unsigned n) {
  return depth ? deep(depth - 1, n) + 1 : leaf(n);
}
static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void) {
  static int values[20000];
  unsigned sum = 0;
  for (int i = 0; i < 150; i++) {
    sum += deep(i % 20, 200000);
    for (int k = 0; k < 20000; k++) values[k] = rand();
    qsort(values, 20000, sizeof *values, order);
    char *block = malloc(1 << 20);
    memset(block, i, 1 << 20);
    sum += block[77];
    free(block);
  }
  return sum == 1;
}
]]

local function why_not()
  if not kit.has("perf") then return "perf is not installed" end
  local _, _, status = helper.run("perf record -q -e cpu-clock -o probe.data true")
  return status ~= 0 and "perf may not record here (CAP_PERFMON)" or nil
end

describe("convert from perf.data:", function()
  local folder, refused
  setup(function()
    folder, refused = helper.folder(), why_not()
    helper.write(folder .. "/work.c", SOURCE)
    local _, err, status = helper.run("cc -O2 -g -fno-omit-frame-pointer work.c -o work", folder)
    assert(status == 0, err)
  end)
  teardown(function() helper.remove(folder) end)

  local function record(options, name, command)
    local _, err, status = helper.run(
      ("timeout -s KILL 60 perf record -q -e cpu-clock -F 997 %s -o %s.data %s"):format(options,
        name, command or "./work"), folder)
    assert(status == 0, err)
    kit.convert(folder, ("%s.data %s.usprof"):format(name, name))
    return perf_kit.ours(folder .. "/" .. name .. ".usprof"),
      perf_kit.script(folder, name .. ".data")
  end

  -- Every sample has the same time, thread and weight; stacks are the same or differ by a proof.
  local function agree(ours, theirs, unwound)
    local proofs = {}
    assert.equal(#theirs, #ours)
    for i = 1, #theirs do
      local a, b = ours[i], theirs[i]
      assert.same({ b.tid, b.time, b.period }, { a.tid, a.time, a.period })
      local why, at = perf_kit.compare(a, b, unwound)
      local proof = perf_kit.proof(a, b, why, at, unwound)
      assert(proof, ("sample %d of time %s: %s at frame %s"):format(i, a.time, why, tostring(at)))
      proofs[proof] = (proofs[proof] or 0) + 1
    end
    return proofs
  end

  it("has perf script's samples, of frame pointers", function()
    if refused then return pending(refused) end
    local ours, theirs = record("-g", "fp")
    local proofs = agree(ours, theirs, false)
    assert.is_true(#ours > 100)
    assert.is_true(proofs.same >= 0.99 * #ours)
  end)

  -- A program that is gone or replaced: its image is where perf, or somebody, kept it.
  it("finds images by build ID, in perf's cache and in folders that are given", function()
    if refused then return pending(refused) end
    local function unwound(options, environment)
      local _, err, status = helper.run(("%s %s/bin/microscope convert %s gone.data gone.usprof")
        :format(environment, helper.quote(helper.stage), options), folder)
      assert(status == 0, err)
      local named, main, cap = 0, 0, assert(capture.open(folder .. "/gone.usprof"))
      local functions, name = cap:rows("functions"), cap:array("functions", "name")
      for i = 0, functions - 1 do
        local text = cap:string(name[i])
        named = named + ((text == "deep" or text == "leaf") and 1 or 0)
        main = main + (text == "main" and 1 or 0)
      end
      cap:close()
      return named + main
    end
    local script = [[
      mkdir -p home; export HOME=$PWD/home; cp work passing
      timeout -s KILL 60 perf record -q -e cpu-clock -F 997 --call-graph dwarf --buildid-all \
        -o gone.data ./passing; rm passing]]
    local _, err, status = helper.run(script, folder)
    assert(status == 0, err)
    local elsewhere = "PERF_BUILDID_DIR=" .. folder .. "/nowhere "
    assert.equal(0, unwound("", elsewhere))
    assert.equal(3, unwound("", "PERF_BUILDID_DIR= HOME=" .. folder .. "/home "))
    assert.equal(3, unwound("-d home/.debug", elsewhere))
    helper.run("mkdir -p root$PWD; cp work root$PWD/passing", folder)
    assert.equal(3, unwound("-d root", elsewhere))
    -- Another program at the path is none.
    helper.run("for at in root$PWD .; do rm -f $at/passing; cp /bin/true $at/passing; done", folder)
    assert.equal(0, unwound("-d root", elsewhere))
    local cap = assert(capture.open(folder .. "/gone.usprof"))
    local told = false
    for i = 0, cap:rows("modules") - 1 do
      local text = cap:string(cap:array("modules", "problem")[i])
      told = told or text:find("the file at its path here has another build ID", 1, true)
    end
    cap:close()
    assert.is_truthy(told)
  end)

  it("has perf script's samples of groups that are read together", function()
    if refused then return pending(refused) end
    local ours, theirs = record("-g -e '{task-clock,page-faults}:S'", "group")
    agree(ours, theirs, false)
    assert(capture.with(folder .. "/group.usprof", function(cap)
      local name, source, counts = cap:array("sources", "name"), cap:array("samples", "source"), {}
      for i = 0, cap:rows("samples") - 1 do
        local of = cap:string(name[source[i]]):gsub(":.*", "")
        counts[of] = (counts[of] or 0) + 1
      end
      return assert.is_true(counts["cpu-clock"] > 0 and counts["task-clock"] > 0
        and counts["page-faults"] > 0)
    end))
  end)

  it("counts for each thread by itself where an event is inherited", function()
    if refused then return pending(refused) end
    local _, err, status = helper.run("timeout -s KILL 60 perf record -q -e cpu-clock:S -F 997"
      .. " -o inherited.data sh -c './work & ./work & wait'", folder)
    assert(status == 0, err)
    kit.convert(folder, "inherited.data inherited.usprof")
    local processors = tonumber((helper.run("nproc --all")))
    assert(capture.with(folder .. "/inherited.usprof", function(cap)
      local weight, total, pids = cap:array("samples", "weight"), 0, {}
      local thread = cap:array("samples", "thread")
      for i = 0, cap:rows("samples") - 1 do
        total = total + tonumber(weight[i])
        pids[cap:array("threads", "process")[thread[i]]] = true
      end
      local duration = tonumber(cap:array("clocks", "duration_ns")[0])
      assert.is_true(total > 0 and total <= processors * duration, total .. " of " .. duration)
      local count = 0
      for _ in pairs(pids) do count = count + 1 end
      return assert.is_true(count >= 2)
    end))
  end)

  it("has perf script's samples, of copies of stacks", function()
    if refused then return pending(refused) end
    local ours, theirs = record("--call-graph dwarf --buildid-all", "dwarf")
    local proofs, whole = agree(ours, theirs, true), 0
    for _, sample in ipairs(ours) do whole = whole + (sample.whole and 1 or 0) end
    assert.is_true(proofs.same >= 0.9 * #ours)
    assert.is_true(whole >= 0.95 * #ours)
  end)

  it("explains where perf's unwinder goes astray", function()
    if refused then return pending(refused) end
    local ours, theirs = record("--call-graph dwarf,16384 --buildid-all", "cc",
      "cc -O2 -c work.c -o /dev/null")
    agree(ours, theirs, true)
  end)

  it("reads pipes, compressed records and build IDs of mappings", function()
    if refused then return pending(refused) end
    agree(record("-g --buildid-mmap", "mmap"))
    agree(record("-g -z", "zstd"))
    local _, err, status = helper.run("perf record -q -e cpu-clock -g -o - ./work >pipe.data",
      folder)
    assert(status == 0, err)
    _, err, status = helper.run(("cat pipe.data | %s/bin/microscope convert - pipe.usprof"):format(
      helper.quote(helper.stage)), folder)
    assert(status == 0, err)
    agree(perf_kit.ours(folder .. "/pipe.usprof"), perf_kit.script(folder, "pipe.data"))
  end)

  it("reads the folders of perf record --threads", function()
    if refused then return pending(refused) end
    for name, options in pairs { threads = "--threads -g", cores = "--threads=core -z -g" } do
      local _, err, status = helper.run(("timeout -s KILL 60 perf record -q -e cpu-clock -F 997 -a"
        .. " -o %s %s ./work"):format(name, options), folder)
      assert(status == 0, err)
      kit.convert(folder, name .. " " .. name .. ".usprof")
      agree(perf_kit.ours(folder .. "/" .. name .. ".usprof"), perf_kit.script(folder, name))
    end
    -- The end of a compressed file is lost.
    local whole = #perf_kit.ours(folder .. "/cores.usprof")
    local _, err, status = helper.run("truncate -s -20 cores/data.0", folder)
    assert(status == 0, err)
    local told = kit.convert(folder, "cores cut.usprof")
    assert.matches("all from record %d+ at byte %d+ of data%.0 on: a record is not whole", told)
    local left = #perf_kit.ours(folder .. "/cut.usprof")
    assert.is_true(left > 0 and left < whole)
  end)

  it("keeps events apart, with their units and periods", function()
    kit.convert(folder, CORPUS .. "events events.usprof")
    assert(capture.with(folder .. "/events.usprof", function(cap)
      local name, unit = cap:array("sources", "name"), cap:array("sources", "unit")
      local period, unit_name = cap:array("sources", "period"), cap:array("sources", "unit_name")
      assert.same({ "cpu-clock", "page-faults" }, { cap:string(name[0]), cap:string(name[1]) })
      assert.same({ 0, 2 }, { unit[0], unit[1] })
      assert.equal("page-faults", cap:string(unit_name[1]))
      assert.same({ 2000000, 2000000 }, { tonumber(period[0]), tonumber(period[1]) })
      return assert.is_true(cap:array("clocks", "monotonic_ns")[0] > ffi.new("uint64_t", 0))
    end))
  end)

  it("names no file that is not proven", function()
    kit.convert(folder, CORPUS .. "pipe unproven.usprof")
    assert(capture.with(folder .. "/unproven.usprof", function(cap)
      local problem, kind = cap:array("modules", "problem"), cap:array("locations", "kind")
      local told = 0
      for i = 0, cap:rows("modules") - 1 do
        if cap:string(problem[i]):find("tell its build ID", 1, true) then told = told + 1 end
      end
      assert.is_true(told > 0)
      for i = 0, cap:rows("locations") - 1 do assert.is_true(kind[i] == 5 or kind[i] == 0) end
      return assert.equal(0, cap:rows("functions"))
    end))
  end)

  it("gives what is there of a file that ends early", function()
    local bytes = helper.read(CORPUS .. "fp")
    -- perf that is killed leaves the size of the records at 0 (byte 48 of the header).
    helper.write(folder .. "/cut.data", bytes:sub(1, 48) .. ("\0"):rep(8) .. bytes:sub(57, 2600))
    local told = kit.convert(folder, "cut.data cut.usprof")
    assert.matches("all from record %d+ at byte %d+ on: a record is not whole", told)
    assert(capture.with(folder .. "/cut.usprof", function(cap)
      assert.is_true(cap:rows("samples") > 0)
      return assert.is_true(cap:rows("problems") >= 2)
    end))
  end)

  it("refuses by name what it does not read", function()
    local function refuse(bytes, pattern)
      helper.write(folder .. "/bad.data", bytes)
      assert.matches(pattern, kit.refused(folder, "bad.data bad.usprof"))
    end
    local fp = helper.read(CORPUS .. "fp")
    refuse("2ELIFREP" .. ("\0"):rep(200), "big%-endian")
    refuse("PERFFILE" .. ("\0"):rep(200), "before Linux 3%.2")
    refuse(fp:sub(1, 60), "byte 60: the header is cut short")
    refuse(fp:sub(1, 24) .. ("\255"):rep(8) .. fp:sub(33), "byte 24: the events' attributes")
    local arch = fp:find("%zx86_64%z") + 1
    refuse(fp:sub(1, arch - 1) .. "aarch64" .. fp:sub(arch + 7),
      "recorded on aarch64: only recordings of x86_64")
    -- A record of an Intel PT trace, first in the data.
    local at = 1 + fp:byte(41) + 256 * fp:byte(42)
    refuse(fp:sub(1, at - 1) .. "\70\0\0\0\0\0\16\0\1\0\0\0\0\0\0\0" .. fp:sub(at + 16),
      "record 1 at byte %d+: it holds an Intel PT trace")
  end)

  it("leaves half of what is free where it decompresses", function()
    local _, _, status = helper.run("unshare -rm true")
    if status ~= 0 then
      pending("no namespace of one's own for a small file system: " .. status)
      return
    end
    helper.write(folder .. "/large", "PERFILE2" .. ("\0"):rep(6 * 2 ^ 20))
    helper.run("mkdir -p small && gzip -k large && zstd -q -k large", folder)
    for _, input in ipairs { "large.gz", "large.zst", "-" } do
      local out, err
      out, err, status = helper.run(([[unshare -rm sh -c '
        mount -t tmpfs -o size=8m none small
        cat large | TMPDIR=$PWD/small "$0" convert --from perf %s out.usprof; status=$?
        ls small; ls out.usprof*
        exit $status' %s/bin/microscope]]):format(input, helper.quote(helper.stage)), folder)
      assert.same({ "", 1 }, { out, status }, err)
      assert.matches("^microscope convert: [^\n]*: more than %d+ bytes, half of what is free where"
        .. " TMPDIR is\n", err)
    end
  end)

  it("counts records that do not hold together", function()
    local fp = helper.read(CORPUS .. "fp")
    local at = 1 + fp:byte(41) + 256 * fp:byte(42)
    -- The second record becomes a sample of its size.
    local second = at + fp:byte(at + 6) + 256 * fp:byte(at + 7)
    helper.write(folder .. "/odd.data", fp:sub(1, second - 1) .. "\9" .. fp:sub(second + 1))
    assert.matches("1 record that does not hold together: the first is record 2 at byte %d+",
      kit.convert(folder, "odd.data odd.usprof"))
  end)
end)
