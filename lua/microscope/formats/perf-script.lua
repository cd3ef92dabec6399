--- perf-script: what `perf script` prints.

local ffi = require("ffi")

local input = require("microscope.input")

local PARTS = {
  { "records", "%d lines of records that are no samples" },
  { "fields", "what the lines of %d samples tell beside" },
  { "addresses", "the addresses of %d frames" },
  { "earlier", "the times of %d samples from before the first one" },
}

local function tell(result, ctx)
  local bad = tonumber(result.bad_lines)
  if bad > 0 then
    ctx.lost("%d line%s of %d: line %d: %s", bad, bad == 1 and "" or "s", tonumber(result.lines),
      tonumber(result.first_bad), ffi.string(result.why))
  end
  input.tell(result, PARTS, ctx.lost)
end

local function read(path, ctx)
  local result, why = input.decode(path, ctx, "perfscript")
  if not result then return nil, why end
  tell(result, ctx)
  return true
end

-- An early line with a thread's id and a time: "work 12 [003] 4.567890:".
local function detect(head)
  local lines = 0
  for line in head:gmatch("([^\r\n]+)\r?\n?") do
    if line:find("[%z\1-\8\14-\31]") then return false end
    if line:sub(1, 1) ~= "#" then
      if line:match("%S%s+%d+%s+%d+%.%d+:") or line:match("%S%s+%d+/%d+%s+%d+%.%d+:")
        or line:match("%S%s+[%d/]+%s+%[%d+%]%s+%d+%.%d+:") then
        return true
      end
      lines = lines + 1
      if lines == 8 then return false end
    end
  end
  return false
end

return {
  name = "perf-script",
  summary = "The text that perf script prints.",
  extensions = { ".perf", ".txt" },
  detect = detect,
  read = read,
}
