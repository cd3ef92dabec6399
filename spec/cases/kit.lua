--- kit.lua - build the programs of fixtures/cases, record them with the installed microscope, and
-- look at what its JSON report says of them.

local cjson = require("cjson")

local helper = require("spec.helper")

local M = {}

-- Nothing here takes near as long: a recorder that hangs is ended.
local LIMIT_S = 60

--- The folder that the programs are built in.
M.folder = helper.build .. "/cases"

--- The installed program, as a shell word.
M.microscope = helper.quote(helper.stage .. "/bin/microscope")

--- A command that ends at the latest after LIMIT_S; SIGKILL, as SIGTERM only means "stop and save".
M.limited = ("timeout -s KILL %d "):format(LIMIT_S)

--- Build programs of fixtures/cases/build.ninja; true, or nil and what the tools said.
function M.build(...)
  local out, err, status = helper.run(("mkdir -p %s && cd %s && ln -sfn %s src &&"
    .. " ninja -k 0 -f src/build.ninja %s"):format(helper.quote(M.folder),
    helper.quote(M.folder), helper.quote(helper.root .. "/fixtures/cases"),
    table.concat({ ... }, " ")))
  if status == 0 then return true end
  return nil, out .. err
end

--- The same for a busted setup: what cannot be built fails it.
function M.builds(...)
  local names = { ... }
  return function()
    local ok, why = M.build(unpack(names))
    assert(ok, why)
  end
end

--- Run a shell script in a new Run's folder, where it leaves x.usprof.  The script has $microscope
-- and $programs (the folder of M.build); it and what it started end after LIMIT_S.
function M.script(text)
  local folder = helper.folder()
  local run = M.open(folder .. "/x.usprof", folder)
  helper.write(folder .. "/script", ("%smicroscope=%s\nprograms=%s\n%s\n"):format(helper.WAITS,
    M.microscope, helper.quote(M.folder), text))
  run.out, run.err, run.status = helper.run(M.limited .. "sh script", folder)
  return run
end

--- Whether the shell finds a program.
function M.has(name)
  local _, _, status = helper.run("command -v " .. name)
  return status == 0
end

-- The samples of a JSON tree as stacks: {names, modules, samples}, the outermost frame first.
-- A stack that ends short begins with its reason in brackets.
local function flatten(node, names, modules, out)
  names[#names + 1] = node.name
  modules[#modules + 1] = node.module == cjson.null and "" or node.module
  local own = node.samples
  for _, child in ipairs(node.children) do
    own = own - child.samples
    flatten(child, names, modules, out)
  end
  if own > 0 then
    out[#out + 1] = { names = { unpack(names) }, modules = { unpack(modules) }, samples = own }
  end
  names[#names], modules[#modules] = nil, nil
end

local Run = {}
Run.__index = Run

--- The JSON report, decoded.
function Run:json()
  if not self._json then
    local out, err, status = helper.microscope("report --tree --format json "
      .. (self.report_options or "") .. " " .. helper.quote(self.path))
    assert(status == 0, err)
    self._json = cjson.decode(out)
  end
  return self._json
end

function Run:summary() return self:json().summary end

--- All stacks: see flatten.
function Run:stacks()
  if not self._stacks then
    self._stacks = {}
    for _, root in ipairs(self:json().tree) do flatten(root, {}, {}, self._stacks) end
  end
  return self._stacks
end

--- How many samples have a stack for which fn(names, modules) is true.
function Run:count(fn)
  local count = 0
  for _, stack in ipairs(self:stacks()) do
    if fn(stack.names, stack.modules) then count = count + stack.samples end
  end
  return count
end

local function index_of(names, name)
  for i = #names, 1, -1 do
    if names[i] == name then return i end
  end
end

-- Whether names hold the chain, frame by frame.
local function holds(names, chain)
  for first = 1, #names - #chain + 1 do
    local same = true
    for i = 1, #chain do same = same and names[first + i - 1] == chain[i] end
    if same then return true end
  end
  return false
end

--- How many samples have a function anywhere in their stack; and innermost.
function Run:with(name)
  return self:count(function(names) return index_of(names, name) ~= nil end)
end

function Run:innermost(name) return self:count(function(names) return names[#names] == name end) end

--- How many samples have these frames one after the other.
function Run:chain(chain) return self:count(function(names) return holds(names, chain) end) end

--- How many samples end for a reason.
function Run:ended(reason)
  for _, entry in ipairs(self:json().ends) do
    if entry.reason == reason then return entry.samples end
  end
  return 0
end

--- How many samples have whole stacks.
function Run:whole()
  local count = 0
  for _, entry in ipairs(self:json().ends) do
    if entry.whole then count = count + entry.samples end
  end
  return count
end

--- The tree as text, for messages.
function Run:tree()
  return (helper.microscope("report --tree --min-percent 0 " .. helper.quote(self.path)))
end

-- The two-sided 99.999 % point of the normal distribution.
local Z = 4.4172

--- Raises unless k of n samples are what a share predicts, within Wilson's 99.999 % interval.
function M.assert_share(share, k, n, what)
  local p, z2 = k / n, Z * Z
  local middle = p + z2 / (2 * n)
  local half = Z * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
  local low, high = (middle - half) / (1 + z2 / n), (middle + half) / (1 + z2 / n)
  if n > 0 and low <= share and share <= high then return end
  error(("%s: %d of %d samples, not %.1f %%"):format(what or "share", k, n, 100 * share), 2)
end

--- Raises unless nothing was lost.
function Run:assert_no_losses()
  local s = self:summary()
  local lost = s.lost_samples + s.lost_records
  if lost > 0 then error(("%d records were lost"):format(lost), 2) end
end

--- Raises unless every sample with the chain's last function has the whole chain above it, in a
-- stack that is whole, and there are at least `least` of them (100).
function Run:assert_chain(chain, least)
  local leaf = chain[#chain]
  local all, right = self:with(leaf), self:count(function(names)
    return names[1]:sub(1, 1) ~= "[" and holds(names, chain)
  end)
  if all == right and all >= (least or 100) then return end
  error(("%d of %d samples of %s come by %s:\n%s"):format(right, all, leaf,
    table.concat(chain, " > "), self:tree()), 2)
end

--- A Run of a capture that is there.
function M.open(path, folder, report_options)
  return setmetatable({ path = path, folder = folder, report_options = report_options }, Run)
end

--- Record a program of the folder: command is its name and arguments, options are microscope's.
-- The Run has out, err and status of the whole; the capture must be there unless allowed not to.
function M.record(command, options)
  return M.script(("$microscope record -F 1999 %s -o x.usprof -- $programs/%s"):format(
    options or "", command))
end

--- Attach to a program of the folder that prints a line when it is ready, for a while, and end it.
--   `before` is what the shell does before.
function M.attach(command, options, before)
  return M.script(([[
    mkfifo ready
    $programs/%s > ready & pid=$!
    read -r line < ready
    %s
    attach_to $pid %s; status=$?
    kill -9 $pid
    exit $status]]):format(command, before or "", options or ""))
end

--- Remove what a Run left.
function Run:remove() helper.remove(self.folder) end

--- Call fn with a Run and remove it after, also when fn raises.
function M.with(run, fn)
  local ok, err = pcall(fn, run)
  run:remove()
  if not ok then error(err, 0) end
end

return M
