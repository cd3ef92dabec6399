-- Command lines and what they print: spec/golden/COMMAND/CASE.cmd and CASE.out.
--
-- A .cmd is a shell script in which `microscope` is the installed one and $FIXTURES a folder of
-- generated captures.  Lines `# normalise: NAME...` name what differs from run to run.  The .out
-- is what it printed, then "status N".  MIC_UPDATE=1 writes the .out files anew.

local helper = require("spec.helper")
local sources = require("spec.support.sources")
local capture = require("microscope.capture")

-- name -> function(text): what a run may change.
local NORMALISERS = {
  -- Where this build is installed.
  prefix = function(text) return (text:gsub(helper.stage:gsub("%p", "%%%0"), "PREFIX")) end,
}

local UPDATE = os.getenv("MIC_UPDATE") == "1"

describe("the command line:", function()
  local fixtures

  setup(function()
    fixtures = helper.folder()
    local function generate(name, options)
      options.path = fixtures .. "/" .. name
      assert(capture.generate(options))
    end
    generate("small.usprof", { samples = 2000, stacks = 60, functions = 40, modules = 4,
      depth_max = 12, seed = 3 })
    -- The same program again, some of it more often: stacks are the same, samples others.
    generate("other.usprof", { samples = 2600, stacks = 60, functions = 40, modules = 4,
      depth_max = 12, seed = 3, cpus = 3 })
    generate("tiny.usprof", { samples = 12, stacks = 4, functions = 6, modules = 1, depth_max = 5,
      seed = 5 })
    helper.write(fixtures .. "/damaged.usprof", helper.read(fixtures .. "/small.usprof"):sub(1, -9))
  end)

  teardown(function() helper.remove(fixtures) end)

  for _, path in ipairs(sources.files("^spec/golden/.*%.cmd$")) do
    it(path:match("^spec/golden/(.*)%.cmd$"), function()
      local script = sources.read(path)
      local out, err, status = helper.run(("PATH=%s/bin:$PATH FIXTURES=%s\nexport COLUMNS=80\n%s")
        :format(helper.quote(helper.stage), helper.quote(fixtures), script), fixtures)
      local text = ("%s%s-- status %d\n"):format(out, err ~= "" and "-- stderr\n" .. err or "",
        status)
      for name in (script:match("# normalise: ([^\n]*)") or ""):gmatch("%S+") do
        text = assert(NORMALISERS[name], "no normaliser " .. name)(text)
      end
      local golden = helper.root .. "/" .. path:gsub("%.cmd$", ".out")
      if UPDATE then helper.write(golden, text) end
      assert.equal(helper.read(golden), text)
    end)
  end

  it("has no output without a command", function()
    for _, path in ipairs(sources.files("^spec/golden/.*%.out$")) do
      assert.is_truthy(io.open(helper.root .. "/" .. path:gsub("%.out$", ".cmd")), path)
    end
  end)
end)
