--- doctor: what can be recorded here and by whom; for what cannot, the one thing to change.

local bit = require("bit")
local ffi = require("ffi")

local core = require("microscope.core")
local text = require("microscope.report.text")

local C = core.C

local M = {
  name = "doctor",
  summary = "Tell what can be recorded here, and what each missing right takes.",
  examples = {
    { "microscope doctor", "what this user may record on this machine" },
    { "sudo microscope doctor", "what root may" },
  },
}

function M.options() end

-- Numbers of linux/capability.h.
local CAP_IPC_LOCK, CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON = 14, 19, 21, 38

local EPERM, EACCES, ENOENT, EINVAL, ENOSYS, EOPNOTSUPP = 1, 13, 2, 22, 38, 95

local function first_line(path)
  local file = io.open(path)
  local line = file and file:read("*l")
  if file then file:close() end
  return line
end

local function sysctl(name) return first_line("/proc/sys/kernel/" .. name) end

local function has(capability)
  return C.mic_probe_capability(capability) == 1 or C.mic_probe_capability(CAP_SYS_ADMIN) == 1
end

-- A launcher gives a program capabilities without changing the program: ambient ones.
local LAUNCHER = "sudo setpriv --reuid=$(id -u) --regid=$(id -g) --init-groups --inh-caps=+perfmon"
  .. ",+sys_ptrace --ambient-caps=+perfmon,+sys_ptrace microscope ..."

local function why(errno)
  if errno == EPERM or errno == EACCES then
    return ("not permitted: kernel.perf_event_paranoid is %s"):format(
      sysctl("perf_event_paranoid") or "not readable")
  elseif errno == ENOENT or errno == EOPNOTSUPP then
    return "this machine has no such counter (virtual machines often have none)"
  elseif errno == ENOSYS then
    return "this kernel has no perf events (CONFIG_PERF_EVENTS)"
  elseif errno == EINVAL then
    return "this kernel does not know it"
  end
  return "error " .. errno
end

-- Each check gives whether it is good, and what to say.
local checks = {}

function checks.own_programs()
  local errno = C.mic_probe(C.MIC_PROBE_USER)
  if errno == 0 then return true, "your own programs, in user space: yes" end
  if errno == EPERM or errno == EACCES then
    return false, "your own programs, in user space: " .. why(errno),
      "sysctl kernel.perf_event_paranoid=2 (as root), or run microscope with CAP_PERFMON"
  end
  return false, "your own programs, in user space: " .. why(errno)
end

function checks.other_processes()
  local perfmon, ptrace = has(CAP_PERFMON), has(CAP_SYS_PTRACE)
  if perfmon and ptrace then return true, "processes of other users: yes" end
  local missing = {}
  if not perfmon then missing[#missing + 1] = "CAP_PERFMON" end
  if not ptrace then missing[#missing + 1] = "CAP_SYS_PTRACE" end
  return false, "processes of other users: no, without " .. table.concat(missing, " and "),
    LAUNCHER
end

function checks.attach()
  local scope = first_line("/proc/sys/kernel/yama/ptrace_scope")
  if not scope or scope == "0" or has(CAP_SYS_PTRACE) then
    return true, "attaching to your own processes: yes"
  end
  return false, "attaching to your own processes: kernel.yama.ptrace_scope is " .. scope,
    "sysctl kernel.yama.ptrace_scope=0 (as root), or run microscope with CAP_SYS_PTRACE"
end

function checks.cycles()
  local errno = C.mic_probe(C.MIC_PROBE_CYCLES)
  if errno == 0 then return true, "hardware cycles (--event cycles): yes" end
  return false, "hardware cycles (--event cycles): no, " .. why(errno)
end

function checks.losses()
  if C.mic_probe(C.MIC_PROBE_LOST) == 0 then return true, "exact counts of lost samples: yes" end
  return false, "exact counts of lost samples: no, they came with Linux 6.0;"
    .. " losses are counted as the rings report them"
end

local NO_LIMIT = 0xffffffffffffffffULL

local function limit(kind)
  local soft = C.mic_probe_limit(kind, 0)
  if soft == NO_LIMIT then return nil end
  return tonumber(soft)
end

function checks.memory()
  local memlock, kb = limit(0), tonumber(sysctl("perf_event_mlock_kb") or "")
  -- perf_mmap of kernel/events/core.c: CAP_IPC_LOCK, or no paranoia at all, lifts the limit.
  local lifted = C.mic_probe_capability(CAP_IPC_LOCK) == 1
    or (tonumber(sysctl("perf_event_paranoid") or "") or 0) < 0
  if lifted or not memlock then return true, "memory for rings: no limit" end
  return true, ("memory for rings: %s a CPU (kernel.perf_event_mlock_kb) and %s (ulimit -l)")
    :format(kb and text.size(kb * 1024) or "?", text.size(memlock))
end

function checks.descriptors()
  local hard = C.mic_probe_limit(1, 1)
  if hard == NO_LIMIT or tonumber(hard) >= 65536 then
    return true, "descriptors: enough for thousands of threads"
  end
  local _, cpus = (first_line("/proc/stat") and io.open("/proc/stat"):read("*a") or ""):gsub(
    "\ncpu%d", "")
  -- Two events for each thread and CPU, and what else is open.
  local threads = math.floor((tonumber(hard) - 64) / (2 * math.max(cpus, 1)))
  return threads >= 1000, ("descriptors: enough to attach to about %s"):format(
    text.plural(math.max(threads, 0), "thread")),
    "ulimit -Hn 65536 (as root) before microscope, to attach to processes of more"
end

local S_ISUID = 0x800

function checks.installation()
  local path = core.prefix .. "/bin/microscope"
  local facts = ffi.new("struct mic_host_file")
  if C.mic_host_stat(path, facts) ~= 0 then return true, "installation: " .. core.prefix end
  if bit.band(facts.mode, S_ISUID) ~= 0 or C.mic_host_secure() == 1 then
    return false, path .. " is setuid or has file capabilities, which would let users run their"
      .. " code with its rights",
      ("chmod u-s %s; setcap -r %s; and use a launcher: %s"):format(path, path, LAUNCHER)
  end
  return true, "installation: " .. core.prefix
end

local ORDER = { "own_programs", "attach", "other_processes", "cycles", "losses", "memory",
  "descriptors", "installation" }

function M.run()
  local version = first_line("/proc/sys/kernel/osrelease") or "unknown"
  io.stdout:write(("Linux %s, user %d, kernel.perf_event_paranoid %s\n"):format(
    text.escape(version), C.mic_host_uid(), sysctl("perf_event_paranoid") or "not readable"))
  local usable = true
  for _, name in ipairs(ORDER) do
    local good, what, mend = checks[name]()
    io.stdout:write(good and "  ok   " or "  --   ", text.escape(what), "\n")
    if mend and not good then io.stdout:write("         to change it: ", mend, "\n") end
    if name == "own_programs" then usable = good end
  end
  return usable and 0 or 1
end

return M
