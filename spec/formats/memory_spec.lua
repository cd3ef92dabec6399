-- The memory of a conversion: at most twice what the rows of its capture take, whatever the file.
--
-- What the rows take is the capture's info().memory_bytes: each column's values, as they are when
-- it is open.  A process takes more before the first row (its libraries and interpreter): what a
-- small file of the format takes at its most; and a block of rows of each column, with what packs
-- it, waits to be written: BLOCKS.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.formats.kit")
local large = require("spec.support.large")

local BLOCKS = 8 * 2 ^ 20 -- 65,536 rows of 100 bytes, and zstd's and zlib's own

-- Files that are read: a kind of large.lua, how many of what it counts, and their format.
local READ = {
  { "pprof deep", 3000000, "pprof" },
  { "pprof twins", 3000000, "pprof" },
  { "pprof places", 400000, "pprof" },
  { "pprof labels", 800000, "pprof" },
  { "pprof lines", 1000000, "pprof" },
  { "pprof strings", 2000000, "pprof" },
  { "pprof string", 30000000, "pprof" },
  { "pprof bytes", 30000000, "pprof" },
  { "pprof names", 2000, "pprof" },
  { "pprof samples", 300000, "pprof" },
  { "folded names", 300000, "folded" },
  { "folded stacks", 4000000, "folded" },
  { "folded deep", 3000000, "folded" },
  { "perf-script", 200000, "perf-script" },
  { "perf-script deep", 6000, "perf-script" },
  { "perf-script threads", 200000, "perf-script" },
  { "perf-script names", 1000, "perf-script" },
  { "perf samples", 400000, "perf" },
  { "perf places", 300000, "perf" },
  { "perf maps", 150000, "perf" },
  { "perf processes", 120000, "perf" },
  { "legacy cpu", 300000, "pprof-legacy" },
  { "legacy deep", 8000, "pprof-legacy" },
  { "legacy heap", 130000, "pprof-legacy" },
  { "legacy maps", 300000, "pprof-legacy" },
  { "otlp attributes", 200000, "otlp" },
  { "otlp times", 1000000, "otlp" },
  { "otlp stacks", 300000, "otlp" },
  { "otlp names", 200000, "otlp" },
  { "chrome complete", 800000, "chrome" },
  { "chrome pairs", 1600000, "chrome" },
  { "chrome unsorted", 500000, "chrome" },
  { "chrome ids", 500000, "chrome" },
  { "chrome one id", 500000, "chrome" },
  { "chrome names", 400000, "chrome" },
  { "chrome threads", 300000, "chrome" },
  { "chrome arguments", 600000, "chrome" },
  { "chrome samples", 400000, "chrome" },
  { "speedscope sampled", 300000, "speedscope" },
  { "speedscope evented", 1200000, "speedscope" },
  { "speedscope profiles", 300000, "speedscope" },
  { "speedscope stacks", 260000, "speedscope" },
  { "gecko samples", 500000, "gecko" },
  { "gecko stacks", 400000, "gecko" },
  { "gecko frames", 150000, "gecko" },
  { "gecko markers", 600000, "gecko" },
  { "gecko threads", 100000, "gecko" },
  { "firefox samples", 400000, "firefox" },
  { "firefox stacks", 400000, "firefox" },
  { "firefox frames", 200000, "firefox" },
  { "firefox markers", 500000, "firefox" },
  { "firefox threads", 100000, "firefox" },
}

-- Captures that are written, by name: made from a file of READ, or generated.
local GENERATED = {
  samples = { samples = 700000, stacks = 20000, labels = 1000, labelled = 2, threads = 64 },
  stacks = { samples = 300000, stacks = 200000, labels = 100000, labelled = 1, threads = 64 },
  zones = { samples = 1000, zones = 800000 },
  threads = { samples = 100000, threads = 100000, stacks = 1000 },
}

-- Formats that are written, each with the captures that it is tried with.
local WRITTEN = {
  pprof = { "samples", "stacks", "speedscope profiles", "pprof deep", "pprof lines",
    "pprof string" },
  otlp = { "samples", "zones", "speedscope profiles", "pprof lines", "pprof string" },
  chrome = { "stacks", "zones", "chrome threads", "pprof lines", "folded names", "pprof bytes",
    "pprof names" },
  speedscope = { "samples", "speedscope profiles", "pprof deep", "folded names", "pprof bytes",
    "pprof names" },
  firefox = { "stacks", "zones", "threads", "speedscope profiles", "perf places", "legacy cpu",
    "pprof deep", "pprof lines", "pprof bytes", "pprof names" },
  folded = { "samples", "stacks", "pprof deep", "pprof twins", "pprof places", "pprof lines",
    "pprof samples", "pprof string", "folded names", "folded stacks" },
}

