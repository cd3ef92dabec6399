--- perf_kit.lua - perf.data files beside what `perf script` says of them, sample by sample.

local bit = require("bit")
local ffi = require("ffi")

local capture = require("microscope.capture")
local helper = require("spec.helper")

local M = {}

local SIGNAL, UNMAPPED = 1, 3 -- mic_location
local OUTERMOST, ENTRY, UNAVAILABLE = 1, 2, 16 -- mic_end

--- The samples that perf script sees: {tid, time (digits), period, frames}, frames, the innermost
-- first, {ip (hex), name and offset in it (nil: unknown), image}.
function M.script(folder, file)
  local out, err, status = helper.run(("perf script -i %s --ns --no-inline --no-demangle"
    .. " -F tid,time,event,period,ip,sym,symoff,dso"):format(file), folder)
  assert(status == 0, err)
  local samples, last = {}, nil
  for line in out:gmatch("[^\n]+") do
    local tid, seconds, ns, period = line:match("^%s*(%-?%d+)%s+(%d+)%.(%d+):%s+(%d+)%s")
    if tid then
      -- A thread that is ending has no id any more: -1.
      last = { tid = tonumber(tid) % 2 ^ 32, time = seconds .. ns, period = tonumber(period),
        frames = {} }
      samples[#samples + 1] = last
    else
      local ip, what, image = line:match("^%s+(%x+) (.*) %((.-)%)$")
      if ip then
        local name, offset = what:match("^(.*)%+0x(%x+)$")
        table.insert(last.frames, { ip = ip, name = name, image = image,
          offset = offset and tonumber(offset, 16) })
      end
    end
  end
  return samples
end

local function hex(value) return (bit.tohex(value):gsub("^0+(%x)", "%1")) end

local function fact(cap, key)
  for i = 0, cap:rows("meta") - 1 do
    if cap:string(cap:array("meta", "key")[i]) == key then
      return cap:string(cap:array("meta", "value")[i])
    end
  end
end

-- "1264807000" of a u64, all digits.
local function digits(value) return (tostring(value):gsub("ULL$", "")) end

-- The segments of an ELF file: perf shows places in files, captures the addresses of the ELF file.
local segments = setmetatable({}, { __index = function(known, path)
  local out = helper.run("readelf -lW " .. helper.quote(path))
  local list = {}
  for offset, address, size in out:gmatch("LOAD +0x(%x+) 0x(%x+) 0x%x+ 0x(%x+)") do
    list[#list + 1] = { tonumber(offset, 16), tonumber(address, 16), tonumber(size, 16) }
  end
  known[path] = list
  return list
end })

local function place_in_file(path, address)
  for _, segment in ipairs(segments[path]) do
    local into = tonumber(address) - segment[2]
    if into >= 0 and into < segment[3] then return segment[1] + into + 0ULL end
  end
  return address
end

-- The name of the function that holds each location's code, by location.
local function names_of(cap)
  local out, location = {}, cap:array("lines", "location")
  local fn, name = cap:array("lines", "function"), cap:array("functions", "name")
  for i = 0, cap:rows("lines") - 1 do out[location[i]] = cap:string(name[fn[i]]) end
  return out
end

local function frames(cap, node, names)
  local parent, location = cap:array("stacks", "parent"), cap:array("stacks", "location")
  local kind, offset = cap:array("locations", "kind"), cap:array("locations", "offset")
  local module, paths = cap:array("locations", "module"), cap:array("modules", "path")
  local out = {}
  while parent[node] ~= capture.NONE do
    local l = location[node]
    local at, path = offset[l], module[l] ~= capture.NONE and cap:string(paths[module[l]]) or ""
    if kind[l] <= SIGNAL and path:sub(1, 1) == "/" then at = place_in_file(path, at) end
    out[#out + 1] = { offset = at, kind = kind[l], path = path, ip = hex(at), name = names[l] }
    node = parent[node]
  end
  return out, cap:array("stacks", "end")[node]
end

--- The samples of a capture made of a perf.data, in the same form, with frames and end.
function M.ours(path)
  return assert(capture.with(path, function(cap)
    local start = ffi.new("uint64_t", 0)
    for digit in fact(cap, "perf_start_ns"):gmatch("%d") do start = start * 10 + tonumber(digit) end
    local tid, out = cap:array("threads", "tid"), {}
    local time, thread = cap:array("samples", "time_ns"), cap:array("samples", "thread")
    local stack, weight = cap:array("samples", "stack"), cap:array("samples", "weight")
    local names = names_of(cap)
    for i = 0, cap:rows("samples") - 1 do
      local list, reason = frames(cap, stack[i], names)
      out[#out + 1] = { tid = tid[thread[i]], time = digits(start + time[i]),
        period = tonumber(weight[i]), frames = list, whole = reason == OUTERMOST or reason == ENTRY,
        reason = reason }
    end
    return out
  end))
end

local function is_kernel(ip) return #ip == 16 and ip:sub(1, 4) == "ffff" end

-- Whether a frame is the one that perf shows there.  Callers are return addresses: the kernel's
-- chains have them as they are, perf's unwinder gives the address one below as we do.
local function same(frame, ip, first_of_its_kind, unwound)
  local offset = frame.offset
  local exact = first_of_its_kind or frame.kind == SIGNAL or (unwound and not is_kernel(ip))
  if not exact then offset = offset + 1 end
  return hex(offset) == ip
end

--- Compare frame by frame: "same", or why not ("longer": perf goes on where our stack ended,
-- "shorter": perf ended before, "other") and the place.
function M.compare(ours, theirs, unwound)
  local count, before = math.min(#ours.frames, #theirs.frames), nil
  for i = 1, count do
    local ip = theirs.frames[i].ip
    local kernel = is_kernel(ip)
    if not same(ours.frames[i], ip, before ~= kernel, unwound) then return "other", i end
    before = kernel
  end
  if #ours.frames == #theirs.frames then return "same" end
  return #ours.frames < #theirs.frames and "longer" or "shorter", count + 1
end

-- Whether perf's frames from `at` on are frames of ours, in order: it left out those between.
local function skips(ours, theirs, at)
  local next_frame = at
  for i = at, #theirs.frames do
    repeat
      local frame = ours.frames[next_frame]
      next_frame = next_frame + 1
      if not frame then return false end
    until frame.ip == theirs.frames[i].ip
  end
  return true
end

--- What proves that a disagreement is perf's fault, or is none; nil: nothing does.
function M.proof(ours, theirs, why, at, unwound)
  if why == "same" then return "same" end
  -- libunwind takes what lies past the copy, or what is no return address, for one.
  local frame, inner = theirs.frames[at], theirs.frames[at - 1]
  if frame and frame.image == "[unknown]" then return "perf's frame is in no code" end
  -- Each of our steps is proven, by call-frame information or by the code itself.
  if why == "shorter" and unwound then return "perf ends before" end
  -- Frame pointers led to what is no address: perf discards the whole chain then.
  if #theirs.frames == 0 then return "perf discards the chain" end
  if ours.whole and theirs.frames[#theirs.frames].ip ~= ours.frames[#ours.frames].ip then
    return "ours reaches the program's entry, perf's does not"
  end
  -- perf keeps the mappings of the program that execve has taken away already.
  -- Without a table it follows %rbp, which functions built without frame pointers leave alone.
  if skips(ours, theirs, at) then return "perf leaves frames out" end
  -- perf takes whatever file is at the path now.
  if ours.reason == UNAVAILABLE and at >= #ours.frames then return "the file is not proven" end
  local last = at == #theirs.frames and at == #ours.frames
  if last and inner and is_kernel(inner.ip) and ours.frames[at].kind == UNMAPPED then
    return "in execve"
  end
end

return M
