--- made.lua - captures that are written with known rows, for specs that read files.

local writer = require("microscope.writer")

local M = {}

local NONE = 0xffffffff

-- Functions, locations and stacks by what they are called, each once.
local function namer(w, module, source, separator)
  local self = { functions = {}, stacks = {} }
  local file = w:row("files", { path = w:string(source) })
  local function location_of(name)
    if self.functions[name] then return self.functions[name] end
    local id = w:string(name)
    -- The same function has the same place in every capture.
    local offset = 0
    for i = 1, #name do offset = (offset * 31 + name:byte(i)) % 2 ^ 24 end
    offset = offset * 16 + 16
    local line = (w:count("functions") + 1) * 16
    local fn = w:row("functions", { name = id, linkage_name = id, module = module, file = file,
      line = line })
    local location = w:row("locations", { kind = "native", evidence = "cfi", module = module,
      offset = offset })
    w:row("lines", { location = location, ["function"] = fn, file = file, line = line + 1,
      depth = 0 })
    self.functions[name] = location
    return location
  end
  function self.stack(path)
    local ending = tonumber(path:match("^%[(%d+)%]") or 1)
    path = path:gsub("^%[%d+%] ?>? ?", "")
    local key = "[" .. ending .. "]"
    local at = self.stacks[key] or w:row("stacks", { ["end"] = ending })
    self.stacks[key] = at
    for name in (path .. separator):gmatch("%s*(.-)%s*[" .. separator .. "]") do
      key = key .. ">" .. name
      if not self.stacks[key] then
        local location = location_of(name)
        self.stacks[key] = w:row("stacks", { parent = at, location = location })
      end
      at = self.stacks[key]
    end
    return at
  end
  return self
end

-- All tables but lines need no order among them; lines follow their locations' order as they are
-- made with them.
local function fill(w, t)
  local period = t.period or 1e6
  for key, value in pairs(t.meta or {}) do
    w:row("meta", { key = w:string(key), value = w:string(value) })
  end
  w:row("clocks", { monotonic_ns = t.monotonic_ns or 1e9, realtime_ns = t.realtime_ns or 2e18,
    duration_ns = t.duration_ns or 1e9, boot_id = w:string(t.boot or "boot") })
  w:row("sources", { name = w:string("cpu-clock"), unit = "cpu_ns", period = period,
    unit_name = w:string("") })
  local module = w:row("modules", { kind = "elf", path = w:string("/bin/app"),
    name = w:string("app"), build_id = w:string(""), problem = w:string("") })
  for _, process in ipairs(t.processes or { { pid = 100 } }) do
    w:row("processes", { pid = process.pid, ns_pid = process.pid, parent = process.parent,
      name = w:string(process.name or "app"), cgroup = w:string(""),
      start_ns = process.start_ns or 0, end_ns = process.end_ns })
  end
  for _, thread in ipairs(t.threads or { { tid = 100 } }) do
    w:row("threads", { process = thread.process or 0, tid = thread.tid,
      name = w:string(thread.name or "app"), start_ns = thread.start_ns or 0,
      end_ns = thread.end_ns })
  end
  local names = namer(w, module, t.file or "/src/app.c", t.separator or ">")
  for i, sample in ipairs(t.samples or {}) do
    local stack = names.stack(sample[1])
    for k = 1, sample.n or 1 do
      w:row("samples", { time_ns = (sample.at or i * 1000) + (k - 1) * (sample.every or 1),
        thread = sample.thread or 0, stack = stack, weight = sample.weight or period,
        cpu = sample.cpu or 0, source = 0 })
    end
  end
  for _, row in ipairs(t.rows or {}) do
    local values = {}
    for key, value in pairs(row[2]) do
      values[key] = type(value) == "table" and w:string(value[1]) or value
    end
    w:row(row[1], values)
  end
end

--- Write a capture: { meta =, processes =, threads =, samples = { { "main > work", n = 3, at = ns,
-- every = ns, thread = 0, cpu = 0 }, ... }, file = its source, duration_ns =, monotonic_ns =,
-- realtime_ns =, boot =, rows = { { table, { column = value } }, ... } }; a text in `rows` stands
-- in braces.  separator stands for ">" where names have that.  All is of the module "app";
-- "[3] > work" is a stack that ends with reason 3.
function M.capture(path, t)
  assert(writer.with(path, function(w) fill(w, t) end))
  return path
end

M.NONE = NONE
return M
