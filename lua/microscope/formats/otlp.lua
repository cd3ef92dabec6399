--- otlp: OpenTelemetry profiles, a ProfilesData message of the development version of its protocol.

local core = require("microscope.core")
local input = require("microscope.input")
local losses = require("microscope.losses")
local output = require("microscope.output")

local C = core.C

local LEFT_OUT = {
  { "links", "links of %d samples to spans" },
  { "attributes", "%d attributes that are no text and no number" },
  { "payloads", "%d originals of other formats" },
}
local NOTES = { { "early", "%d times before the first profile's start are taken as that" } }

local function read(path, ctx)
  local result, why = input.decode(path, ctx, "otlp")
  if not result then return nil, why end
  input.tell(result, LEFT_OUT, ctx.lost)
  input.tell(result, NOTES, ctx.note)
  return true
end

-- The fields of a message that begin before `past`: a list of {number, kind, value, where it ends};
-- nil for what is no message.
local function fields_of(text, at, past)
  local out = {}
  while at < past do
    local tag, value
    tag, at = input.varint(text, at)
    if not tag then return out end
    local number, kind = math.floor(tag / 8), tag % 8
    if number == 0 or kind ~= 0 and kind ~= 1 and kind ~= 2 then return nil end
    if kind == 1 then
      at = at + 8
    else
      value, at = input.varint(text, at)
      if not value then return out end
    end
    out[#out + 1] = { number, kind, value, at }
    if kind == 2 then at = at + value end
  end
  return out
end

-- Whether all fields are messages of these numbers, and there is one.
local function are(fields, numbers)
  for _, field in ipairs(fields or {}) do
    if field[2] ~= 2 or not numbers[field[1]] then return false end
  end
  return fields ~= nil and #fields > 0
end

-- Messages of resources, whose first is one of scopes or of a resource, and a dictionary, whose
-- entries are messages.  pprof's own fields 1 and 2 have numbers in them.
local function detect(head)
  local fields = fields_of(head, 1, #head + 1)
  if not are(fields, { true, true }) then return false end
  local first = fields[1]
  local inner = fields_of(head, first[4], math.min(first[4] + first[3], #head + 1))
  if first[1] == 2 then
    return are(inner, { true, true, true, true, true, true, true })
  end
  return are(inner, { true, true, true })
end

return {
  name = "otlp",
  summary = "OpenTelemetry profiles (profiles/v1development).",
  extensions = { ".otlp" },
  keeps = {
    "sources", "quantities", "ids", "processes", "functions", "linkage_names", "lines", "inlines",
    "modules", "ends", "labels", "clocks",
    threads = losses.threads_differ,
    addresses = function(cap)
      return losses.has_only(cap, { "native", "signal", "anon", "unmapped",
        "named" })
    end,
    -- Times are those of day.
    times = function(cap)
      return cap:rows("clocks") > 0 and cap:array("clocks", "realtime_ns")[0] > 0
    end,
  },
  detect = detect,
  read = read,
  write = function(cap, path)
    return output.with(path, nil, function(out)
      local err = core.new_error()
      return core.check(C.mic_otlp_write(cap:handle(), out:handle(), err), err)
    end)
  end,
}
