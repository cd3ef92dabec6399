-- A C library that comes without call-frame information for most of its functions.

local kit = require("spec.cases.kit")

-- A whole stack, or one that says that unwind information is missing: nothing else.
local function assert_honest(run)
  local whole, typed = run:whole(), run:ended("no unwind information")
    + run:ended("no unwind information, frame pointers followed to their end")
  assert.equal(run:summary().samples, whole + typed, run:tree())
end

describe("musl", function()
  local without

  setup(function()
    if not kit.has("musl-gcc") then
      without = "there is no musl-gcc (the package musl-tools)"
      return
    end
    assert(kit.build("chain_musl", "chain_musl_static", "mutex_musl", "mutex_musl_static"))
  end)

  for _, name in ipairs { "chain_musl", "chain_musl_static" } do
    it("shows the program's own functions up to main: " .. name, function()
      if without then
        pending(without)
        return
      end
      kit.with(kit.record(name), function(run)
        assert.equal(0, run.status, run.err)
        run:assert_no_losses()
        local all = run:with("leaf")
        assert.is_true(all >= 100)
        assert.equal(all, run:chain { "main", "top", "middle", "leaf" }, run:tree())
        assert_honest(run)
      end)
    end)
  end

  for _, name in ipairs { "mutex_musl", "mutex_musl_static" } do
    it("invents no caller in the library: " .. name, function()
      if without then
        pending(without)
        return
      end
      kit.with(kit.record(name), function(run)
        assert.equal(0, run.status, run.err)
        assert_honest(run)
        -- Whoever calls lock_and_unlock is known: it is always fight.
        local all = run:with("lock_and_unlock")
        assert.is_true(all > 0, run:tree())
        assert.equal(all, run:chain { "fight", "lock_and_unlock" }, run:tree())
        -- Only lock_and_unlock calls the two.
        for _, lock in ipairs { "pthread_mutex_lock", "pthread_mutex_unlock" } do
          assert.equal(run:with(lock), run:chain { "lock_and_unlock", lock }
            + run:chain { "[no unwind information]", lock }, run:tree())
        end
      end)
    end)
  end
end)
