--- otlp: OpenTelemetry profiles, a ProfilesData message of the development version of its protocol.

local core = require("microscope.core")
local output = require("microscope.output")

local C = core.C

return {
  name = "otlp",
  summary = "OpenTelemetry profiles (profiles/v1development).",
  extensions = { ".otlp" },
  keeps = {
    "times", "sources", "threads", "processes", "functions", "linkage_names", "lines", "inlines",
    "modules", "addresses", "ends", "labels", "clocks",
  },
  write = function(cap, path)
    return output.with(path, nil, function(out)
      local err = core.new_error()
      return core.check(C.mic_otlp_write(cap:handle(), out:handle(), err), err)
    end)
  end,
}
