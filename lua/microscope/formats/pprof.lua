--- pprof: profiles as `go tool pprof` and its kin read and write them.

local core = require("microscope.core")
local output = require("microscope.output")

local C = core.C

local function write(cap, path)
  -- The format asks for gzip; ".pb" alone is how a plain one is named.
  local compression = output.compression_of(path)
  if compression == "plain" and not path:match("%.pb$") then compression = "gzip" end
  return output.with(path, compression, function(out)
    local err = core.new_error()
    return core.check(C.mic_pprof_write(cap:handle(), out:handle(), err), err)
  end)
end

return {
  name = "pprof",
  summary = "pprof profiles, as go tool pprof reads them.",
  extensions = { ".pb", ".pprof" },
  keeps = {
    "sources", "threads", "processes", "functions", "linkage_names", "lines", "inlines", "modules",
    "addresses", "ends", "labels", "clocks", "facts",
  },
  write = write,
}
