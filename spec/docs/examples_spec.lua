-- The code blocks of the documents: each file is written, each command run, each output compared.
--
--   <!-- file: NAME -->     the ```lua block that follows is that file
--   ```console              "$ COMMAND" lines and what they print
--
-- MIC_UPDATE=1 writes the outputs anew, where they are the same in every run.  Where they are not
-- (the tutorial records), a document's lines must be seen in the same order, digits aside; a line
-- "..." stands for any.

local helper = require("spec.helper")
local sources = require("spec.support.sources")
local microscope = require("microscope")

local UPDATE = os.getenv("MIC_UPDATE") == "1"

-- A document's pieces: {text=} between blocks, {file=, code=}, or {console=} lists of {command=,
-- expected=}.
local function pieces_of(text)
  local out, at = {}, 1
  while true do
    local from, to, kind, body = text:find("```(%a+)\n(.-)```\n", at)
    if not from then break end
    local before = text:sub(at, from - 1)
    out[#out + 1] = { text = before }
    local file = before:match("<!%-%- file: (%S+) %-%->\n$")
    local piece = { kind = kind, file = file, body = body }
    if kind == "console" then
      piece.commands = {}
      for line in body:gmatch("(.-)\n") do
        local command = line:match("^%$ (.*)$")
        local last = piece.commands[#piece.commands]
        if command then
          piece.commands[#piece.commands + 1] = { command = command, expected = "" }
        else
          last.expected = last.expected .. line .. "\n"
        end
      end
    end
    out[#out + 1] = piece
    at = to + 1
  end
  out[#out + 1] = { text = text:sub(at) }
  return out
end

local function normal(line)
  return (line:gsub("%d[%d,.]*", "#"):gsub("%s+", " "):gsub("^ ", ""):gsub(" $", "")
    :gsub("# [mu]?s", "# s"))
end

-- Nil when all lines are seen in order, else the first that is not.
local function unseen(expected, actual)
  local lines, at = {}, 1
  for line in actual:gmatch("(.-)\n") do lines[#lines + 1] = normal(line) end
  for line in expected:gmatch("(.-)\n") do
    local want = normal(line)
    if line ~= "..." and want ~= "" then
      while lines[at] and not lines[at]:find(want, 1, true) do at = at + 1 end
      if not lines[at] then return line end
      at = at + 1
    end
  end
end

local function run(command, folder)
  local out, err, status = helper.run(("unset COLUMNS\nexport PATH=%s/bin:$PATH\n%s"):format(
    helper.quote(helper.stage), command), folder)
  return out .. err, status
end

local function rewritten(pieces)
  local out = {}
  for _, piece in ipairs(pieces) do
    if piece.text then
      out[#out + 1] = piece.text
    else
      local body = piece.body
      if piece.commands then
        body = ""
        for _, it in ipairs(piece.commands) do
          body = body .. "$ " .. it.command .. "\n" .. it.actual
        end
      end
      out[#out + 1] = "```" .. piece.kind .. "\n" .. body .. "```\n"
    end
  end
  return table.concat(out)
end

describe("the examples of", function()
  local folder

  setup(function()
    folder = helper.folder()
    for _, name in ipairs { "any", "server" } do
      assert(microscope.generate { path = folder .. "/" .. name .. ".usprof", samples = 500,
        stacks = 40, seed = 3 })
    end
    os.execute(("cp %s/examples/wordcount %s/fixtures/programs/wordcount.c %s"):format(
      helper.quote(helper.build), helper.quote(helper.root), helper.quote(folder)))
  end)

  teardown(function() helper.remove(folder) end)

  local function check(path, varies)
    local pieces = pieces_of(sources.read(path))
    local commands = 0
    for _, piece in ipairs(pieces) do
      if piece.file then helper.write(folder .. "/" .. piece.file, piece.body) end
      if piece.kind == "lua" and not piece.file then
        assert(loadstring(piece.body, path))
      end
      for _, it in ipairs(piece.commands or {}) do
        commands = commands + 1
        local status
        it.actual, status = run(it.command, folder)
        assert.equal(0, status, it.command .. "\n" .. it.actual)
        if varies then
          local line = unseen(it.expected, it.actual)
          assert.is_nil(line, ("%s: '%s' is not in:\n%s"):format(it.command, line, it.actual))
        elseif not UPDATE then
          assert.equal(it.expected, it.actual, it.command)
        end
      end
    end
    if UPDATE and not varies then helper.write(helper.root .. "/" .. path, rewritten(pieces)) end
    return commands
  end

  it("the cookbook", function() assert.is_true(check("docs/cookbook.md", false) >= 20) end)

  it("the tutorial", function()
    if run("microscope doctor", folder):find("in user space: no", 1, true) then
      return pending("needs the right to record")
    end
    assert.is_true(check("docs/tutorial.md", true) >= 8)
  end)

  it("the plugins' and the API's pages", function()
    check("docs/plugins.md", false)
    check("docs/api.md", false)
    local out, status = run("microscope query ./cpus.lua server.usprof -- --least 3", folder)
    assert.equal(0, status)
    assert.matches("THREAD +CPUS\nmain", out)
    out, status = run("microscope query ./cpus.lua --help", folder)
    assert.equal(0, status)
    assert.matches("%-%-least N", out)
    out = run('LUA_PATH="$(microscope lua-path)" luajit my-analysis.lua', folder)
    assert.matches("^[%d.]+ %%\t[^\n]+\n[^\n]+\n[^\n]+\n$", out)
  end)

  it("the queries' page: it lists what is shipped, in the words of the manifests' names", function()
    local text = sources.read("docs/queries.md")
    for _, path in ipairs(sources.files("^queries/.*%.lua$")) do
      local name = path:match("([^/]+)%.lua$")
      assert.is_truthy(text:find("\n| `" .. name .. "` | ", 1, true), name)
    end
    for line in text:match("## Examples\n(.*)$"):gmatch("    (microscope [^\n]+)") do
      assert.is_truthy(sources.read("lua/microscope/cli/query.lua"):find(
        line:match("microscope query ([%S]+)"), 1, true), line)
    end
  end)
end)