describe("convert holds at most twice its tables:", function()
  local folder

  setup(function()
    folder = helper.folder()
    local _, err, status = helper.run(("cc -O1 -o cost %s"):format(
      helper.quote(helper.root .. "/bench/cost.c")), folder)
    assert(status == 0, err)
  end)
  teardown(function() helper.remove(folder) end)

  -- The most memory of a conversion, in bytes.
  local function peak(arguments)
    local _, err, status = helper.run(("./cost cost.txt %s/bin/microscope convert %s"):format(
      helper.quote(helper.stage), arguments), folder)
    local kib, code = helper.read(folder .. "/cost.txt"):match("^%d+ %d+ (%d+) (%d+)")
    assert(status == 0 and code == "0", arguments .. ": " .. err)
    return tonumber(kib) * 1024
  end

  local function tables(name)
    return assert(capture.with(folder .. "/" .. name, function(cap)
      return tonumber(cap:info().memory_bytes)
    end))
  end

  local function check(most, least, rows)
    local used = most - least - BLOCKS
    local told = ("%.1f MB for tables of %.1f"):format(used / 1e6, rows / 1e6)
    assert(rows > 10e6, "the tables are too small to tell: " .. told)
    assert(used <= 2 * rows, told)
  end

  for _, case in ipairs(READ) do
    local kind, count, format = case[1], case[2], case[3]
    it("reading " .. kind, function()
      local read = "--from " .. format .. " in out.usprof"
      large.write(kind, folder .. "/in", 1000)
      local least = peak(read)
      large.write(kind, folder .. "/in", count)
      local most = peak(read)
      check(most, least, tables("out.usprof"))
      helper.run(("mv out.usprof %s"):format(helper.quote(kind .. ".usprof")), folder)
    end)
  end

  local function made(name)
    local path = folder .. "/" .. name .. ".usprof"
    local options = GENERATED[name]
    if options and not io.open(path) then
      options.path = path
      assert(capture.generate(options))
    end
    return helper.quote(name .. ".usprof")
  end

  for format, names in pairs(WRITTEN) do
    for _, name in ipairs(names) do
      it(("writing %s of %s"):format(format, name), function()
        if not io.open(folder .. "/small.usprof") then
          assert(capture.generate { path = folder .. "/small.usprof", samples = 100, stacks = 10,
            functions = 20 })
        end
        local write = "--to " .. format .. " %s out"
        local least = peak(write:format("small.usprof"))
        local most = peak(write:format(made(name)))
        check(most, least, tables(name .. ".usprof"))
      end)
    end
  end

  for _, format in ipairs { "firefox", "otlp" } do
    it("reading " .. format .. ", as it is written", function()
      made("samples")
      kit.convert(folder, "--to " .. format .. " samples.usprof big")
      kit.convert(folder, "--to " .. format .. " small.usprof small")
      local least = peak("--from " .. format .. " small out.usprof")
      local most = peak("--from " .. format .. " big out.usprof")
      check(most, least, tables("out.usprof"))
    end)
  end

  it("reading perf.data of copies of stacks", function()
    if not kit.has("perf") then return pending("perf is missing: it records") end
    local _, err, status = helper.run(("cc -O2 -g -o deep %s -lpthread -lm"):format(
      helper.quote(helper.root .. "/fixtures/bench/deep.c")), folder)
    assert(status == 0, err)
    local record = "perf record -q -F %d -e cpu-clock --call-graph dwarf,65528 -o %s ./deep 40 "
      .. "%d"
    for name, options in pairs { ["small.data"] = { 99, 2000 }, ["big.data"] = { 2999, 40000 } } do
      _, err, status = helper.run(record:format(options[1], name, options[2]), folder)
      if status ~= 0 then return pending("perf may not record: " .. err:match("[^\n]*")) end
    end
    local least = peak("--from perf small.data out.usprof")
    local most = peak("--from perf big.data out.usprof")
    -- Its tables are next to nothing.  What perf wrote between two ends of rounds waits: the more,
    -- the busier the machine is.  The file is far larger.
    local size = tonumber((helper.run("stat -c %s big.data", folder)))
    assert(size > 12 * BLOCKS, "the recording is too small to tell: " .. size)
    assert(most - least <= 6 * BLOCKS, ("%.1f MB"):format((most - least) / 1e6))
    -- Of a folder's compressed files all wait for the last.
    _, err, status = helper.run(record:format(2999, "big --threads=core -z", 40000), folder)
    assert(status == 0, err)
    most = peak("big out.usprof")
    assert(most - least <= 6 * BLOCKS, ("a folder: %.1f MB"):format((most - least) / 1e6))
  end)
end)
