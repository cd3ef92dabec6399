-- Who calls whom: programs whose stacks are hard to follow.

local kit = require("spec.cases.kit")

local PROGRAMS = {
  "vfork", "noreturn", "plt_lazy", "plt_now", "plt_noplt", "plt_ibt", "chain_frame_pointers",
  "chain_leaf_without", "chain_debug_frame", "chain_no_information", "altstack", "coroutine",
  "switched", "deep", "vdso", "vdso_static_pie", "vsyscall", "leader", "anonymous",
}

-- Record a program and look at it.
local function recorded(command, options, fn)
  kit.with(kit.record(command, options), function(run)
    assert.equal(0, run.status, run.err)
    run:assert_no_losses()
    fn(run)
  end)
end

describe("a stack", function()
  setup(kit.builds(unpack(PROGRAMS)))

  it("goes on where the return address is in a register, and in a vfork's child", function()
    recorded("vfork", nil, function(run)
      run:assert_chain { "main", "one", "two", "three", "in_register" }
      run:assert_chain { "main", "one", "two", "three", "burn_in_child" }
      assert.equal(21, run:summary().processes)
    end)
  end)

  it("finds the caller of a function that does not return", function()
    recorded("noreturn", nil, function(run)
      run:assert_chain { "main", "ends_in_a_call", "spin_and_exit" }
      assert.equal(0, run:with("saves_registers"))
    end)
  end)

  for _, name in ipairs { "plt_lazy", "plt_now", "plt_ibt", "plt_noplt" } do
    it("passes the stubs of " .. name, function()
      recorded(name, nil, function(run)
        run:assert_chain { "main", "call_out" }
        if name ~= "plt_noplt" then
          assert.is_true(run:with("getpagesize@plt") + run:with("abs@plt") > 0)
          assert.equal(run:with("getpagesize@plt"),
            run:chain { "main", "call_out", "getpagesize@plt" })
          assert.equal(run:with("abs@plt"), run:chain { "main", "call_out", "abs@plt" })
        end
        assert.equal(run:with("abs"), run:chain { "main", "call_out", "abs" })
      end)
    end)
  end

  it("follows frame pointers where there is no call-frame information, and says so", function()
    recorded("chain_frame_pointers", nil, function(run)
      assert.is_true(run:with("leaf") >= 100)
      -- At the first and last instructions of a function the frame pointer is its caller's still,
      -- so that one frame may be missing; in the loop it never is.
      local whole = run:chain { "main", "top", "middle", "leaf" }
      assert.is_true(whole >= 0.98 * run:with("leaf"), run:tree())
      assert.is_true(run:summary().frame_pointer_samples >= whole)
    end)
  end)

  it("does not skip the caller of a leaf that keeps no frame pointer", function()
    recorded("chain_leaf_without", nil, function(run)
      local all = run:with("leaf")
      assert.is_true(all >= 100)
      assert.equal(all, run:chain { "main", "top", "middle", "leaf" }, run:tree())
    end)
  end)

  it("reads a compressed .debug_frame", function()
    recorded("chain_debug_frame", nil, function(run)
      run:assert_chain { "main", "top", "middle", "leaf" }
    end)
  end)

  it("ends typed where nothing tells the caller", function()
    recorded("chain_no_information", nil, function(run)
      local leaf = run:with("leaf")
      assert.is_true(leaf >= 100)
      -- The leaf's own instructions prove its caller; nothing proves the caller's.
      assert.equal(leaf, run:chain { "[no unwind information]", "middle", "leaf" }, run:tree())
    end)
  end)

  it("names the handler's frames and ends typed on a signal stack of its own", function()
    recorded("altstack", nil, function(run)
      local all = run:with("burn_in_handler")
      assert.is_true(all >= 100)
      -- The signal frame lies on the new stack and holds the registers of what it interrupted.
      assert.equal(all, run:count(function(names)
        return #names == 5 and names[1] == "[memory of another stack]"
          and names[3] == "[signal]" and names[4] == "handler" and names[5] == "burn_in_handler"
      end), run:tree())
      assert.equal(all, run:ended("memory of another stack"))
    end)
  end)

  it("passes a signal on the thread's own stack", function()
    recorded("altstack same", nil, function(run)
      run:assert_chain { "[signal]", "handler", "burn_in_handler" }
      local chained = run:count(function(names)
        local text = table.concat(names, ">")
        return text:match(">main>outer>raiser>.*>%[signal%]>handler>burn_in_handler$") ~= nil
      end)
      assert.equal(run:with("burn_in_handler"), chained, run:tree())
    end)
  end)

  it("ends cleanly at a coroutine's entry", function()
    recorded("coroutine", nil, function(run)
      local all = run:with("coro_leaf")
      assert.is_true(all >= 100)
      assert.equal(all, run:chain { "coro_main", "coro_leaf" })
      -- The return address is one that no call left: above it only glibc's own entry is shown.
      assert.equal(all, run:count(function(names, modules)
        return #names <= 4 and modules[#names - 2] == "libc.so.6"
      end), run:tree())
    end)
  end)

  it("ends typed where a stack was switched by hand", function()
    recorded("switched", nil, function(run)
      local all = run:with("switched_leaf")
      assert.is_true(all >= 100)
      assert.equal(all, run:chain { "[memory of another stack]", "run_on", "switched_main",
        "switched_leaf" }, run:tree())
    end)
  end)

  it("deeper than its copy ends typed and counted", function()
    for options, least in pairs { [""] = 7, ["--stack-bytes 65528"] = 15 } do
      recorded("deep", options, function(run)
        local deep = run:count(function(names)
          return names[1] == "[stack copy exhausted]" and names[least + 1] == "recurse"
        end)
        assert.is_true(deep >= 100, run:tree())
        assert.equal(run:with("recurse"), run:chain { "[stack copy exhausted]", "recurse" })
        assert.equal(run:with("recurse"), run:ended("stack copy exhausted"))
      end)
    end
  end)

  for _, name in ipairs { "vdso", "vdso_static_pie" } do
    it("names the vDSO's function in " .. name, function()
      recorded(name, nil, function(run)
        run:assert_chain { "main", "outer", "inner" }
        local inside = run:count(function(names, modules)
          return modules[#names] == "[vdso]" and names[#names]:match("^__vdso_") ~= nil
        end)
        local of_vdso = run:count(function(names, modules) return modules[#names] == "[vdso]" end)
        assert.is_true(inside >= 20, run:tree())
        assert.equal(of_vdso, inside, run:tree())
        run:assert_chain({ "main", "outer", "inner" }, of_vdso)
      end)
    end)
  end

  it("keeps the caller of the vsyscall page", function()
    kit.with(kit.record("vsyscall"), function(run)
      if run.status == 77 then
        pending("the kernel has no vsyscall page (vsyscall=none)")
        return
      end
      assert.equal(0, run.status, run.err)
      run:assert_chain({ "main", "caller" }, 5)
    end)
  end)

  it("is found when the main thread is gone before the attach", function()
    kit.with(kit.attach("leader"), function(run)
      assert.equal(0, run.status, run.err)
      run:assert_no_losses()
      run:assert_chain({ "worker", "burn_in_worker" }, 20)
      assert.equal(run:with("worker"), run:whole(), run:tree())
    end)
  end)

  it("keeps a frame of generated code that nothing names", function()
    recorded("anonymous", nil, function(run)
      local anon = run:count(function(names)
        return names[#names]:match("^%[anon 0x%x+%]$") ~= nil
      end)
      assert.is_true(anon >= 100, run:tree())
      -- Nothing proves its caller, so nothing is said of it.
      assert.equal(anon, run:ended("generated code without unwind information"))
    end)
  end)
end)
