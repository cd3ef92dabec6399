--- kit.lua - what the specs of formats share: converting, and the judges.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local keys_query = require("microscope.query.keys")

local M = {}

--- Run `microscope convert ARGUMENTS` in a folder; it must succeed.  Gives what it said.
function M.convert(folder, arguments)
  local out, err, status = helper.microscope("convert " .. arguments, folder)
  assert(status == 0, ("convert %s: status %d: %s"):format(arguments, status, err))
  return err, out
end

--- The same, which must fail with a status: what it said.
function M.refused(folder, arguments, want)
  local out, err, status = helper.microscope("convert " .. arguments, folder)
  assert(status == (want or 1), ("convert %s: status %d: %s%s"):format(arguments, status, out, err))
  assert(err:match("^microscope convert: [^\n]*\n$"), "not one line: " .. err)
  return err
end

--- What `go tool pprof ARGUMENTS` prints (pprof keeps state in its home: one of its own).
function M.pprof(folder, arguments)
  local out, err, status = helper.run(("HOME=%s PPROF_TMPDIR=%s go tool pprof -symbolize=none %s")
    :format(helper.quote(folder), helper.quote(folder), arguments), folder)
  assert(status == 0, "go tool pprof " .. arguments .. ": " .. err)
  return out
end

--- Whether a program is there.
function M.has(program)
  local _, _, status = helper.run("command -v " .. program)
  return status == 0
end

-- "main;work" of a stack: the names of its frames from the outermost on, inlined ones too.
local function stack_path(cap, keys, node, names)
  local parent, location = cap:array("stacks", "parent"), cap:array("stacks", "location")
  local frames = {}
  while parent[node] ~= capture.NONE do
    local l = location[node]
    for f = keys.start[l + 1] - 1, keys.start[l], -1 do
      local key = keys.frame[f]
      names[key] = names[key] or keys_query.describe(cap, keys, key).name
      table.insert(frames, 1, names[key])
    end
    node = parent[node]
  end
  return table.concat(frames, ";")
end

-- Weights of the samples that `wanted` takes: by source's name, then by stack's path.
local function weigh(path, wanted)
  return assert(capture.with(path, function(cap)
    local keys, names, paths, out = keys_query.build(cap, false), {}, {}, {}
    local stack, weight, source = cap:array("samples", "stack"), cap:array("samples", "weight"),
      cap:array("samples", "source")
    for i = 0, cap:rows("samples") - 1 do
      if wanted(cap, i) then
        local name = cap:string(cap:array("sources", "name")[source[i]])
        local of = out[name] or {}
        out[name] = of
        local key = paths[stack[i]] or stack_path(cap, keys, stack[i], names)
        paths[stack[i]] = key
        of[key] = (of[key] or 0) + tonumber(weight[i])
      end
    end
    return out
  end))
end

--- The weights of a capture's samples: by source's name, then by stack's path.
function M.weights(path) return weigh(path, function() return true end) end

--- Those of one thread's samples of CPU time, by stack's path.
function M.weights_of_thread(path, thread)
  return weigh(path, function(cap, i) return cap:array("samples", "thread")[i] == thread end)
    ["cpu-clock"]
end

--- The sum of a source's weights, and how many distinct stacks they are of.
function M.total(weights)
  local sum, count = 0, 0
  for _, weight in pairs(weights) do sum, count = sum + weight, count + 1 end
  return sum, count
end

--- The folder of an npm package of a version, installed once under the build folder; nil and why
-- there is none.
function M.npm(name, version)
  local folder = helper.build .. "/npm/" .. name:gsub("%W", "_")
  local path = folder .. "/node_modules/" .. name
  local file = io.open(path .. "/package.json")
  if file then
    file:close()
    return path
  end
  if not M.has("npm") then return nil, "npm is missing: it installs " .. name end
  local _, err, status = helper.run(("mkdir -p %s && cd %s && HOME=%s timeout -s KILL 300 npm"
    .. " install --no-audit --no-fund --no-save --prefix . %s@%s"):format(helper.quote(folder),
    helper.quote(folder), helper.quote(folder), name, version))
  if status == 0 then return path end
  return nil, "npm cannot install " .. name .. ": " .. err:match("[^\n]*")
end

return M
