--- symbolize: add functions and lines to a capture, on any host.

local capture = require("microscope.capture")
local cli = require("microscope.cli")
local folder = require("microscope.folder")
local naming = require("microscope.query.naming")
local symbolize = require("microscope.symbolize")
local text = require("microscope.report.text")

local M = {
  name = "symbolize",
  summary = "Add functions, inlined functions and lines to a capture.",
  examples = {
    { "microscope symbolize", "name what ./microscope.usprof left for later" },
    { "microscope symbolize --debug-dir /srv/debug server.usprof",
      "on another host, with its debug files" },
    { "microscope symbolize profiles/", "name each capture of a folder" },
    { "microscope symbolize --debuginfod -o named.usprof server.usprof",
      "fetch what is missing, and keep the capture" },
  },
}

-- Addresses of one module that are listed without --unnamed.
local LISTED = 8
-- A job that is interrupted ends within this: a fetch looks once a second.
local GRACE_MS = 1500

function M.options(parser)
  parser:argument("file"):args("?")
    :description("The capture, or a folder of them (./microscope.usprof).")
  parser:option("-d --debug-dir"):argname("DIR"):count("*"):target("debug_dirs")
    :description("Look for debug files and images in DIR too; may be given several times.")
  parser:flag("--debuginfod")
    :description("Fetch what is missing from the servers of DEBUGINFOD_URLS.")
  parser:option("-o --output"):argname("FILE")
    :description("Write the capture with names to FILE instead of in place.")
  parser:flag("--unnamed"):description("List every address that stays unnamed.")
  parser:flag("-q --quiet"):description("Print nothing but errors.")
end

local function say(line) io.stderr:write("microscope: ", line, "\n") end

-- One line of what is going on, for a terminal.
local function draw(p)
  local what = ("%d of %s"):format(p.module, text.plural(p.modules, "module"))
  if p.writing then
    what = "writing"
  elseif p.fetching then
    what = ("%s  fetching for %s"):format(what, text.escape(text.last_part(p.name)))
    if p.fetched > 0 then
      what = what .. "  " .. text.size(p.fetched)
        .. (p.fetch_bytes > 0 and " of " .. text.size(p.fetch_bytes) or "")
    end
  else
    what = ("%s  %s of %s  %s"):format(what, text.count(p.located),
      text.plural(p.locations, "place"), text.escape(text.last_part(p.name)))
  end
  io.stderr:write("\r\27[K", text.head(what, (text.columns(2) or 80) - 1))
end

-- Poll to the end: "done", or "interrupted" and by what, or nil and why it failed.
local function drive(job, live)
  local interrupted
  while true do
    local kind, signal = job:poll(interrupted and GRACE_MS or live and 200 or 1000)
    if kind == "done" then return "done" end
    if kind == "failed" and not interrupted then return nil, job:error().message end
    -- Ended; or a second signal, or no end in time: what is at work is left as it is.
    if interrupted then return "interrupted", interrupted end
    if kind == "interrupted" then
      interrupted = signal
      job:stop()
    elseif live then
      draw(job:progress())
      live.drawn = true
    end
  end
end

local function addresses(list, all)
  local most = all and #list or math.min(#list, LISTED)
  local words = table.concat(list, " ", 1, most)
  return #list > most and ("%s and %s more"):format(words, text.count(#list - most)) or words
end

local function say_unnamed(found, all)
  for _, module in ipairs(found.unnamed) do
    say(("  %s, %s: %s%s: %s"):format(text.escape(module.path),
      module.build_id ~= "" and "build ID " .. text.escape(module.build_id) or "no build ID",
      text.plural(#module.unnamed, "place"),
      " (" .. text.escape(module.problem ~= "" and module.problem or "no symbol is there") .. ")",
      addresses(module.unnamed, all)))
  end
end

local function say_end(path, args)
  local cap, err = capture.open(path)
  if not cap then cli.fail("%s: %s", path, tostring(err)) end
  local found = naming.of(cap)
  cap:close()
  local left = found.places - found.named
  say(("%s of %s named, %s with lines, in %s"):format(text.count(found.named),
    text.plural(found.places, "place"), text.count(found.with_lines), text.escape(path)))
  if left > 0 then
    say(("%s without a name:"):format(left == 1 and "1 stays" or text.count(left) .. " stay"))
    say_unnamed(found, args.unnamed)
  end
end

-- The exit status, or nil and why there are no names.
local function run(job, args, path, output)
  local live = not args.quiet and text.is_terminal(2) and { drawn = false }
  local outcome, why = drive(job, live)
  if live and live.drawn then io.stderr:write("\r\27[K") end
  if not outcome then
    return nil, why:find(path, 1, true) and why or path .. ": " .. why
  end
  if outcome == "interrupted" then
    say(("interrupted: %s is as it was"):format(text.escape(output)))
    return 128 + why
  end
  if not args.quiet then say_end(output, args) end
  return 0
end

local function name_one(args, path, output)
  local job, err = symbolize.new {
    input = path,
    output = output,
    debug_dirs = args.debug_dirs,
    debuginfod = args.debuginfod,
  }
  if not job then
    local problem = tostring(err)
    local named = problem:find(path, 1, true) or problem:find("debug", 1, true)
    return nil, named and problem or path .. ": " .. problem
  end
  local ok, status, why = pcall(run, job, args, path, output)
  job:free()
  if not ok then error(status, 0) end
  return status, why
end

local function is_there(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

-- Each capture of a folder in its place.  One that cannot be named holds up none of the others, and
-- one that is gone when it is its turn was an old segment of a long recording.
local function name_all(args, path)
  local names, errno = folder.names(path, ".usprof")
  if errno then cli.fail("%s", select(2, io.open(path)) or path .. " cannot be read") end
  if #names == 0 then cli.fail("there is no capture (NAME.usprof) in %s", path) end
  local result = 0
  for _, name in ipairs(names) do
    local one = path:match("^(.-)/*$") .. "/" .. name
    local status, why = name_one(args, one, one)
    if status and status ~= 0 then return status end
    if not status and is_there(one) then
      io.stderr:write("microscope symbolize: ", text.escape(why), "\n")
      result = 1
    end
  end
  return result
end

function M.run(args)
  local path = args.file or "microscope.usprof"
  if args.output == "-" then
    cli.misuse("a capture is written to a file, not to a pipe (./- is a file of that name)")
  end
  if not capture.is_folder(path) then
    local status, why = name_one(args, path, args.output or path)
    if not status then cli.fail("%s", why) end
    return status
  end
  if args.output then
    cli.misuse("--output names one file; the captures of a folder are named in their places")
  end
  return name_all(args, path)
end

return M
