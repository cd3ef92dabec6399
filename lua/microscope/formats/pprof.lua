--- pprof: profiles as `go tool pprof` and its kin read and write them.

local core = require("microscope.core")
local input = require("microscope.input")
local losses = require("microscope.losses")
local output = require("microscope.output")

local C = core.C


local function read(path, ctx)
  local result, why = input.decode(path, ctx, "pprof")
  if not result then return nil, why end
  local zero = tonumber(result.zero_samples)
  if zero > 0 then ctx.lost("%d of %d samples, all of whose values are 0", zero,
    tonumber(result.samples)) end
  return true
end

local function write(cap, path)
  -- The format asks for gzip; ".pb" alone is how a plain one is named.
  local compression = output.compression_of(path)
  if compression == "plain" and not path:match("%.pb$") then compression = "gzip" end
  return output.with(path, compression, function(out)
    local err = core.new_error()
    return core.check(C.mic_pprof_write(cap:handle(), out:handle(), err), err)
  end)
end

-- Wire kinds of a profile's fields: 2 messages and texts, 0 numbers.
local KINDS = { 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 2, 0, 2, 0, 0 }
local COMMENT = 13 -- may be packed or not

-- Whether all fields that begin within the head are a profile's.
local function detect(head)
  local at, fields = 1, 0
  while at <= #head do
    local tag, next_at = input.varint(head, at)
    if not tag then break end
    local number, kind = math.floor(tag / 8), tag % 8
    if kind ~= KINDS[number] and not (number == COMMENT and kind == 0) then return false end
    local value
    value, next_at = input.varint(head, next_at)
    if not value then break end
    -- A short text that happens to begin with the first field's tag is not one.
    if fields == 0 and number == 1 and value > 64 then return false end
    at = next_at + (kind == 2 and value or 0)
    fields = fields + 1
  end
  return fields > 1
end

return {
  name = "pprof",
  summary = "pprof profiles, as go tool pprof reads them.",
  extensions = { ".pb", ".pprof" },
  keeps = {
    "sources", "quantities", "ids", "processes", "functions", "linkage_names", "lines",
    "inlines", "modules", "ends", "labels", "clocks", "facts", "bytes",
    whole = losses.ends_plainly,
    threads = losses.threads_differ,
    addresses = function(cap)
      return losses.has_only(cap, { "native", "signal", "anon", "unmapped", "named", "file" })
    end,
    -- Where code is known by its place in a file the mappings say where that was.
    mappings = function(cap)
      return not losses.has_only(cap, { "native", "signal", "anon", "unmapped", "named",
        "relative" })
    end,
  },
  detect = detect,
  read = read,
  write = write,
}
