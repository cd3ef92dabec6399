--- convert: from one profile format to another.

local capture = require("microscope.capture")
local cli = require("microscope.cli")
local convert = require("microscope.convert")
local text = require("microscope.report.text")

local M = {
  name = "convert",
  summary = "Convert profiles from and to the formats of other tools.",
  usage = "convert [OPTIONS] IN OUT\n       microscope convert --list",
  examples = {
    { "microscope convert server.usprof server.pb.gz", "for go tool pprof" },
    { "microscope convert server.usprof server.folded", "for flame graph tools" },
    { "microscope convert cpu.pb.gz cpu.usprof", "what a Go program wrote, for microscope report" },
    { "microscope convert --to folded server.usprof - | less", "to standard output" },
    { "microscope convert --list", "the formats, yours too" },
  },
}

function M.options(parser)
  parser:argument("input"):args("?"):description("The file to read; - is standard input.")
  parser:argument("output"):args("?"):description("The file to write; - is standard output.")
  parser:option("--from"):argname("FORMAT")
    :description("Read IN in this format (its first bytes tell).")
  parser:option("--to"):argname("FORMAT")
    :description("Write OUT in this format (its ending tells).")
  parser:option("-d --debug-dir"):argname("DIR"):count("*"):target("debug_dirs")
    :description("Look in DIR too for the images of a perf.data; may be given several times.")
  parser:flag("--list"):description("List the formats that are there.")
end

local function list()
  local rows, wide = {}, 0
  for _, format in ipairs(convert.formats()) do
    local how = format.problem and "-" or (format.read or format.name == "usprof") and format.write
      and "read, write" or format.write and "write" or "read"
    local endings = table.concat(format.extensions or {}, " ")
    rows[#rows + 1] = { text.escape(format.name), how, text.escape(endings),
      text.escape(format.problem or format.summary or "") }
    wide = math.max(wide, #endings)
  end
  for _, row in ipairs(rows) do
    io.stdout:write(("%s  %s  %s  %s\n"):format(text.left(row[1], 14), text.left(row[2], 11),
      text.left(row[3], wide), row[4]))
  end
  return 0
end

-- One line for all that a step could not carry over.
local function tell(lost, format, verb)
  if #lost == 0 then return end
  io.stderr:write(("microscope convert: %s cannot %s: %s\n"):format(format.name, verb,
    text.escape(table.concat(lost, "; "))))
end

function M.run(args)
  if args.list then return list() end
  if not args.input or not args.output then
    cli.misuse("name a file to read and one to write: microscope convert IN OUT")
  end
  for _, folder in ipairs(args.debug_dirs) do
    if not capture.is_folder(folder) then
      cli.fail("--debug-dir %s: there is no such folder", folder)
    end
  end
  local result, err = convert.run(args.input, args.output,
    { from = args.from, to = args.to, debug_dirs = args.debug_dirs })
  if not result then cli.fail("%s", err) end
  if #result.lost_reading > 0 then
    io.stderr:write(("microscope convert: left out of %s: %s\n"):format(text.escape(args.input),
      text.escape(table.concat(result.lost_reading, "; "))))
  end
  if #result.notes > 0 then
    io.stderr:write(("microscope convert: %s: %s\n"):format(text.escape(args.input),
      text.escape(table.concat(result.notes, "; "))))
  end
  tell(result.lost_writing, result.writing, "hold")
  return 0
end

return M
