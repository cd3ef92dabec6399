--- annotation_text.lua - functions with their source and code, for a person.

local numbers = require("microscope.report.numbers")
local text = require("microscope.report.text")

local M = {}

-- Lines and instructions that are shown around those that cost something.
local AROUND_LINES, AROUND_CODE = 2, 3
-- A function of so many instructions is shown whole.
local SHORT = 60

-- Shares of what the function cost in all, in two columns; blank where nothing was found.
local function shares(entry, total)
  local function share(value)
    return text.right(value and value > 0 and text.percent(value / total) or "", 7)
  end
  return share(entry.self) .. "  " .. share(entry.total)
end

local BLANK = (" "):rep(16)

-- What is near something that cost: a set of indexes from 1 to count.
local function near(count, around, costs)
  local out, up_to = {}, 0
  for i = 1, count do
    if costs(i) then
      for k = math.max(up_to + 1, i - around), math.min(count, i + around) do out[k] = true end
      up_to = i + around
    end
  end
  return out
end

local function write_file(file, total, columns, say)
  local by_line, last, unknown = {}, 0, nil
  for _, line in ipairs(file.lines) do
    if line.line then
      by_line[line.line] = line
      last = math.max(last, line.line)
    else
      unknown = line
    end
  end
  say("")
  if not file.path then
    say("no file is known")
  elseif not file.source then
    say("source %s: not found; --source-dir DIR names a folder to look in",
      text.escape(file.path))
  else
    say("source %s%s", text.escape(file.source.path),
      file.newer and ": WRITTEN AFTER THE PROGRAM, lines may have moved" or "")
  end
  say("   self    total    line")
  if unknown then say("%s       ?", shares(unknown, total)) end
  if not file.source then
    for _, line in ipairs(file.lines) do
      if line.line then say("%s  %6d", shares(line, total), line.line) end
    end
    return
  end
  local shown = near(math.max(last + AROUND_LINES, #file.source.lines), AROUND_LINES,
    function(i) return by_line[i] end)
  local previous
  for i = 1, last + AROUND_LINES do
    local words = file.source.lines[i]
    if shown[i] and (words or by_line[i]) then
      if previous and previous < i - 1 then say("%s     ...", BLANK) end
      previous = i
      local head = ("%s  %6d  "):format(by_line[i] and shares(by_line[i], total) or BLANK, i)
      local room = columns and columns - #head
      say("%s%s", head, text.fit(text.escape(words and words:gsub("\t", "    ")
        or "(past the file's end)"), room))
    end
  end
end

local function base_name(path) return path:match("^.*/(.+)$") or path end

local function place(frame)
  if not frame.file then return nil end
  return ("%s:%s"):format(base_name(frame.file), frame.line or "?")
end

-- Where an instruction comes from: the function's own line, then what is inlined there.
local function origin(row, linkage_name)
  local own
  for i, frame in ipairs(row.frames) do
    if frame.linkage_name == linkage_name then
      own = i
      break
    end
  end
  if not own then return row.frames[1] and "in " .. row.frames[#row.frames].name or "" end
  local parts = { place(row.frames[own]) or "line not known" }
  for i = own - 1, 1, -1 do
    local where = place(row.frames[i])
    parts[#parts + 1] = row.frames[i].name .. (where and " " .. where or "")
  end
  return table.concat(parts, " > ")
end

local function write_code(annotation, columns, say)
  local rows, total = annotation.code.rows, annotation.total
  say("")
  say("code from %s", text.escape(annotation.code.image.path))
  say("   self    total      address")
  local all = #rows <= SHORT
  local shown = near(#rows, AROUND_CODE, function(i) return rows[i].total > 0 end)
  local hidden, from, range = 0, nil, 0
  local function tell_hidden()
    if hidden > 0 then
      say("%s  ... %s that cost nothing", BLANK, text.plural(hidden, "instruction"))
    end
    hidden = 0
  end
  for i, row in ipairs(rows) do
    if all or shown[i] then
      tell_hidden()
      if row.range ~= range then
        say("")
        range, from = row.range, nil
      end
      local where = origin(row, annotation.linkage_name)
      if where ~= from then
        say("%s  %s", BLANK, text.fit(text.escape(where), columns and columns - #BLANK - 2))
      end
      from = where
      say("%s  %s", shares(row, total), text.fit(("%11x:  %s"):format(row.address,
        text.escape(row.text)), columns and columns - #BLANK - 2))
    else
      hidden = hidden + 1
    end
  end
  tell_hidden()
  if annotation.code.unplaced > 0 then
    say("%s of its own cost is at no instruction of this",
      text.percent(annotation.code.unplaced / total))
  end
end

--- Write annotations (annotation.lua): profile is that of the capture (profile.lua) and tells
-- what all is; options.columns is the width of lines or nil.
function M.write(annotations, profile, options, write)
  local function say(...) write((...):format(select(2, ...)), "\n") end
  local whole, source = profile.tree.weight, profile.source
  for i, annotation in ipairs(annotations) do
    if i > 1 then say("") end
    say("%s in %s%s", text.escape(annotation.name),
      text.escape(annotation.path ~= "" and annotation.path or "no file"),
      annotation.build_id ~= "" and ", build ID " .. text.escape(annotation.build_id) or "")
    say("%s self, %s total: %s of %s; shares are of its total",
      numbers.amount(source, annotation.self), numbers.amount(source, annotation.total),
      text.percent(numbers.share(profile, annotation.total)), numbers.amount(source, whole))
    for _, file in ipairs(annotation.files) do
      write_file(file, annotation.total, options.columns, say)
    end
    if annotation.code then write_code(annotation, options.columns, say) end
    if annotation.problem then
      say("")
      say("%s: %s", annotation.code and "code may be missing" or "no code",
        text.escape(annotation.problem))
    end
  end
end

return M
