-- The recorder itself: when it is interrupted, killed, short of room, or asked for what cannot be.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.cases.kit")

local AS_NOBODY = "setpriv --reuid=65534 --regid=65534 --clear-groups "

local function works(command)
  local _, _, status = helper.run(command)
  return status == 0
end

local function script(text, fn) kit.with(kit.script(text), fn) end

local function files(run)
  local out = helper.run("ls -A | grep -vxE 'script|ready|pid'", run.folder)
  return out
end

local function is_there(path)
  local file = io.open(path)
  if file then file:close() end
  return file ~= nil
end

-- A complete, readable capture, or none.
local function assert_whole_or_none(run)
  if not is_there(run.path) then return false end
  local cap, err = capture.open(run.path)
  assert.is_nil(err and tostring(err))
  cap:close()
  return true
end

local SIGNALS = { INT = 2, TERM = 15, HUP = 1 }

-- The program's own status: the recorder ends it by SIGTERM.
local ENDED = 128 + 15

describe("an interrupted recorder", function()
  setup(kit.builds("forever", "chain", "storm"))

  for name in pairs(SIGNALS) do
    it("saves what it has and ends the program: " .. name, function()
      script(([[
        mkfifo ready
        $microscope record -F 1999 -o x.usprof -- $programs/forever > ready & recorder=$!
        read -r pid < ready
        burns $pid 20
        kill -%s $recorder
        wait $recorder; status=$?
        [ -d /proc/$pid ] && exit 99
        exit $status]]):format(name), function(run)
          assert.equal(ENDED, run.status, run.err)
          assert.equal("x.usprof\n", files(run))
          run:assert_chain({ "main", "top", "middle", "leaf" }, 20)
        end)
    end)
  end

  it("leaves a whole capture or none at any moment of its life, and no program", function()
    -- Moments are spread over start, recording and saving; which of them hits what is chance, the
    -- property holds for all.
    for i, name in ipairs { "INT", "TERM", "HUP", "INT", "TERM", "HUP", "INT", "TERM", "HUP",
      "INT", "TERM", "HUP", "INT", "TERM", "HUP", "INT" } do
      script(([[
        $microscope record -q -o x.usprof -- sh -c 'echo $$ > pid; exec $0/chain 150' $programs &
        recorder=$!
        sleep %.3f
        kill -%s $recorder 2>/dev/null
        wait $recorder; status=$?
        [ -s pid ] && [ -d /proc/$(cat pid) ] && exit 99
        exit $status]]):format(i * 0.017, name), function(run)
          local status = run.status
          -- The program's status, or that of a recorder that was not up yet.
          assert.is_true(status == 0 or status == ENDED or status == 128 + SIGNALS[name],
            status .. ": " .. run.err)
          local whole = assert_whole_or_none(run)
          assert.equal(whole and "x.usprof\n" or "", files(run))
          -- A recorder that says all is well has written its file.
          if status == 0 then assert.is_true(whole) end
        end)
    end
  end)

  it("twice does not cut the saving short", function()
    script([[
      mkfifo ready
      $microscope record -q -o x.usprof -- $programs/forever > ready & recorder=$!
      read -r pid < ready
      for i in 1 2 3 4 5 6 7 8 9 10; do kill -INT $recorder; done
      wait $recorder]], function(run)
        assert.equal(ENDED, run.status, run.err)
        assert.is_true(assert_whole_or_none(run))
        assert.equal("x.usprof\n", files(run))
      end)
  end)

  it("ends a program that is stopped or ignores signals", function()
    script([[
      mkfifo ready
      $microscope record -q -o x.usprof -- $programs/forever > ready & recorder=$!
      read -r pid < ready
      kill -STOP $pid
      kill -INT $recorder
      wait $recorder; status=$?
      [ -d /proc/$pid ] && exit 99
      exit $status]], function(run)
        assert.equal(ENDED, run.status, run.err)
      end)
  end)

  it("that attached leaves the program running", function()
    script([[
      mkfifo ready
      $programs/forever > ready & pid=$!
      read -r line < ready
      $microscope record -q -o x.usprof -p $pid & recorder=$!
      until readlink /proc/$recorder/fd/* | grep -q forever; do :; done
      kill -INT $recorder
      wait $recorder; status=$?
      kill -0 $pid || exit 99
      kill -9 $pid
      exit $status]], function(run)
        assert.equal(0, run.status, run.err)
        assert.is_true(assert_whole_or_none(run))
      end)
  end)

  it("that is killed leaves no half file under the name, and the attached program alone", function()
    script([[
      mkfifo ready
      $programs/forever end > ready & pid=$!
      read -r line < ready
      echo old > x.usprof
      $microscope record -q -o x.usprof -p $pid & recorder=$!
      until readlink /proc/$recorder/fd/* | grep -q forever; do :; done
      kill -9 $recorder
      wait $recorder
      kill -0 $pid || exit 99
      touch end
      wait $pid]], function(run)
        assert.equal(0, run.status, run.err)
        assert.equal("old\n", helper.read(run.path))
      end)
  end)

  it("that is killed does no harm to the program it started", function()
    script([[
      mkfifo ready
      $microscope record -q -o x.usprof -- $programs/forever end > ready & recorder=$!
      read -r pid < ready
      kill -9 $recorder
      wait $recorder
      kill -0 $pid || exit 99
      touch end
      while [ -d /proc/$pid ]; do :; done]], function(run)
        assert.equal(0, run.status, run.err)
        assert.is_false(is_there(run.path))
      end)
  end)
end)

describe("the output", function()
  setup(kit.builds("chain", "forever"))

  it("on a full disk is one clear error, no file and no program left", function()
    if not works("unshare -m true") then
      pending("no file system can be mounted here (CAP_SYS_ADMIN)")
      return
    end
    script([[
      mkdir small && mount -t tmpfs -o size=8k none small || exit 98
      $microscope record -F 1999 -o small/x.usprof -- sh -c 'echo $$ > pid; exec $0/chain 3000' \
        $programs; status=$?
      ls -A small > left
      umount small
      [ -d /proc/$(cat pid) ] && exit 99
      exit $status]], function(run)
        assert.equal(1, run.status, run.err)
        assert.matches("No space left on device", run.err)
        assert.equal(1, select(2, run.err:gsub("\n", "")), run.err)
        assert.equal("", helper.read(run.folder .. "/left"))
      end)
  end)

  for what, path in pairs {
    ["in a folder that is not there"] = "nowhere/x.usprof",
    ["that is a folder"] = "folder",
    ["in a folder that is a file"] = "script/x.usprof",
  } do
    it(what .. " is refused before the program starts", function()
      script("mkdir folder; $microscope record -o " .. path .. " -- sh -c 'touch started'",
        function(run)
          assert.equal(1, run.status)
          assert.equal(1, select(2, run.err:gsub("\n", "")), run.err)
          assert.is_not_nil(run.err:find(path:match("^[^/]+"), 1, true), run.err)
          assert.equal("folder\n", files(run))
        end)
    end)
  end

  it("where one may not write is refused before the program starts", function()
    if not works(AS_NOBODY .. "true") then
      pending("setpriv cannot become another user here (CAP_SETUID)")
      return
    end
    script("mkdir -m 755 own; " .. AS_NOBODY
      .. "$microscope record -o own/x.usprof -- sh -c 'echo started'", function(run)
        assert.equal(1, run.status)
        assert.matches("Permission denied", run.err)
        assert.equal("", run.out)
      end)
  end)

  it("keeps an older capture as FILE.old", function()
    script([[
      echo older > x.usprof
      $microscope record -q -o x.usprof -- true && $microscope record -q -o x.usprof -- true]],
      function(run)
        assert.equal(0, run.status, run.err)
        assert.equal("x.usprof\nx.usprof.old\n", files(run))
        local cap = assert(capture.open(run.path .. ".old"))
        cap:close()
      end)
  end)
end)

describe("options of time and processes", function()
  setup(kit.builds("chain", "forever", "storm", "renames"))

  it("--duration ends a program that was started", function()
    script([[
      $microscope record -F 1999 --duration 0.3 -o x.usprof -- $programs/forever > pid; status=$?
      [ -d /proc/$(cat pid) ] && exit 99
      exit $status]], function(run)
        assert.equal(ENDED, run.status, run.err)
        local s = run:summary()
        assert.is_true(s.duration_ns >= 300e6 and s.duration_ns < 2e9, s.duration_ns)
        run:assert_chain({ "main", "top", "middle", "leaf" }, 20)
      end)
  end)

  it("--delay leaves out what was before", function()
    script([[
      mkfifo ready
      $microscope record -F 1999 --delay 0.3 -o x.usprof -- $programs/forever end > ready &
      recorder=$!
      read -r pid < ready
      burns $pid 60
      touch end
      wait $recorder]], function(run)
        assert.equal(0, run.status, run.err)
        run:assert_chain({ "main", "top", "middle", "leaf" }, 20)
        -- The loader's work was before.
        assert.equal(0, run:count(function(names)
          return names[1]:match("^ld%-linux") ~= nil
        end))
        capture.with(run.path, function(cap)
          local time = cap:array("samples", "time_ns")
          for i = 0, cap:rows("samples") - 1 do assert.is_true(tonumber(time[i]) < 10e9) end
        end)
        assert.is_true(run:summary().duration_ns < 5e9)
      end)
  end)

  it("a program that ends within --delay gives an empty capture", function()
    script("$microscope record --delay 30 -o x.usprof -- true", function(run)
      assert.equal(0, run.status, run.err)
      assert.equal(0, run:summary().samples)
    end)
  end)

  it("--no-children leaves out what an attached program starts", function()
    script([[
      mkfifo ready
      sh -c 'echo $$; until [ -e go ]; do :; done; $0/chain 300; :' $programs > ready & pid=$!
      read -r line < ready
      $microscope record -q -F 1999 --no-children -o x.usprof -p $pid & recorder=$!
      until readlink /proc/$recorder/fd/* | grep -q libc; do :; done
      sleep 0.1
      touch go
      wait $recorder]], function(run)
        assert.equal(0, run.status, run.err)
        assert.equal(1, run:summary().processes)
        assert.is_true(run:summary().samples > 0)
        assert.equal(0, run:with("leaf"), run:tree())
      end)
  end)

  it("--no-children leaves out what a started program starts", function()
    script("$microscope record -F 1999 --no-children -o x.usprof -- $programs/renames"
      .. " $programs/chain", function(run)
        assert.equal(0, run.status, run.err)
        assert.equal(1, run:summary().processes)
        assert.is_true(run:with("work_third") >= 50)
        assert.equal(0, run:with("work_in_child") + run:with("leaf"))
      end)
  end)

  it("several pids are recorded together, until the last ends", function()
    script([[
      mkfifo a b
      $programs/forever > a & one=$!
      read -r line < a
      $programs/forever > b & two=$!
      read -r line < b
      $microscope record -F 1999 -o x.usprof -p $one,$two & recorder=$!
      records $recorder
      burns $one 20
      burns $two 20
      kill -9 $one
      burns $two 10
      kill -0 $recorder || exit 99
      kill -9 $two
      wait $recorder]], function(run)
        assert.equal(0, run.status, run.err)
        assert.equal(2, run:summary().processes)
        run:assert_chain({ "main", "top", "middle", "leaf" }, 20)
        local samples = {}
        capture.with(run.path, function(cap)
          local thread = cap:array("samples", "thread")
          for i = 0, cap:rows("samples") - 1 do
            local id = tonumber(thread[i])
            samples[id] = (samples[id] or 0) + 1
          end
        end)
        assert.is_true(samples[0] > 0 and samples[1] > 0)
      end)
  end)

  it("a pid that is not there is one clear error", function()
    script([[
      sh -c 'echo $$' > pid
      $microscope record -o x.usprof -p $(cat pid)]], function(run)
        assert.equal(1, run.status)
        assert.is_not_nil(run.err:find(helper.read(run.folder .. "/pid"):match("%d+"), 1, true))
        assert.matches("no such process", run.err:lower())
        assert.equal("", files(run))
      end)
  end)

  it("another user's process is refused, with what would help", function()
    if not works(AS_NOBODY .. "true") then
      pending("setpriv cannot become another user here (CAP_SETUID)")
      return
    end
    script([[
      chmod 777 . && mkfifo ready
      $programs/forever > ready & pid=$!
      read -r line < ready
      ]] .. AS_NOBODY .. [[$microscope record --duration 5 -o x.usprof -p $pid; status=$?
      kill -9 $pid
      exit $status]], function(run)
        assert.equal(1, run.status, run.err)
        assert.matches("CAP_[A-Z]+", run.err)
        assert.equal(1, select(2, run.err:gsub("\n", "")), run.err)
        assert.equal("", files(run))
      end)
  end)
end)
