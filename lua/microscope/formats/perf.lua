--- perf: perf.data, what `perf record` writes.

local ffi = require("ffi")

local input = require("microscope.input")

local texts_type = ffi.typeof("const char *[?]")

local PARTS = {
  { "fields", "the fields of %d tracepoint samples" },
  { "branches", "the branch stacks of %d samples" },
  { "calls", "the callers outside the kernel of %d samples, whose branch stacks are empty"
    .. " (--call-graph lbr)" },
  { "deferred", "the callers outside the kernel of %d samples, which the kernel told later"
    .. " (PERF_RECORD_CALLCHAIN_DEFERRED)" },
  { "reads", "%d counts of events that the file does not tell (PERF_SAMPLE_READ)" },
  { "extras", "what %d samples hold beside their period (PERF_SAMPLE_ADDR, _WEIGHT, _DATA_SRC,"
    .. " _TRANSACTION, _REGS_INTR, _PHYS_ADDR, _AUX, _CGROUP or sizes of pages)" },
  { "guests", "the stacks of %d samples in virtual machines" },
  { "others", "%d records of context switches, cgroups, BPF programs and the like" },
}

local function tell(result, ctx)
  local bad = tonumber(result.bad_records)
  if bad > 0 then
    ctx.lost("%d record%s that do%s not hold together: the first is record %d at byte %d", bad,
      bad == 1 and "" or "s", bad == 1 and "es" or "", tonumber(result.first_bad),
      tonumber(result.first_bad_offset))
  end
  if result.cut ~= nil then
    ctx.lost("all from record %d at byte %d on: %s", tonumber(result.cut_record),
      tonumber(result.cut_offset), ffi.string(result.cut))
  end
  input.tell(result, PARTS, ctx.lost)
end

local function read(path, ctx)
  local folders = texts_type(#ctx.debug_dirs + 1)
  for i, folder in ipairs(ctx.debug_dirs) do folders[i - 1] = folder end
  local result, why = input.decode(path, ctx, "perfdata", folders)
  if not result then return nil, why end
  tell(result, ctx)
  return true
end

return {
  name = "perf",
  summary = "perf.data, what perf record writes.",
  extensions = { ".data" },
  opens_images = true,
  detect = function(head)
    local magic = head:sub(1, 8)
    return magic == "PERFILE2" or magic == "2ELIFREP" or magic == "PERFFILE"
  end,
  read = read,
}
