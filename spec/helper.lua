--- helper.lua - what every spec may use.
--
-- Loaded by busted before any spec: FFI types can be defined only once in a Lua state, and
-- busted gives each file fresh modules, so the modules that define them are required here.

require("microscope.core")

local M = {}

--- The checkout, the build folder and the installed tree under test (set by ./dev test).
M.root = assert(os.getenv("MIC_ROOT"), "run the specs through ./dev test")
M.build = os.getenv("MIC_BUILD")
M.stage = os.getenv("MIC_STAGE")

-- Whether a trace that begins at bytecode pc of a function can say anything of its loops.  One
-- that begins at the function's entry ends at the first loop, which is then compiled by itself;
-- that calls of fn became hot is chance, as LuaJIT counts in a small table by hash.  Nor do its
-- side traces say anything: they run on into the caller's loop, which may not be compiled yet.
local function begins_in_a_loop(pc) return pc > 1 end

--- Run fn and list every reason part of it was left to the interpreter: an aborted trace, or
-- one that had to stitch around a call.  Only traces that begin in the file of fn count: what
-- becomes hot around it is not its doing.
function M.interpreted(fn, ...)
  local util, vmdef, seen = require("jit.util"), require("jit.vmdef"), {}
  local file, own = debug.getinfo(fn, "S").source, false
  local of_loop = {} -- by trace: whether its root trace began in a loop
  local function on_trace(what, tr, func, pc, code, arg)
    if what == "start" then
      -- code is the parent's number in side traces.
      of_loop[tr] = code and of_loop[code] or not code and begins_in_a_loop(pc)
      own = of_loop[tr] and util.funcinfo(func, pc).source == file
    elseif not own then
      return
    elseif what == "abort" then
      local why = type(code) == "number" and vmdef.traceerr[code] or tostring(code)
      seen[#seen + 1] = why:format(tostring(arg))
    elseif what == "stop" and util.traceinfo(tr).linktype == "stitch" then
      seen[#seen + 1] = "stitch"
    end
  end
  jit.flush()
  jit.attach(on_trace, "trace")
  for _ = 1, 3 do fn(...) end
  jit.attach(on_trace)
  return seen
end

--- A shell word.
function M.quote(word) return "'" .. tostring(word):gsub("'", "'\\''") .. "'" end

--- A new, empty folder of its own under the build folder.
function M.folder()
  local pipe = assert(io.popen("mktemp -d " .. M.quote(M.build .. "/spec.XXXXXX")))
  local path = pipe:read("*l")
  pipe:close()
  return assert(path, "mktemp failed")
end

--- Remove a folder that M.folder made.
function M.remove(path)
  assert(path:sub(1, #M.build + 1) == M.build .. "/", "not a folder of the specs: " .. path)
  os.execute("rm -rf " .. M.quote(path))
end

function M.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

function M.write(path, text)
  local file = assert(io.open(path, "wb"))
  assert(file:write(text))
  assert(file:close())
end

--- Run a shell command; its stdout, stderr and status (128+N when signal N ended it).
function M.run(command, folder)
  local own = M.folder()
  local script = ("cd %s && ( %s\n) >%s/out 2>%s/err </dev/null; echo $? >%s/rc"):format(
    M.quote(folder or own), command, own, own, own)
  os.execute(script)
  local out, err = M.read(own .. "/out"), M.read(own .. "/err")
  local status = tonumber(M.read(own .. "/rc"))
  M.remove(own)
  return out, err, status
end

--- The same for the installed microscope.
function M.microscope(arguments, folder)
  return M.run(M.quote(M.stage .. "/bin/microscope") .. " " .. arguments, folder)
end

--- Shell functions that wait for conditions, for scripts that record:
-- `burns PID CENTISECONDS` until the process has spent that much more user CPU time,
-- `records PID` until a recorder samples: its collector and processor run beside the naming thread.
-- `attach_to PID OPTIONS` records it with $microscope until it has spent 0.25 s; the status is its.
-- Each gives up after a minute.
M.WAITS = [[
user_time() {
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  set -- ${stat##*)}
  echo "${12}"
}
burns() {
  began=$(user_time "$1") || return 1
  for _ in $(seq 1200); do
    now=$(user_time "$1") || return 1
    [ $((now - began)) -ge "$2" ] && return 0
    sleep 0.05
  done
  return 1
}
records() {
  for _ in $(seq 1200); do
    [ "$(ls "/proc/$1/task" 2>/dev/null | wc -l)" -ge 4 ] && return 0
    grep -q '^State:.[^Z]' "/proc/$1/status" 2>/dev/null || return 1
    sleep 0.05
  done
  return 1
}
attach_to() {
  attached=$1
  shift
  "$microscope" record -F 1999 "$@" -o x.usprof -p "$attached" & recorder=$!
  records $recorder && burns "$attached" 25 && kill -INT $recorder
  wait $recorder
}
]]

return M
