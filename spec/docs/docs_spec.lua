-- The documents say what the program does.

local cjson = require("cjson")

local helper = require("spec.helper")
local sources = require("spec.support.sources")
local capture = require("microscope.capture")

local function none(findings) assert.equal("", table.concat(findings, "\n")) end

describe("the documents", function()
  it("have no dead links between them", function()
    local found = {}
    for _, path in ipairs(sources.files("%.md$")) do
      local folder = path:match("^(.*/)") or ""
      for target in sources.read(path):gmatch("%]%(([^)#]+)[^)]*%)") do
        if not target:match("^%a+:") and not io.open(helper.root .. "/" .. folder .. target) then
          found[#found + 1] = path .. ": " .. target
        end
      end
    end
    none(found)
  end)

  it("list every option of a command, and no other", function()
    for page, commands in pairs { convert = "convert", record = "record", report = "report",
      plugins = "plugins", queries = "query repl" } do
      local help, text, command = "", sources.read("docs/" .. page .. ".md"), commands
      for name in commands:gmatch("%S+") do
        help = help .. helper.microscope(name .. " --help"):match("^(.-)\nExamples:")
      end
      local options, found = {}, {}
      for option in help:gmatch("%-%-[%a][%a%-]+") do options[option] = true end
      options["--help"] = nil
      for option in pairs(options) do
        if not text:find("\n| [^\n|]*" .. option:gsub("%-", "%%-")) then
          found[#found + 1] = command .. ": not documented: " .. option
        end
      end
      for row in text:gmatch("\n(| `%-[^\n]*)") do
        for option in row:match("^| ([^|]*)|"):gmatch("%-%-[%a][%a%-]+") do
          if not options[option] then found[#found + 1] = command .. ": no option " .. option end
        end
      end
      none(found)
    end
  end)

  it("have a section on cost and on caveats for each command that measures", function()
    for _, path in ipairs { "docs/record.md", "docs/report.md" } do
      local text = sources.read(path)
      assert.matches("\n## What it costs\n", text)
      assert.matches("\n## Caveats\n", text)
      assert.matches("\n## Examples\n", text)
    end
  end)

  it("name every field of the JSON report", function()
    local folder = helper.folder()
    assert(capture.generate { path = folder .. "/a.usprof", samples = 100, stacks = 10, seed = 1 })
    local report = cjson.decode((helper.microscope("report --format json --tree a.usprof", folder)))
    helper.remove(folder)
    local text, found = sources.read("docs/report-json.md"), {}
    local function check(object, where)
      for name in pairs(object) do
        if not text:find("%f[%w_]" .. name .. "%f[^%w_]") then
          found[#found + 1] = where .. "." .. name
        end
      end
    end
    check(report, "report")
    for _, name in ipairs { "off", "recorder", "source" } do
      check(report.summary[name], "summary." .. name)
    end
    check(report.summary, "summary")
    check(report.functions[1], "functions")
    check(report.ends[1], "ends")
    check(report.tree[1], "tree")
    none(found)
  end)

  it("describe the presets as they are", function()
    local text = sources.read("docs/record.md")
    for _, name in ipairs { "prod", "dev", "max" } do
      local preset = assert(loadfile(helper.root .. "/presets/" .. name .. ".lua"))()
      local rate, copy, budget = text:match("\n| `" .. name
        .. "` | ([%d,]+) Hz | (%d+) KiB | ([^|]-) |")
      assert.equal(preset.rate, tonumber((rate:gsub(",", ""))))
      assert.equal(preset.stack_bytes, tonumber(copy) * 1024)
      assert.equal(preset.budget, tonumber((budget:match("^%d+"))))
    end
  end)

  it("document every public function of the Lua API", function()
    local found = {}
    for _, path in ipairs(sources.files("^lua/microscope/.*%.lua$")) do
      local lines = sources.lines(path)
      for i, line in ipairs(lines) do
        local name = line:match("^function M[.:]([%a][%w_]*)")
        -- A command's table is called by the command line alone.
        if name and not path:match("/cli/[%w_]+%.lua$") and not lines[i - 1]:match("^%-%-") then
          found[#found + 1] = ("%s:%d: %s"):format(path, i, name)
        end
      end
    end
    none(found)
  end)
end)
