--- doc.lua - what the sources say of the public API: for docs/api.md and the prompt's help.
--
-- A public function is documented by the `---` comment above it, of which the lines that follow
-- may begin with `--`.  A comment line "-- ## Title" begins a section.

local M = {}

--- The files of the API, below lua/microscope/: what a table that is local in the file is called by
-- those who use it, and the section of its functions where the file names none.
M.FILES = {
  { file = "init.lua", names = { M = "microscope." } },
  { file = "capture.lua", names = { Capture = "cap:" }, section = "Captures (cap)",
    about = "An open capture. Rows and ids count from 0; an id of microscope.NONE is none; times"
      .. " are nanoseconds since the recording's start. [format.md](format.md) lists the tables and"
      .. " columns. Pointers die with cap:close(); strings stay." },
  { file = "capture.lua", names = { Column = "column:" }, section = "Columns (column)" },
  { file = "writer.lua", names = { Writer = "w:" }, section = "Writers (w)",
    about = "What microscope.write_capture gives its function." },
}

-- The text of a comment's lines: marks off, lines kept.
local function text_of(comment)
  local out = {}
  for i, line in ipairs(comment) do out[i] = line:gsub("^%-%-%-? ?", "") end
  return table.concat(out, "\n")
end

-- What a line of code declares: the table, the separator, the name, the parameters (nil: a value).
local function declared(line)
  local owner, mark, name, params = line:match("^function ([%u][%w]*)([.:])([%a][%w_]*)(%b())")
  if owner then return owner, mark, name, params:sub(2, -2) end
  owner, name = line:match("^([%u][%w]*)%.([%a][%w_]*) = ")
  return owner, ".", name, nil
end

--- The public functions and values of a source's text: a list of {name=, short=, params=, text=,
-- section=}, in order; params is nil for a value, text "" where there is no comment.  names: as in
-- M.FILES; section: the first one's title.
function M.parse(source, names, section)
  local out, comment = {}, {}
  for line in (source .. "\n"):gmatch("(.-)\n") do
    local title = line:match("^%-%- ## (.+)$")
    if title then
      section, comment = title, {}
    elseif line:match("^%-%-") then
      if line:match("^%-%-%-") then comment = {} end
      comment[#comment + 1] = line
    else
      local owner, _, name, params = declared(line)
      if owner and names[owner] and name:sub(1, 1) ~= "_" then
        local documented = comment[1] and comment[1]:match("^%-%-%-")
        out[#out + 1] = { name = names[owner] .. name, short = name, params = params,
          section = section, text = documented and text_of(comment) or "" }
      end
      comment = {}
    end
  end
  return out
end

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

--- All of the API: a list of entries (M.parse), by section.  folder: where lua/microscope is.
function M.all(folder)
  local out = {}
  for _, it in ipairs(M.FILES) do
    for _, entry in ipairs(M.parse(read(folder .. "/" .. it.file), it.names, it.section)) do
      entry.about = it.about
      out[#out + 1] = entry
    end
  end
  return out
end

--- How an entry is written down: "microscope.tree(cap, keys, selection)".
function M.signature(entry)
  return entry.params and ("%s(%s)"):format(entry.name, entry.params) or entry.name
end

--- The text of an entry in the words of those who use it.
function M.text(entry) return (entry.text:gsub("%f[%w_]M%.(%a)", "microscope.%1")) end

--- The reference as Markdown: a heading for each section and entry.
function M.markdown(entries)
  local out, section = {}, nil
  for _, entry in ipairs(entries) do
    if entry.section ~= section then
      section = entry.section
      out[#out + 1] = ("## %s\n"):format(section or "General")
      if entry.about then out[#out + 1] = entry.about .. "\n" end
    end
    -- A list or a table within a comment keeps its lines; the rest is one paragraph.
    out[#out + 1] = ("### `%s`\n\n%s\n"):format(M.signature(entry), M.text(entry))
  end
  return table.concat(out, "\n")
end

return M
