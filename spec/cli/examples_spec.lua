-- The examples of `microscope report --help` do what they say.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local report = require("microscope.cli.report")

describe("the example", function()
  local folder

  setup(function()
    folder = helper.folder()
    for i, name in ipairs { "microscope", "server", "new", "old" } do
      assert(capture.generate { path = ("%s/%s.usprof"):format(folder, name), samples = 2000,
        stacks = 80, functions = 60, modules = 4, seed = 3, cpus = i })
    end
  end)

  teardown(function() helper.remove(folder) end)

  for _, example in ipairs(report.examples) do
    it(example[1], function()
      local command = example[1]:gsub("| jq .*$", "| cat"):gsub("^microscope", "'%%s'")
      -- Symbols of the examples are of a program that is not generated.
      local function_name = "commit_Stream_0"
      command = command:gsub("'lookup%*'", function_name):gsub("%-%-drop main",
        "--drop " .. function_name):gsub("%-%-annotate [%w_:'*]+", "--annotate " .. function_name)
      command = command:format(helper.stage .. "/bin/microscope")
      local out, err, status = helper.run("bash -o pipefail -c " .. helper.quote(command), folder)
      if example[1]:find("--annotate", 1, true) then
        -- Generated captures have no images to take code from.
        assert.is_true(status == 0 or status == 1)
      else
        assert.same({ "", 0 }, { err, status })
        assert.is_true(#out > 0 or example[1]:find("--flame", 1, true) ~= nil)
      end
    end)
  end
end)
