-- Profiles from before pprof's own format, and what `go tool pprof` says of the same files.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")

describe("convert from an old profile:", function()
  local folder
  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  -- The samples that pprof reads: "VALUE... @ ADDRESS..." each, sorted.
  local function judged(file)
    local raw = kit.pprof(folder, "-raw " .. file)
    local address, out = {}, {}
    for id, at in raw:match("\nLocations\n(.*)\nMappings"):gmatch("\n? *(%d+): (0x%x+)") do
      address[id] = at
    end
    for values, ids in raw:match("\nSamples:\n(.-)\nLocations"):gmatch("\n +([%d ]+):([%d ]*)") do
      local at = {}
      for id in ids:gmatch("%d+") do at[#at + 1] = address[id] end
      out[#out + 1] = values:gsub(" +", " ") .. " @ " .. table.concat(at, " ")
    end
    table.sort(out)
    return out
  end

  -- The same of a capture; `order` lists its sources as pprof has them.  An address is where the
  -- file was mapped.
  local function found(path, order, divided)
    return assert(capture.with(path, function(cap)
      local parent, location = cap:array("stacks", "parent"), cap:array("stacks", "location")
      local kind, offset = cap:array("locations", "kind"), cap:array("locations", "offset")
      local module, name = cap:array("locations", "module"), cap:array("sources", "name")
      local function address_of(l)
        if kind[l] ~= 5 then return offset[l] end
        for i = 0, cap:rows("mappings") - 1 do
          local from = cap:array("mappings", "file_offset")[i]
          if cap:array("mappings", "module")[i] == module[l] and offset[l] >= from
            and offset[l] - from < cap:array("mappings", "size")[i] then
            return cap:array("mappings", "address")[i] + offset[l] - from
          end
        end
      end
      local values, out, stack = {}, {}, cap:array("samples", "stack")
      for i = 0, cap:rows("samples") - 1 do
        local at, node = {}, stack[i]
        while parent[node] ~= capture.NONE do
          at[#at + 1] = ("0x%x"):format(tonumber(address_of(location[node])))
          node = parent[node]
        end
        local key = table.concat(at, " ") .. (divided and "" or i)
        -- Rows of one record follow one another.
        if not divided and i > 0 and stack[i] == stack[i - 1]
          and cap:array("samples", "source")[i] > cap:array("samples", "source")[i - 1] then
          key = values.last
        end
        values[key] = values[key] or { at = table.concat(at, " ") }
        values.last = key
        local source = cap:string(name[cap:array("samples", "source")[i]])
        values[key][source] = (values[key][source] or 0)
          + tonumber(cap:array("samples", "weight")[i])
      end
      values.last = nil
      for _, of in pairs(values) do
        local row = {}
        for i, source in ipairs(order) do
          local want, by = source:match("^(.-)/?(%d*)$")
          row[i] = ("%.0f"):format((of[want] or 0) / (tonumber(by) or 1))
        end
        out[#out + 1] = table.concat(row, " ") .. " @ " .. of.at
      end
      table.sort(out)
      return out
    end))
  end

  describe("a text of Go's", function()
    setup(function()
      local _, err, status = helper.run(("HOME=%s GO111MODULE=off go build -o old %s && ./old")
        :format(helper.quote(folder), helper.quote(helper.root .. "/fixtures/formats/old.go")),
        folder)
      assert(status == 0, err)
    end)

    for name, order in pairs {
      goroutine = { "goroutine" },
      mutex = { "contentions", "delay" }, block = { "contentions", "delay" },
      heap = { "alloc_objects", "alloc_space", "inuse_objects", "inuse_space" },
    } do
      it("has the stacks and values that pprof reads: " .. name, function()
        kit.convert(folder, name .. ".txt " .. name .. ".usprof")
        local want = judged(name .. ".txt")
        assert.is_true(#want > 0)
        assert.same(want, found(folder .. "/" .. name .. ".usprof", order))
      end)
    end

    it("has threads of whose making nothing is known", function()
      kit.convert(folder, "threadcreate.txt t.usprof")
      local count = helper.read(folder .. "/threadcreate.txt"):match("total (%d+)")
      assert.equal(tonumber(count), (kit.total(kit.weights(folder .. "/t.usprof").threadcreate)))
    end)

    it("has the functions and lines that stand behind the stacks", function()
      kit.convert(folder, "heap.txt heap.usprof")
      local weights = kit.weights(folder .. "/heap.usprof").alloc_space
      local seen
      for stack in pairs(weights) do
        seen = seen or stack:match("runtime%.main;main%.main;main%.alloc$")
      end
      assert.is_truthy(seen)
      assert(capture.with(folder .. "/heap.usprof", function(cap)
        local of = {}
        for i = 0, cap:rows("lines") - 1 do
          local fn = cap:array("lines", "function")[i]
          local file = cap:array("lines", "file")[i]
          of[cap:string(cap:array("functions", "name")[fn])] = cap:string(
            cap:array("files", "path")[file]) .. ":" .. cap:array("lines", "line")[i]
        end
        assert.matches("/old.go:20$", of["main.alloc"])
        return assert.equal("inuse_space", cap:meta().default_source)
      end))
    end)
  end)

  it("a CPU profile of gperftools has the stacks and times that pprof reads", function()
    local _, err, status = helper.run(("gcc -O1 -fno-omit-frame-pointer %s -o app -lprofiler"
      .. " && CPUPROFILE_FREQUENCY=250 ./app"):format(
      helper.quote(helper.root .. "/fixtures/formats/gperftools.c")), folder)
    assert(status == 0, err)
    kit.convert(folder, "cpu.prof cpu.usprof")
    local want = judged("cpu.prof")
    assert.is_true(#want > 1)
    assert.same(want, found(folder .. "/cpu.usprof", { "cpu/4000000", "cpu" }, true))
    kit.convert(folder, "cpu.usprof cpu.pb")
    assert.same(want, judged("cpu.pb"))
  end)

  -- Words of 8 or 4 bytes, little-endian.
  local function words(size, ...)
    local out = {}
    for i, value in ipairs { ... } do
      local bytes = {}
      for k = 1, size do
        bytes[k] = string.char(value % 256)
        value = math.floor(value / 256)
      end
      out[i] = table.concat(bytes)
    end
    return table.concat(out)
  end

  local MAPS = "build=/opt/app\n400000-401000 r--p 00000000 08:01 1 $build\n"
    .. "  401000-402000 r-xp 00001000 08:01 1  $build\n"
    .. "7f0000000000-7f0000001000 r-xp 00000000 00:00 0 \n"
    .. "7fff00000000-7fff00001000 r-xp 00000000 00:00 0  [vdso]\nodd\n"

  it("reads words of 8 and of 4 bytes, and each kind of mapping", function()
    for _, size in ipairs { 8, 4 } do
      local stack = size == 8 and { 0x401010, 0x7f0000000011, 0x7fff00000021, 0x31 }
        or { 0x401010, 0x401021, 0x401031, 0x31 }
      helper.write(folder .. "/in", words(size, 0, 3, 0, 10000, 0, 5, 4, unpack(stack))
        .. words(size, 0, 1, 0) .. MAPS)
      kit.convert(folder, "in in.usprof")
      assert(capture.with(folder .. "/in.usprof", function(cap)
        local out = {}
        for l = 0, cap:rows("locations") - 1 do
          local m = cap:array("locations", "module")[l]
          out[l + 1] = ("%s %s %x"):format(capture.enum("mic_location",
            cap:array("locations", "kind")[l]), m ~= capture.NONE
            and cap:string(cap:array("modules", "path")[m]) or "-",
            tonumber(cap:array("locations", "offset")[l]))
        end
        assert.same(size == 8 and { "unmapped - 30", "file [vdso] 20", "anon - 7f0000000010",
          "file /opt/app 1010" } or { "unmapped - 30", "file /opt/app 1030",
          "file /opt/app 1020", "file /opt/app 1010" }, out)
        assert.equal(50000000ULL, cap:array("samples", "weight")[0])
        return assert.equal(10000000ULL, cap:array("sources", "period")[0])
      end))
    end
  end)

  it("gives what is there of a file that ends early, and says from where", function()
    local text = words(8, 0, 3, 0, 10000, 0, 5, 2, 16, 32, 1, 1, 48)
    for cut = 73, #text - 1 do
      helper.write(folder .. "/cut", text:sub(1, cut))
      local said = kit.convert(folder, "cut cut.usprof")
      assert.equal("microscope convert: left out of cut: all from byte 72 on: it ends within a "
        .. "record\n", said)
      assert.equal(50000000, (kit.total(kit.weights(folder .. "/cut.usprof").cpu)))
    end
  end)

  it("refuses what makes no profile, with the byte or the line", function()
    for text, want in pairs {
      [words(8, 0, 3, 0, 1, 0, 1, 0)] = "in: byte 56: a stack of no length",
      [words(8, 0, 3, 0, 1, 0, 1, 2 ^ 40)] = "in: byte 56: a stack of no length",
      [words(8, 0, 3, 0, 1)] = "line 1: no head",
      ["heap profile: 1: 2 [3: 4] @ other\n"] = "in: line 1: no head of a heap",
      [""] = "in: line 1: no head of a heap",
    } do
      helper.write(folder .. "/in", text)
      assert.is_truthy(kit.refused(folder, "--from pprof-legacy in out.usprof"):find(want, 1, true),
        want)
    end
    helper.write(folder .. "/in", "heap profile: 1: 2 [1: 2] @ heapprofile\n1: 2 [1: 2] @ 0x10\n"
      .. "1: 2 [1: 2] @ x\nodd\nMAPPED_LIBRARIES:\n" .. MAPS)
    assert.matches("2 lines that are no stack: line 3: no address behind \"@\"",
      kit.convert(folder, "in out.usprof"))
    -- A sample each 10^15 bytes, of 100,000 allocations of a byte: they stand for some 10^20.
    helper.write(folder .. "/in", "heap profile: 1: 2 [1: 2] @ heap_v2/1000000000000000\n"
      .. "100000: 100000 [1: 1] @ 0x10\n1: 1 [1: 1] @ 0x10\nMAPPED_LIBRARIES:\n" .. MAPS)
    assert.matches("1 line that is no stack: line 2: what it stands for is out of range",
      kit.convert(folder, "in out.usprof"))
  end)
end)
