--- annotation_json.lua - functions with their source and code, as JSON (docs/report-json.md).

local json = require("microscope.report.json")

local or_null = json.or_null

local M = {}

M.VERSION = 1

local function hex(bytes)
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

local function map(list, fn)
  local out = {}
  for i, entry in ipairs(list) do out[i] = fn(entry) end
  return json.array(out)
end

local function line(entry)
  return json.object { "line", or_null(entry.line), "self", entry.self, "total", entry.total,
    "text", or_null(entry.text) }
end

local function file(entry)
  return json.object {
    "path", or_null(entry.path),
    "found", or_null(entry.source and entry.source.path),
    "newer", entry.newer or false,
    "lines", map(entry.lines, line),
  }
end

local function frame(entry)
  return json.object { "name", entry.name, "file", or_null(entry.file),
    "line", or_null(entry.line) }
end

local function instruction(row)
  return json.object {
    "address", ("0x%x"):format(row.address),
    "bytes", hex(row.bytes),
    "text", row.text,
    "range", row.range,
    "self", row.self,
    "total", row.total,
    "frames", map(row.frames, frame),
  }
end

local function code(entry)
  if not entry then return json.null end
  return json.object { "path", entry.image.path, "unplaced", entry.unplaced,
    "instructions", map(entry.rows, instruction) }
end

local function annotation(entry)
  return json.object {
    "name", entry.name,
    "linkage_name", entry.linkage_name,
    "module", entry.module,
    "path", entry.path,
    "build_id", entry.build_id,
    "self", entry.self,
    "total", entry.total,
    "problem", or_null(entry.problem),
    "files", map(entry.files, file),
    "code", code(entry.code),
  }
end

--- Write annotations (annotation.lua) of a profile through write(text).
function M.write(annotations, profile, _, write)
  json.write(json.object {
    "version", M.VERSION,
    "source", json.object { "name", profile.source.name, "unit", profile.source.unit,
      "period", profile.source.period, "total", profile.tree.weight },
    "annotations", map(annotations, annotation),
  }, write)
  write("\n")
end

return M
