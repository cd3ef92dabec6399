-- Programs whose files are gone: named as they were, while they ran or afterwards.

local helper = require("spec.helper")
local kit = require("spec.cases.kit")
local symbolize = require("spec.symbolize.kit")

local CHAIN = { "main", "top", "middle", "leaf" }

-- Start $victim, attach with the options, and do one thing when the recorder has its file.
local function attached(start, during, options)
  return kit.script(([[
    mkfifo ready
    (%s) > ready & shell=$!
    read -r pid < ready
    $microscope record -q -F 1999 %s -o x.usprof -p $pid & recorder=$!
    until readlink /proc/$recorder/fd/* | grep -qE 'victim|forever|held'; do sleep 0.01; done
    %s
    burns $pid 25
    kill -9 $pid; wait $recorder; status=$?; wait $shell
    rm -rf victim hidden
    exit $status]]):format(start, options, during))
end

-- How each is started and what becomes of it; all leave nothing at the recorded path.
local FATES = {
  ["a program that was deleted"] = { "cp $programs/forever victim && exec ./victim", "rm victim" },
  ["a program that was replaced"] = { "cp $programs/forever victim && exec ./victim",
    "cp $programs/replacement other && mv other victim" },
  ["a program that only memory holds"] = { "exec $programs/memfd $programs/forever", ":" },
}

local NAMESPACE = [[exec unshare -m sh -c 'mkdir -p hidden && mount -t tmpfs none hidden &&
  cp "$1"/forever hidden/ && exec hidden/forever' sh $programs]]

local function can_unshare()
  local _, _, status = helper.run("unshare -m true")
  return status == 0
end

describe("after it is gone,", function()
  setup(kit.builds("forever", "replacement", "memfd", "chain", "short_lived"))

  local function named_both_ways(fate)
    for _, options in ipairs { "", "--symbols later --keep-images" } do
      kit.with(attached(fate[1], fate[2], options), function(run)
        assert.equal(0, run.status, run.err)
        if options ~= "" then
          assert.equal(0, run:with("leaf"))
          local _, err, status = symbolize.symbolize("x.usprof", run.folder)
          assert.equal(0, status, err)
          run = kit.open(run.path, run.folder)
        end
        run:assert_chain(CHAIN, 20)
        assert.equal(0, run:count(function(names)
          return names[#names]:match("^impostor") ~= nil
        end))
      end)
    end
  end

  for what, fate in pairs(FATES) do
    it(what .. " has its own names", function() named_both_ways(fate) end)
  end

  it("a program of a mount namespace that ended with it has its own names", function()
    if not can_unshare() then
      pending("no mount namespace can be made here (CAP_SYS_ADMIN)")
      return
    end
    named_both_ways { NAMESPACE, ":" }
  end)

  it("each of a hundred short-lived copies has its own names", function()
    local run = kit.script([[
      cp $programs/chain gone
      $microscope record -q -F 1999 --symbols later --keep-images -o x.usprof -- \
        $programs/short_lived 100 ./gone 12
      rm gone]])
    kit.with(run, function()
      assert.equal(0, run.status, run.err)
      local _, err, status = symbolize.symbolize("x.usprof", run.folder)
      assert.equal(0, status, err)
      run:assert_chain(CHAIN, 300)
    end)
  end)
end)
