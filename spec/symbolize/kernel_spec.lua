-- microscope symbolize: the kernel's code from a vmlinux, its modules' from their files.

local helper = require("spec.helper")
local kernel_kit = require("spec.symbolize.kernel_kit")
local kit = require("spec.symbolize.kit")
local perf_kit = require("spec.formats.perf_kit")

local KERNEL, LOADED = 4, 5 -- mic_module_kind
local SHIFT = 0x600000 -- how far below its place the made vmlinux is linked

-- Reads /proc, maps and unmaps, forks: time all over the kernel.
local WORK = [[for i in $(seq 150); do cat /proc/self/maps /proc/self/smaps >/dev/null; done]]

local SOURCE = [[
static inline __attribute__((always_inline)) int inner(int x) {
  volatile int y = x * 3;
  return y + 1;
}
static inline __attribute__((always_inline)) int middle(int x) { return inner(x) - inner(x + 1); }
__attribute__((noinline)) int outer(int x) {
  int sum = 0;
  for (int i = 0; i < x; i++) sum += middle(i);
  return sum;
}
int entry(int x) { return outer(x) + middle(x); }
]]

-- Every address of the code of an ELF file's .text but what pads it, as hex digits.
local function code(path)
  local out = helper.run("objdump -d --no-show-raw-insn -j .text " .. helper.quote(path))
  local list = {}
  for address, instruction in out:gmatch("\n%s*(%x+):%s*([^\n]+)") do
    if not instruction:find("nop") and not instruction:find("xchg +%%ax,%%ax") then
      list[#list + 1] = "0x" .. address
    end
  end
  return list
end

-- A chain of ours in the form of addr2line's.
local function chain(meaning)
  local out = {}
  for frame in (meaning .. " <== "):gmatch("(.-) <== ") do
    local name, place = frame:match("^(.-)|.-|(.-)|")
    if name then out[#out + 1] = name .. "|" .. place end
  end
  return out
end

local function build_id(path)
  return helper.run("readelf -nW " .. helper.quote(path)):match("Build ID: (%x+)")
end

describe("symbolize of the kernel:", function()
  local folder, refused, functions, addresses, theirs
  local release = helper.run("uname -r"):gsub("\n", "")
  local notes = io.open("/sys/kernel/notes", "rb")
  notes = notes and notes:read("*a")

  setup(function()
    folder, refused = helper.folder(), kernel_kit.why_not()
    if refused then return end
    local _, err, status = helper.run("timeout -s KILL 60 perf record -q -a -g -e cpu-clock -F 1997"
      .. " -o a.data sh -c " .. helper.quote(WORK), folder)
    assert(status == 0, err)
    functions, addresses = kernel_kit.functions()
    theirs = perf_kit.script(folder, "a.data")
    _, err, status = helper.run(kernel_kit.hidden(helper.stage
      .. "/bin/microscope convert a.data bare.usprof"), folder)
    assert(status == 0, err)
  end)
  teardown(function() helper.remove(folder) end)

  local function symbolize(arguments, hidden)
    helper.run("cp bare.usprof named.usprof", folder)
    local command = ("timeout -s KILL 120 %s/bin/microscope symbolize %s named.usprof"):format(
      helper.stage, arguments)
    local _, err, status = helper.run((hidden and kernel_kit.hidden or kernel_kit.bare)(command),
      folder)
    assert(status == 0, err)
    return err
  end

  local function vmlinux(path, of, with_notes, shift)
    helper.run("mkdir -p " .. helper.quote(folder .. "/" .. path:match("^(.*)/")))
    kernel_kit.vmlinux(folder .. "/" .. path, of or functions, shift or SHIFT, with_notes or notes)
  end

  local function is_alias(a, b)
    for _, x in ipairs(addresses[a] or {}) do
      for _, y in ipairs(addresses[b] or {}) do
        if x == y then return true end
      end
    end
    return false
  end

  -- How many frames in the kernel's own image are named, all as perf does.
  local function agree()
    local ours, count = perf_kit.ours(folder .. "/named.usprof"), 0
    assert.equal(#theirs, #ours)
    for i, sample in ipairs(theirs) do
      assert.same({ sample.tid, sample.time }, { ours[i].tid, ours[i].time })
      for k, frame in ipairs(sample.frames) do
        local own = ours[i].frames[k]
        if frame.image == "[kernel.kallsyms]" then
          -- A call that does not return ends its function: perf names the next one's first byte.
          local after = k > 1 and frame.offset == 0
          if own.name ~= frame.name and not after and not is_alias(own.name, frame.name) then
            error(("sample %d: %s is %s, not %s"):format(i, frame.ip, tostring(own.name),
              frame.name))
          end
          count = count + 1
        end
      end
    end
    return count
  end

  it("has no names without /proc/kallsyms or a vmlinux", function()
    if refused then return pending(refused) end
    assert.matches("no vmlinux with its build ID was found", symbolize("", true))
    local naming = kernel_kit.naming(folder .. "/named.usprof", "[kernel.kallsyms]")
    assert.same({ 0, "" }, { naming.named, naming.image })
    assert.is_true(naming.unnamed > 50)
  end)

  it("names each frame as perf script does, from a vmlinux linked elsewhere", function()
    if refused then return pending(refused) end
    vmlinux("some/where/kernel.elf")
    symbolize("-d some", true)
    assert.is_true(agree() > 1000)
    local naming = kernel_kit.naming(folder .. "/named.usprof", "[kernel.kallsyms]")
    assert.same({ 0, folder .. "/some/where/kernel.elf", "no debug information" },
      { naming.unnamed, naming.image, naming.problem })
  end)

  it("finds it by its release, and by its build ID", function()
    if refused then return pending(refused) end
    local id = helper.run("perf buildid-list -k"):match("%x+")
    for i, path in ipairs { "usr/lib/debug/boot/vmlinux-" .. release, "boot/vmlinux-" .. release,
      "lib/modules/" .. release .. "/build/vmlinux",
      ".build-id/" .. id:sub(1, 2) .. "/" .. id:sub(3) .. ".debug" } do
      vmlinux("root" .. i .. "/" .. path)
      symbolize("-d root" .. i, true)
      assert.equal(folder .. "/root" .. i .. "/" .. path,
        kernel_kit.naming(folder .. "/named.usprof", "[kernel.kallsyms]").image)
    end
  end)

  it("takes the running kernel's own names where it is the same", function()
    if refused then return pending(refused) end
    vmlinux("some/where/kernel.elf")
    symbolize("-d some", true)
    local by_vmlinux = kit.meanings(folder .. "/named.usprof")
    symbolize("")
    assert.is_true(agree() > 1000)
    -- Of aliases both give the same.
    kit.assert_same(by_vmlinux, kit.meanings(folder .. "/named.usprof"))
    assert.equal("/proc/kallsyms",
      kernel_kit.naming(folder .. "/named.usprof", "[kernel.kallsyms]").image)
    local out = helper.microscope("report --annotate do_syscall_64 named.usprof", folder)
    assert.matches("self, [%d.]+ m?s total: [%d.]+ %% of", out)
  end)

  it("refuses a vmlinux of another build ID", function()
    if refused then return pending(refused) end
    local at = notes:find("GNU\0", 1, true) + 4
    local other = notes:sub(1, at - 1) .. string.char((notes:byte(at) + 1) % 256)
      .. notes:sub(at + 1)
    vmlinux("wrong/boot/vmlinux-" .. release, nil, other)
    local err = symbolize("-d wrong", true)
    assert.is_truthy(err:find("wrong/boot/vmlinux-" .. release .. " has another build ID", 1, true),
      err)
    assert.equal(0, kernel_kit.naming(folder .. "/named.usprof", "[kernel.kallsyms]").named)
  end)

  it("refuses a vmlinux that does not tell where the kernel was put", function()
    if refused then return pending(refused) end
    local without, twice = {}, {}
    for _, f in ipairs(functions) do
      if f[3] ~= "_text" then without[#without + 1] = f end
      twice[#twice + 1] = f
    end
    table.insert(twice, #twice, { twice[#twice - 1][1], "T", "_text" })
    for name, of in pairs { without = without, twice = twice } do
      vmlinux(name .. "/vmlinux", of)
      local err = symbolize("-d " .. name, true)
      assert.is_truthy(err:find("has no symbol _text, which tells where", 1, true), err)
      assert.equal(0, kernel_kit.naming(folder .. "/named.usprof", "[kernel.kallsyms]").named)
    end
  end)

  -- A kernel of a few functions, and a capture of every place of its code where it ran.
  local function small()
    helper.write(folder .. "/small.c", SOURCE)
    local _, err, status = helper.run("mkdir -p small && cc -g -O2 -ffreestanding -fno-pic"
      .. " -mcmodel=kernel -c small.c && ld -o small/elf small.o -Ttext=0xffffffff81000000"
      .. " --build-id -e entry --defsym=_text=0xffffffff81000000", folder)
    assert(status == 0, err)
    local all, slide, offsets = code(folder .. "/small/elf"), 0x1a400000, {}
    for i, address in ipairs(all) do offsets[i] = kernel_kit.u64(address:sub(3)) + slide end
    kernel_kit.write(folder .. "/small.usprof", { kind = KERNEL, path = "[kernel.kallsyms]",
      build_id = build_id(folder .. "/small/elf"), offsets = offsets,
      meta = { kernel_text = "0xffffffff9b400000", kernel_text_symbol = "_text" } })
    return all
  end

  it("gives the lines and inlined functions that addr2line does", function()
    local all = small()
    local _, said = kit.symbolize("-d small small.usprof", folder)
    local judge = kernel_kit.addr2line(folder .. "/small/elf", all)
    local deepest = 0
    for i, meaning in ipairs(kit.meanings(folder .. "/small.usprof")) do
      assert.same(judge[i], chain(meaning), said)
      deepest = math.max(deepest, #judge[i])
    end
    assert.is_true(#all > 20)
    assert.equal(3, deepest)
  end)

  it("asks debuginfod servers for it, and proves what they give", function()
    small()
    local answers = {}
    for _, file in ipairs { "small/elf", "small.o" } do
      local _, err = helper.run(([[
        rm -rf port cache
        python3 %s/spec/symbolize/server.py wrong %s . & server=$!
        for _ in $(seq 1200); do [ -e port ] && break; sleep 0.05; done
        DEBUGINFOD_CACHE_PATH=$PWD/cache DEBUGINFOD_URLS=http://127.0.0.1:$(cat port) \
          timeout -s KILL 60 %s/bin/microscope symbolize --debuginfod -o served.usprof small.usprof
        kill $server]]):format(helper.quote(helper.root), file, helper.quote(helper.stage)), folder)
      answers[file] = kernel_kit.naming(folder .. "/served.usprof", "[kernel.kallsyms]")
      answers[file].err = err
    end
    assert.equal(0, answers["small/elf"].unnamed, answers["small/elf"].err)
    assert.matches("/cache/%x+/debuginfo$", answers["small/elf"].image)
    assert.equal(0, answers["small.o"].named)
    assert.matches("neither a program nor a shared library", answers["small.o"].problem)
  end)

  it("needs the recording to say where the kernel was", function()
    for name, meta in pairs { none = {}, half = { kernel_text = "0xffffffff81000000" },
      odd = { kernel_text = "here", kernel_text_symbol = "_text" } } do
      kernel_kit.write(folder .. "/where.usprof", { kind = KERNEL, path = "[kernel.kallsyms]",
        build_id = ("ab"):rep(20), offsets = { kernel_kit.u64("ffffffff81000010") }, meta = meta })
      local _, err = kit.symbolize("where.usprof", folder)
      assert.is_truthy(err:find("does not tell where the kernel was", 1, true), name .. err)
    end
  end)
end)

describe("symbolize of a kernel module:", function()
  local folder, offsets, all
  local FILE = "/lib/modules/6.99.0/kernel/small/small.ko"

  local function shell(command)
    local _, err, status = helper.run(command, folder)
    assert(status == 0, err)
  end

  setup(function()
    folder = helper.folder()
    helper.write(folder .. "/small.c", SOURCE)
    shell("cc -g -O2 -ffunction-sections -ffreestanding -fno-pic -mcmodel=kernel -c small.c")
    helper.write(folder .. "/layout", "SECTIONS { .text 0 : { *(.text .text.*) } }\n")
    shell("ld -r --build-id=sha1 -T layout -o small.ko small.o && strip -g -o thin.ko small.ko")
    all, offsets = code(folder .. "/small.ko"), {}
    for i, address in ipairs(all) do offsets[i] = kernel_kit.u64(address:sub(3)) end
  end)
  teardown(function() helper.remove(folder) end)

  -- What symbolize makes of the module's code with a file at a path below the folder `root`.
  local function symbolize(path, root)
    kernel_kit.write(folder .. "/x.usprof", { kind = LOADED, path = path,
      build_id = build_id(folder .. "/small.ko"), offsets = offsets })
    local _, err, status = kit.symbolize("-d " .. root .. " x.usprof", folder)
    assert(status == 0, err)
    local chains = {}
    for i, meaning in ipairs(kit.meanings(folder .. "/x.usprof")) do chains[i] = chain(meaning) end
    return chains, kernel_kit.naming(folder .. "/x.usprof", path:match("[^/]*$")), err
  end

  it("has the lines and inlined functions that addr2line gives", function()
    shell("mkdir -p a && cp small.ko a/any")
    local chains = symbolize("[small]", "a")
    assert.same(kernel_kit.addr2line(folder .. "/small.ko", all, "-j .text"), chains)
    assert.is_true(#chains > 20)
  end)

  it("reads compressed debug information, and prefers it to what has none", function()
    shell("mkdir -p b/.build-id b" .. FILE:match("^.*/") .. " b/usr/lib/debug" .. FILE:match("^.*/")
      .. " && xz -c thin.ko >b" .. FILE .. ".xz"
      .. " && objcopy --compress-debug-sections=zlib small.ko b/usr/lib/debug" .. FILE)
    local chains, naming = symbolize(FILE .. ".xz", "b")
    assert.same(kernel_kit.addr2line(folder .. "/small.ko", all, "-j .text"), chains)
    assert.equal(folder .. "/b/usr/lib/debug" .. FILE, naming.image)
  end)

  it("reads compressed files", function()
    for suffix, packer in pairs { xz = "xz -c", zst = "zstd -q -c", gz = "gzip -c" } do
      local path = suffix .. FILE .. "." .. suffix
      shell(("mkdir -p %s && %s thin.ko >%s"):format(path:match("^.*/"), packer, path))
      local chains, naming = symbolize(FILE .. "." .. suffix, suffix)
      assert.equal(folder .. "/" .. path, naming.image)
      assert.same({ 0, "no debug information" }, { naming.unnamed, naming.problem })
      assert.matches("^outer|", chains[1][1])
      shell(("head -c 300 %s >cut && mv cut %s"):format(path, path))
      local _, _, err = symbolize(FILE .. "." .. suffix, suffix)
      assert.matches("could not be decompressed", err)
    end
  end)

  it("refuses other files, and places that are not proven", function()
    helper.write(folder .. "/before.s", '.section .text.first, "ax"\nnop\n')
    shell("as -o before.o before.s && mkdir -p c" .. FILE:match("^.*/") .. " d")
    helper.write(folder .. "/layout2", "SECTIONS { .text.first 0 : { *(.text.first) }"
      .. " .text 0 : { *(.text .text.outer .text.entry) } }\n")
    shell("ld -r --build-id=sha1 -T layout2 -o c" .. FILE .. " before.o small.o")
    local _, naming, err = symbolize(FILE, "c")
    assert.matches("has another build ID", err)
    assert.equal(0, naming.named)
    shell("objcopy --dump-section .note.gnu.build-id=id small.ko && objcopy --update-section"
      .. " .note.gnu.build-id=id c" .. FILE .. " d/moved.ko")
    _, naming, err = symbolize(FILE, "d")
    assert.matches("%.text is not the first of its code", err)
    assert.equal(0, naming.named)
  end)

  it("refuses code of a size that cannot be", function()
    shell("mkdir -p f" .. FILE:match("^.*/") .. " && strip --only-keep-debug -o debug.ko small.ko")
    local whole = helper.read(folder .. "/debug.ko")
    -- .text is there by its header alone: its sh_size.
    local sections = helper.run("readelf -hSW debug.ko", folder)
    local headers = tonumber(sections:match("Start of section headers: +(%d+)"))
    local at = headers + tonumber(sections:match("%[ *(%d+)%] %.text +NOBITS")) * 64 + 32
    helper.write(folder .. "/f" .. FILE, whole:sub(1, at) .. ("\255"):rep(8) .. whole:sub(at + 9))
    local _, naming, err = symbolize(FILE, "f")
    assert.matches("a section cannot be placed", err)
    assert.equal(0, naming.named)
  end)

  it("survives broken files", function()
    local whole = helper.read(folder .. "/small.ko")
    shell("mkdir -p e" .. FILE:match("^.*/"))
    local note = whole:find("GNU\0", 1, true)
    for at = 64, #whole - 64, math.floor(#whole / 60) do
      if math.abs(at - note) > 100 then
        helper.write(folder .. "/e" .. FILE, whole:sub(1, at) .. ("\255\1\128\7"):rep(12)
          .. whole:sub(at + 49))
        symbolize(FILE, "e")
      end
      helper.write(folder .. "/e" .. FILE, whole:sub(1, at))
      symbolize(FILE, "e")
    end
  end)
end)
