--- folded: a line a stack, as flame graph tools read and write them.

local ffi = require("ffi")

local core = require("microscope.core")
local input = require("microscope.input")
local output = require("microscope.output")
local summary_query = require("microscope.query.summary")

local C = core.C

local count_type = ffi.typeof("uint64_t[1]")

local function read(path, ctx)
  local result, why = input.decode(path, ctx, "folded")
  if not result then return nil, why end
  local bad = tonumber(result.bad_lines)
  if bad > 0 then
    ctx.lost("%d line%s of %d %s no stack: line %d: %s", bad, bad == 1 and "" or "s",
      tonumber(result.lines), bad == 1 and "is" or "are", tonumber(result.first_bad),
      ffi.string(result.why))
  end
  return true
end

local function write(cap, path, ctx)
  local source = summary_query.cpu_source_id(cap)
  if not source then ctx.fail("it has no samples, so no stacks to fold") end
  return output.with(path, nil, function(out)
    local err, changed = core.new_error(), count_type()
    local ok, why = core.check(C.mic_folded_write(cap:handle(), source, out:handle(), changed,
      err), err)
    if not ok then return nil, why end
    if changed[0] > 0 then
      ctx.lost("\";\" and line ends in %d names, which are written as \":\" and blanks",
        tonumber(changed[0]))
    end
    return true
  end)
end

local function is_stack(line)
  return not line:find("[%z\1-\8\14-\31]") and line:match("^.*%S[ \t]+%d+[ \t]*$") ~= nil
end

-- A few lines that all are stacks: "frame;frame 12".  The last of a head may be cut, and counts
-- only when it is all there is.
local function detect(head)
  local lines, at = 0, 1
  while lines < 8 do
    local stop = head:find("\n", at, true)
    if not stop then break end
    local line = head:sub(at, stop - 1):gsub("\r$", "")
    if line ~= "" then
      if not is_stack(line) then return false end
      lines = lines + 1
    end
    at = stop + 1
  end
  return lines > 0 or is_stack(head:sub(at))
end

return {
  name = "folded",
  summary = "Folded stacks: frames separated by \";\", a blank, a count.",
  extensions = { ".folded", ".collapsed" },
  keeps = { "functions", "ends", "bytes" },
  detect = detect,
  read = read,
  write = write,
}
