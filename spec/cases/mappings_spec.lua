-- Files that go, change or hide while a program runs; names that change; programs that are gone.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.cases.kit")

local PROGRAMS = {
  "chain", "forever", "replacement", "renames", "short_lived", "memfd", "storm", "sleepers",
}

local CHAIN = { "main", "top", "middle", "leaf" }

-- Whether a shell command works here.
local function works(command)
  local _, _, status = helper.run(command)
  return status == 0
end

describe("a program's file", function()
  setup(kit.builds(unpack(PROGRAMS)))

  -- What becomes of the file of the running ./victim.
  local FATES = {
    ["is deleted"] = "rm victim",
    ["is replaced by another build"] = "cp $programs/replacement other && mv other victim",
    ["is moved away and another takes its path"] =
      "mv victim away && cp $programs/replacement victim",
  }

  -- Start ./victim and do one thing before the attach, and one when the recorder has its file.
  local function run_victim(before, during)
    return kit.script(([[
      cp $programs/forever victim
      mkfifo ready
      ./victim > ready & pid=$!
      read -r line < ready
      %s
      $microscope record -q -F 1999 -o x.usprof -p $pid & recorder=$!
      until readlink /proc/$recorder/fd/* | grep -qE 'victim|away'; do sleep 0.01; done
      %s
      sleep 0.3
      kill -9 $pid
      wait $recorder]]):format(before, during))
  end

  for fate, command in pairs(FATES) do
    for _, when in ipairs { "before", "during" } do
      it(("%s %s the attach: its own names"):format(fate, when), function()
        kit.with(run_victim(when == "before" and command or "", when == "during" and command or ""),
          function(run)
            assert.equal(0, run.status, run.err)
            run:assert_no_losses()
            run:assert_chain(CHAIN, 20)
            assert.equal(0, run:count(function(names)
              return names[#names]:match("^impostor") ~= nil
            end))
          end)
      end)
    end
  end

  it("without the right to see it is not named by what has its path now", function()
    if not works("setpriv --reuid=65534 --regid=65534 --clear-groups true") then
      pending("setpriv cannot become another user here (CAP_SETUID)")
      return
    end
    local run = kit.script [[
      chmod 777 . && cp $programs/forever victim && mkfifo -m 666 ready
      cat > inner <<END
        microscope=$microscope programs=$programs
END
      cat >> inner <<'END'
        ./victim > ready & pid=$!
        read -r line < ready
        cp $programs/replacement other && mv -f other victim
        $microscope record -q -F 1999 --duration 1 -o x.usprof -p $pid; status=$?
        kill -9 $pid
        exit $status
END
      setpriv --reuid=65534 --regid=65534 --clear-groups sh inner]]
    kit.with(run, function()
      assert.equal(0, run.status, run.err)
      assert.is_true(run:summary().samples >= 20, run:tree())
      assert.equal(0, run:count(function(names)
        return names[#names]:match("impostor") ~= nil
      end), run:tree())
      -- /proc/PID/exe still leads to it.
      run:assert_chain(CHAIN, 20)
    end)
  end)

  it("that only memory holds is named", function()
    kit.with(kit.record("memfd $programs/chain"), function(run)
      assert.equal(0, run.status, run.err)
      run:assert_chain(CHAIN)
      assert.equal(run:with("leaf"), run:count(function(_, modules)
        return modules[#modules]:match("^memfd:held") ~= nil
      end), run:tree())
    end)
  end)

  it("on an overlay is proven although its device has another number", function()
    local run = kit.script [[
      mkdir scratch && mount -t tmpfs none scratch || exit 77
      cd scratch && mkdir lower upper work merged && cp $programs/chain lower/
      mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged ||
        { cd .. && umount scratch; exit 77; }
      $microscope record -q -F 1999 -o ../x.usprof -- merged/chain; status=$?
      umount merged; cd .. && umount scratch
      exit $status]]
    kit.with(run, function()
      if run.status == 77 then
        pending("an overlay cannot be mounted here: " .. run.err)
        return
      end
      assert.equal(0, run.status, run.err)
      run:assert_chain(CHAIN)
    end)
  end)

  local INSIDE = {
    ["a mount namespace"] = [[unshare -m sh -c 'mount -t tmpfs none hidden &&
      cp "$1"/forever hidden/ && exec hidden/forever' sh $programs]],
    ["a pid namespace"] = "unshare -pf --mount-proc --kill-child $programs/forever",
    ["a chroot"] = [[sh -c 'mkdir -p hidden/lib64 hidden/lib/x86_64-linux-gnu &&
      cp "$1"/forever hidden/ && cp /lib64/ld-linux-x86-64.so.2 hidden/lib64/ &&
      cp /lib/x86_64-linux-gnu/libc.so.6 hidden/lib/x86_64-linux-gnu/ &&
      exec chroot hidden /forever' sh $programs]],
  }

  for where, command in pairs(INSIDE) do
    it("in " .. where .. " is found through the process's own root", function()
      if not works("unshare -m true && chroot / true") then
        pending("no namespace can be made here (CAP_SYS_ADMIN)")
        return
      end
      local run = kit.script(([[
        mkdir hidden && mkfifo ready
        %s > ready & shell=$!
        read -r line < ready
        child=$(cat /proc/$shell/task/$shell/children)
        pid=${child%% *}
        pid=${pid:-$shell}
        attach_to $pid -q; status=$?
        kill -9 $pid $shell
        exit $status]]):format(command))
      kit.with(run, function()
        assert.equal(0, run.status, run.err)
        run:assert_chain(CHAIN, 20)
        capture.with(run.path, function(cap)
          local ns_pid = cap:array("processes", "ns_pid")[0]
          assert.equal(where == "a pid namespace", tonumber(ns_pid) == 1)
        end)
      end)
    end)
  end
end)

describe("a name", function()
  setup(kit.builds("renames", "chain"))

  -- thread -> list of {name, time}, and the samples of each thread with their times.
  local function names_of(cap)
    local thread, name = cap:array("thread_names", "thread"), cap:array("thread_names", "name")
    local time, out = cap:array("thread_names", "time_ns"), {}
    for i = 0, cap:rows("thread_names") - 1 do
      local list = out[tonumber(thread[i])] or {}
      out[tonumber(thread[i])] = list
      list[#list + 1] = { cap:string(name[i]), tonumber(time[i]) }
    end
    return out
  end

  -- The name that a thread had at a time.
  local function name_at(list, time_ns)
    local name
    for _, entry in ipairs(list) do
      if entry[2] <= time_ns then name = entry[1] end
    end
    return name
  end

  -- location -> function name
  local function functions_of(cap)
    local location, fn = cap:array("lines", "location"), cap:array("lines", "function")
    local name, out = cap:array("functions", "name"), {}
    for i = 0, cap:rows("lines") - 1 do
      out[tonumber(location[i])] = cap:string(name[fn[i]])
    end
    return out
  end

  it("holds from when it was given, and a child has its parent's until it execs", function()
    kit.with(kit.record("renames $programs/chain 200"), function(run)
      assert.equal(0, run.status, run.err)
      run:assert_no_losses()
      local expected = {
        work_first = "first", work_second = "second", work_third = 'a "third"\t\\n',
        work_in_child = 'a "third"\t\\n', leaf = "chain",
      }
      local seen = {}
      assert(capture.with(run.path, function(cap)
        local names, functions = names_of(cap), functions_of(cap)
        local thread, stack = cap:array("samples", "thread"), cap:array("samples", "stack")
        local time = cap:array("samples", "time_ns")
        local location = cap:array("stacks", "location")
        for i = 0, cap:rows("samples") - 1 do
          local fn = functions[tonumber(location[stack[i]])]
          if expected[fn] then
            seen[fn] = (seen[fn] or 0) + 1
            assert.equal(expected[fn], name_at(names[tonumber(thread[i])], tonumber(time[i])), fn)
          end
        end
        -- Summaries have the last one.
        local last = cap:array("threads", "name")
        assert.equal('a "third"\t\\n', cap:string(last[0]))
        assert.equal("chain", cap:string(last[1]))
        -- The child's exec splits it: it was renames before.
        local process, path = cap:array("process_execs", "process"),
          cap:array("process_execs", "path")
        assert.equal(2, cap:rows("process_execs"))
        assert.equal(0, process[0])
        assert.equal(kit.folder .. "/renames", cap:string(path[0]))
        assert.equal(1, process[1])
        assert.equal(kit.folder .. "/chain", cap:string(path[1]))
        assert.equal(0, cap:array("processes", "parent")[1])
        return true
      end))
      for fn in pairs(expected) do assert.is_true((seen[fn] or 0) >= 20, fn) end
    end)
  end)
end)

describe("hundreds of processes", function()
  setup(kit.builds("short_lived", "chain"))

  it("that are gone before they are looked at are all named", function()
    kit.with(kit.record("short_lived 300 $programs/chain 12"), function(run)
      assert.equal(0, run.status, run.err)
      run:assert_no_losses()
      assert.equal(301, run:summary().processes)
      run:assert_chain(CHAIN, 1000)
      -- Position-independent, at 300 addresses: one module each. (Not all of crt1's code, which
      -- runs before main, has symbols with a size.)
      assert.equal(0, run:count(function(names)
        return table.concat(names, " "):match(" main ") ~= nil
          and (names[#names]:match("^chain%+0x") ~= nil or names[#names]:match("^%[") ~= nil)
      end), run:tree())
    end)
  end)
end)

describe("thousands of threads", function()
  setup(kit.builds("sleepers"))

  it("are attached to under a low soft limit of descriptors", function()
    kit.with(kit.attach("sleepers 2000", "", "ulimit -Sn 1024"), function(run)
      assert.equal(0, run.status, run.err)
      assert.equal(2001, run:summary().threads)
      run:assert_chain({ "main", "the_busy_one" }, 20)
    end)
  end)

  it("past the hard limit are refused with the number and the command that help", function()
    if not works("(ulimit -n 1024)") then
      pending("the hard limit of descriptors is below 1024 already")
      return
    end
    kit.with(kit.attach("sleepers 2000", "", "ulimit -n 1024"), function(run)
      assert.equal(1, run.status, run.err)
      assert.matches("ulimit %-n", run.err)
      assert.matches("%d%d%d%d", run.err)
      assert.is_nil(io.open(run.path))
    end)
  end)
end)
