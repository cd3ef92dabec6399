-- A signal that ends `convert` leaves no file of its own.

local helper = require("spec.helper")

local SIGNALS = { INT = 2, TERM = 15, HUP = 1 }

describe("convert that a signal ends", function()
  local folder

  before_each(function() folder = helper.folder() end)
  after_each(function() helper.remove(folder) end)

  -- A format that waits for a pipe that says nothing, with its output begun.
  local WAITS = [[
    return { summary = "Waits.", extensions = {}, read = function(_, ctx)
      ctx.writer:row("processes", {})
      return io.open("hold"):read("*a") ~= nil
    end }]]

  -- A shell's job in the background ignores SIGINT: env undoes that.
  local function ended(name, output, began)
    helper.run("mkdir -p config/microscope/formats tmp && mkfifo hold && touch in", folder)
    helper.write(folder .. "/config/microscope/formats/waits.lua", WAITS)
    helper.run("chmod -R go-w config", folder)
    local _, err, status = helper.run(([[
      export TMPDIR=$PWD/tmp XDG_CONFIG_HOME=$PWD/config
      env --default-signal=INT %s convert --from waits in %s & job=$!
      exec 3> hold
      for _ in $(seq 600); do
        ls %s >/dev/null 2>&1 && break
        sleep 0.05
      done
      ls %s >/dev/null || { kill -9 $job; exit 99; }
      kill -%s $job
      wait $job]]):format(helper.quote(helper.stage .. "/bin/microscope"), output, began, began,
      name), folder)
    assert.equal(128 + SIGNALS[name], status, err)
    assert.equal("config\nhold\nin\ntmp\n", (helper.run("ls; ls tmp", folder)))
  end

  for name in pairs(SIGNALS) do
    it("writing a capture: " .. name, function() ended(name, "out.usprof", "out.usprof.tmp.*") end)

    it("writing by way of a capture: " .. name, function()
      ended(name, "out.pb.gz", "tmp/microscope.*.tmp.*")
    end)
  end
end)
