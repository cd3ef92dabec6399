-- The program that is recorded: how it starts and ends, what it sees, what it leaves.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.cases.kit")

local AS_NOBODY = "setpriv --reuid=65534 --regid=65534 --clear-groups "

local function works(command)
  local _, _, status = helper.run(command)
  return status == 0
end

-- Run a script and look at it; the Run's folder is removed after.
local function script(text, fn) kit.with(kit.script(text), fn) end

-- The folder's files besides the script.
local function files(run)
  local out = helper.run("ls -A | grep -vx script", run.folder)
  return out
end

local function is_readable(run)
  local cap, err = capture.open(run.path)
  assert.is_nil(err and tostring(err))
  cap:close()
end

describe("the recorded program", function()
  setup(kit.builds("chain", "forever", "storm", "sleepers"))

  for _, status in ipairs { 0, 3, 255 } do
    it("passes on its status " .. status, function()
      script(("$microscope record -o x.usprof -- sh -c 'exit %d'"):format(status), function(run)
        assert.equal(status, run.status, run.err)
        is_readable(run)
        assert.equal(tostring(status), run:summary().meta.exit_status)
        assert.equal("x.usprof\n", files(run))
      end)
    end)
  end

  for _, signal in ipairs { 9, 11, 15, 2 } do
    it("passes on that signal " .. signal .. " ended it", function()
      script(("$microscope record -q -o x.usprof -- sh -c 'kill -%d $$'"):format(signal),
        function(run)
          assert.equal(128 + signal, run.status, run.err)
          is_readable(run)
        end)
    end)
  end

  it("is its own standard input, output and error", function()
    script([[
      head -c 3000000 /dev/urandom > in
      $microscope record -q -o x.usprof -- cat < in > out
      cmp in out || exit 1
      $microscope record -q -o x.usprof -- sh -c 'echo to stdout; echo to stderr >&2' > o 2> e
      [ "$(cat o)" = "to stdout" ] && [ "$(cat e)" = "to stderr" ] ]], function(run)
        assert.equal(0, run.status, run.out .. run.err)
      end)
  end)

  it("has the limits, the signal mask and the dispositions of who called", function()
    script([[
      seen='ulimit -Sn; ulimit -Hn; ulimit -Sl; umask; pwd; ls -l /proc/self/fd | wc -l
        grep -E "^Sig(Blk|Ign|Cgt)" /proc/self/status'
      trap '' USR2
      ulimit -Sn 512
      env sh -c "$seen" > without
      $microscope record -q -o x.usprof -- sh -c "$seen" > with
      diff without with]], function(run)
        assert.equal(0, run.status, run.out .. run.err)
      end)
  end)

  it("can exec another program and stays itself", function()
    script("$microscope record -q -o x.usprof -- sh -c 'exec $0/chain 100' $programs",
      function(run)
        assert.equal(0, run.status, run.err)
        run:assert_chain({ "main", "top", "middle", "leaf" }, 20)
        assert.equal(1, run:summary().processes)
        capture.with(run.path, function(cap)
          assert.equal(2, cap:rows("process_execs"))
        end)
      end)
  end)

  it("may fork 2,000 children: each is accounted for and none is left", function()
    script([[
      /bin/true & # a child of ours that has nothing to do with it
      $microscope record -F 4999 -o x.usprof -- $programs/storm forks 2000; status=$?
      ls /proc/*/exe -l 2>/dev/null | grep -c "$programs/storm" > left
      exit $status]], function(run)
        assert.equal(0, run.status, run.err)
        assert.equal("0\n", helper.read(run.folder .. "/left"))
        assert.equal(2001, run:summary().processes + run:summary().lost_records)
        run:assert_no_losses()
        run:assert_chain({ "main", "fork_one", "busy_child" }, 100)
      end)
  end)

  it("may make 2,000 threads that come and go", function()
    script("$microscope record -F 4999 -o x.usprof -- $programs/storm threads 2000",
      function(run)
        assert.equal(0, run.status, run.err)
        run:assert_no_losses()
        assert.equal(2001, run:summary().threads)
        assert.equal(1, run:summary().processes)
        run:assert_chain({ "thread_main", "busy_child" }, 100)
        assert.equal(run:with("busy_child"), run:whole() - run:count(function(names)
          return names[1]:sub(1, 1) ~= "[" and names[#names] ~= "busy_child"
        end))
      end)
  end)

  it("costs the recorder no memory that grows with its forks", function()
    script([[
      for count in 200 2000; do
        $microscope record -q -o x.usprof -- $programs/storm forks $count & recorder=$!
        peak=0
        while kill -0 $recorder 2>/dev/null; do
          now=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' /proc/$recorder/status 2>/dev/null)
          [ -n "$now" ] && peak=$now
        done
        wait $recorder || exit 1
        echo $peak
      done]], function(run)
        assert.equal(0, run.status, run.err)
        local few, many = run.out:match("(%d+)\n(%d+)")
        -- Ten times the processes: less than 20 MiB more, in KiB.
        assert.is_true(tonumber(many) - tonumber(few) < 20 * 1024, run.out)
      end)
  end)

  it("may be stopped and continued", function()
    script([[
      mkfifo ready
      $microscope record -o x.usprof -- $programs/forever end > ready & recorder=$!
      read -r pid < ready
      kill -STOP $pid
      until grep -q 'State:.T' /proc/$pid/status; do :; done
      kill -CONT $pid
      burns $pid 10
      touch end
      wait $recorder]], function(run)
        assert.equal(0, run.status, run.err)
        run:assert_chain({ "main", "top", "middle", "leaf" }, 20)
      end)
  end)

  it("that has ended and is not waited for cannot be attached to", function()
    script([[
      # It ends once its parent is a program that waits for nobody.
      sh -c '(until [ -e go ]; do :; done) & echo $! > ended; exec sleep 100' & keeper=$!
      until grep -q sleep /proc/$keeper/comm; do :; done
      touch go
      until grep -q 'State:.Z' /proc/$(cat ended)/status; do :; done
      status=0
      $microscope record -o x.usprof --pid $(cat ended) || status=$?
      kill $keeper
      rm ended go
      exit $status]], function(run)
        assert.equal(1, run.status)
        assert.matches("^microscope record: process %d+ has ended\n$", run.err)
        assert.equal("", files(run))
      end)
  end)

  it("that is a script without its interpreter, or is not in $PATH, is told apart", function()
    script([[
      printf '#!/no/such/interpreter\n' > tool; chmod +x tool
      $microscope record -o x.usprof ./tool
      $microscope record -o x.usprof tool; rm tool]], function(run)
        assert.equal("microscope record: starting ./tool: the interpreter it names is missing\n"
          .. "microscope record: no such program: tool (to run the one here: ./tool)\n", run.err)
        assert.equal("", files(run))
      end)
  end)

  it("that is not there, or is no program, is one clear error", function()
    for program, message in pairs {
      ["./nothing"] = "no such program: ./nothing",
      ["nothing-of-this-name"] = "no such program: nothing-of-this-name",
      ["./script"] = "Permission denied",
      ["/"] = "Permission denied",
    } do
      script("$microscope record -o x.usprof -- " .. program, function(run)
        assert.equal(1, run.status)
        assert.is_not_nil(run.err:find(message, 1, true), run.err)
        assert.equal(1, select(2, run.err:gsub("\n", "")), run.err)
        assert.equal("", files(run))
      end)
    end
  end)

  it("of an unprivileged user is recorded, and small rings are told of", function()
    if not works(AS_NOBODY .. "true") then
      pending("setpriv cannot become another user here (CAP_SETUID)")
      return
    end
    script("chmod 777 . && ulimit -l 64 && " .. AS_NOBODY
      .. "$microscope record -F 1999 -o x.usprof -- $programs/chain", function(run)
        assert.equal(0, run.status, run.err)
        run:assert_chain { "main", "top", "middle", "leaf" }
        assert.matches("ring is .* instead of .*ulimit %-l", run.err)
      end)
  end)

  it("that is setuid runs as the kernel lets it, and it is told why nothing was seen", function()
    if not works(AS_NOBODY .. "true") then
      pending("setpriv cannot become another user here (CAP_SETUID)")
      return
    end
    script("chmod 777 . && cp $programs/chain setuid && chmod 4755 setuid && " .. AS_NOBODY
      .. "$microscope record -F 1999 -o x.usprof -- ./setuid 100", function(run)
        assert.equal(0, run.status, run.err)
        assert.equal(0, run:with("leaf"))
        local problems = {}
        for _, problem in ipairs(run:summary().problems) do
          problems[#problems + 1] = problem.text
        end
        assert.matches("set%-user%-ID", table.concat(problems, "\n"))
      end)
  end)

  it("may be recorded twice at once", function()
    script([[
      $microscope record -F 1999 -o y.usprof -- $microscope record -F 1999 -o x.usprof \
        -- $programs/chain; status=$?
      $microscope report y.usprof > /dev/null || exit 9
      exit $status]], function(run)
        assert.equal(0, run.status, run.err)
        run:assert_chain { "main", "top", "middle", "leaf" }
      end)
  end)
end)
