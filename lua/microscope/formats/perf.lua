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

-- "record 3 at byte 96", and of which file of a folder.
local function place(number, offset, file)
  file = ffi.string(file)
  return ("record %d at byte %d%s"):format(tonumber(number), tonumber(offset),
    file == "" and "" or " of " .. file)
end

-- Of a folder's files those that are not there, and those that can hold nothing.
local function tell_files(result, ctx)
  if result.missing_files > 0 then
    ctx.lost("%d file%s of its folder, data.%d the first", tonumber(result.missing_files),
      result.missing_files == 1 and "" or "s", tonumber(result.first_missing))
  end
  if result.left_files > 0 then
    ctx.lost("%d file%s of its folder that %s no regular file%s, %s the first",
      tonumber(result.left_files), result.left_files == 1 and "" or "s",
      result.left_files == 1 and "is" or "are", result.left_files == 1 and "" or "s",
      ffi.string(result.left_file))
  end
end

local function tell(result, ctx)
  local bad = tonumber(result.bad_records)
  if bad > 0 then
    ctx.lost("%d record%s that do%s not hold together: the first is %s", bad,
      bad == 1 and "" or "s", bad == 1 and "es" or "",
      place(result.first_bad, result.first_bad_offset, result.first_bad_file))
  end
  if result.cut ~= nil then
    ctx.lost("all from %s on: %s", place(result.cut_record, result.cut_offset, result.cut_file),
      ffi.string(result.cut))
  end
  tell_files(result, ctx)
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
