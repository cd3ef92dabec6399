--- perf_file.lua - a perf.data of given records, for what no kernel here writes.

local ffi = require("ffi")

local M = {}

-- PERF_SAMPLE_*, PERF_RECORD_* and their kin (include/uapi/linux/perf_event.h).
M.IP, M.TID, M.TIME, M.READ, M.CALLCHAIN, M.PERIOD = 1, 2, 4, 16, 32, 256
M.BRANCH_STACK = 2048
M.RAW, M.DATA_SRC, M.CGROUP = 2 ^ 10, 2 ^ 15, 2 ^ 21
M.KERNEL, M.USER, M.USER_DEFERRED = -128LL, -512LL, -640LL
local INHERIT, SAMPLE_ID_ALL = 2, 2 ^ 18
local IN_KERNEL, IN_USER = 1, 2
local MMAP, COMM, EXIT, FORK, SAMPLE, KSYMBOL, DEFERRED = 1, 3, 4, 7, 9, 17, 22
local FINISHED_ROUND = 68 -- of perf's own (tools/perf/util/event.h)

local u64_type = ffi.typeof("uint64_t[1]")

local function u16(n) return string.char(n % 256, math.floor(n / 256) % 256) end
local function u32(n) return u16(n % 65536) .. u16(math.floor(n / 65536)) end

--- Eight bytes of a number or of 64 bits.
function M.u64(n) return ffi.string(u64_type(n), 8) end
local u64 = M.u64

local function text(s) return s .. ("\0"):rep(8 - #s % 8) end

local function record(kind, misc, body)
  assert(#body % 8 == 0)
  return u32(kind) .. u16(misc) .. u16(8 + #body) .. body
end

--- What perf writes behind each round through its rings.
function M.round() return record(FINISHED_ROUND, 0, "") end

-- What every record but a sample ends in.
local function trailer(r) return u32(r.pid or 0) .. u32(r.tid or r.pid or 0) .. u64(r.time) end

--- {pid, tid, time, address, size, offset, name, user}: of the kernel unless user is true.
function M.mmap(r)
  return record(MMAP, r.user and IN_USER or IN_KERNEL, u32(r.user and r.pid or 0xffffffff)
    .. u32(r.user and r.pid or 0) .. u64(r.address) .. u64(r.size) .. u64(r.offset or 0)
    .. text(r.name) .. trailer(r))
end

function M.comm(r)
  return record(COMM, 0, u32(r.pid) .. u32(r.pid) .. text(r.name) .. trailer(r))
end

--- {pid, time}: of a process's only thread.
function M.exit(r)
  return record(EXIT, 0, u32(r.pid) .. u32(1) .. u32(r.pid) .. u32(1) .. u64(r.time) .. trailer(r))
end

--- {pid, tid, ppid, ptid, time}
function M.fork(r)
  return record(FORK, 0, u32(r.pid) .. u32(r.ppid) .. u32(r.tid) .. u32(r.ptid) .. u64(r.time)
    .. trailer(r))
end

--- {address, size, name, gone}
function M.ksymbol(r)
  return record(KSYMBOL, 0, u64(r.address) .. u32(r.size) .. u16(1) .. u16(r.gone and 1 or 0)
    .. text(r.name) .. trailer(r))
end

--- {cookie, ips}
function M.deferred(r)
  local ips = {}
  for i, ip in ipairs(r.ips) do ips[i] = u64(ip) end
  return record(DEFERRED, IN_USER, u64(r.cookie) .. u64(#ips) .. table.concat(ips) .. trailer(r))
end

--- {pid, tid, time, chain, user, read, branches, rest}: the chain has its marks; read are the bytes
-- of what options.read adds; branches are {from, to}; rest are the bytes of what options.rest adds.
function M.sample(r)
  local chain, branches = {}, {}
  for i, ip in ipairs(r.chain) do chain[i] = u64(ip) end
  for i, b in ipairs(r.branches or {}) do branches[i] = u64(b[1]) .. u64(b[2]) .. u64(0) end
  return record(SAMPLE, r.user and IN_USER or IN_KERNEL, u64(r.chain[2]) .. u32(r.pid)
    .. u32(r.tid or r.pid) .. u64(r.time) .. u64(1000) .. (r.read or "")
    .. u64(#chain) .. table.concat(chain)
    .. (r.branches and u64(#branches) .. table.concat(branches) or "")
    .. (r.rest or ""))
end

local function attr(branches, rest, read, inherit)
  local type = M.IP + M.TID + M.TIME + M.PERIOD + M.CALLCHAIN
  if branches then type = type + M.BRANCH_STACK end
  type = type + (rest or 0) + (read and M.READ or 0)
  return u32(1) .. u32(112) .. u64(0) .. u64(1000) .. u64(type) .. u64(read or 0)
    .. u64(SAMPLE_ID_ALL + (inherit and INHERIT or 0))
    .. ("\0"):rep(24) .. u64(branches or 0) .. ("\0"):rep(32)
end

-- The feature of build IDs: {path, hex} each, of the kernel's.
local function build_ids(list)
  local out = {}
  for i, id in ipairs(list) do
    local bytes = id[2]:gsub("%x%x", function(digits) return string.char(tonumber(digits, 16)) end)
    local path = text(id[1])
    out[i] = u32(67) .. u16(2 ^ 15 + IN_KERNEL) .. u16(36 + #path) .. u32(0xffffffff)
      .. bytes .. ("\0"):rep(20 - #bytes) .. string.char(#bytes) .. "\0\0\0" .. path
  end
  return table.concat(out)
end

--- The bytes of a perf.data: records, options {build_ids = {{path, hex}...}, branches =
-- branch_sample_type, rest = another bit of sample_type, read = read_format, inherit = true, ids =
-- of the event, folder = HEADER_DIR_FORMAT's version}.
function M.bytes(records, options)
  options = options or {}
  local data, attrs = table.concat(records), attr(options.branches, options.rest,
    options.read, options.inherit)
  -- The ids lie behind the attributes.
  local ids = {}
  for i, id in ipairs(options.ids or {}) do ids[i] = u64(id) end
  ids = table.concat(ids)
  attrs = attrs .. u64(104 + #attrs + 16) .. u64(#ids)
  local at, flags, features = 104 + #attrs + #ids, 0, {}
  if options.build_ids then flags, features[1] = 2 ^ 2, build_ids(options.build_ids) end
  if options.folder then
    flags, features[#features + 1] = flags + 2 ^ 24, u64(options.folder)
  end
  local sections, content = {}, table.concat(features)
  local offset = at + #data + 16 * #features
  for i, bytes in ipairs(features) do
    sections[i] = u64(offset) .. u64(#bytes)
    offset = offset + #bytes
  end
  return table.concat { "PERFILE2", u64(104), u64(#attrs), u64(104), u64(#attrs), u64(at),
    u64(#data), u64(0), u64(0), u64(flags), u64(0), u64(0), u64(0), attrs, ids, data,
    table.concat(sections), content }
end

return M
