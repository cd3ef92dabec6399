--- pprof-legacy: what came before pprof's own format: gperftools' CPU and heap profiles, and the
-- texts of Go's debug=1.

local ffi = require("ffi")

local input = require("microscope.input")

local PARTS = {
  { "zero_records", "%d stacks, all of whose values are 0" },
  { "labels", "the labels of %d stacks" },
}

local function read(path, ctx)
  local result, why = input.decode(path, ctx, "legacy")
  if not result then return nil, why end
  local bad, cut = tonumber(result.bad_lines), tonumber(result.cut_offset)
  if bad > 0 then
    ctx.lost("%d line%s that %s no stack: line %d: %s", bad, bad == 1 and "" or "s",
      bad == 1 and "is" or "are", tonumber(result.first_bad), ffi.string(result.why))
  end
  if cut > 0 then ctx.lost("all from byte %d on: it ends within a record", cut) end
  input.tell(result, PARTS, ctx.lost)
  return true
end

-- The first words of a CPU profile, of this size: 0, words that follow, version 0, a period.
local function is_cpu(head, word)
  local zero = ("\0"):rep(word)
  return head:sub(1, word) == zero and head:sub(2 * word + 1, 3 * word) == zero
    and head:byte(word + 1) == 3 and head:sub(word + 2, 2 * word) == zero:sub(2)
    and #head >= 5 * word
end

local function detect(head)
  return is_cpu(head, 8) or is_cpu(head, 4) or head:find("^heap profile: *%d") ~= nil
    or head:find("^[%w_]+ profile: total %d+%s*\n") ~= nil or head:find("^%-%-%- contention") ~= nil
    or head:find("^%-%-%- mutex") ~= nil
end

return {
  name = "pprof-legacy",
  summary = "gperftools' CPU and heap profiles, and the texts of Go's debug=1.",
  extensions = { ".prof", ".heap" },
  detect = detect,
  read = read,
}
