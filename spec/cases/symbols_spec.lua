-- Which function, which line: files whose symbols and debug information are hard to read.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.cases.kit")

local function recorded(command, options, fn)
  kit.with(kit.record(command, options), function(run)
    assert.equal(0, run.status, run.err)
    run:assert_no_losses()
    fn(run)
  end)
end

-- The functions of a report by lines: "name:line" -> samples with it innermost.
local function self_lines(run)
  local out, by_lines = {}, kit.open(run.path, run.folder, "--lines")
  for _, f in ipairs(by_lines:json().functions) do
    local key = f.name .. ":" .. tostring(f.line)
    out[key] = (out[key] or 0) + f.self_samples
  end
  return out
end

-- The problems of modules, by the modules' names.
local function module_problems(run)
  return capture.with(run.path, function(cap)
    local names, problems = cap:array("modules", "name"), cap:array("modules", "problem")
    local out = {}
    for i = 0, cap:rows("modules") - 1 do
      out[cap:string(names[i])] = cap:string(problems[i])
    end
    return out
  end)
end

describe("a name", function()
  setup(kit.builds("sizeless", "chain_lld_pie", "chain_lld_fixed", "chain_fixed", "uses_library",
    "liblow.so", "libhigh.so", "liblld.so", "segments", "thin", "split/inlines", "packed/inlines",
    "bare/inlines", "inlines_gcc", "inlines_zstd", "libconstructor.so", "namespace", "reuse",
    "libalpha.so", "libbravo.so"))

  it("is not that of a symbol without a size before it", function()
    recorded("sizeless", nil, function(run)
      assert.equal(0, run:with("tiny"), run:tree())
      local unknown = run:count(function(names)
        return names[#names]:match("^sizeless%+0x%x+$") ~= nil
      end)
      assert.is_true(unknown >= 100, run:tree())
    end)
  end)

  it("is the start of a stripped function, one row also by lines", function()
    recorded("sizeless", nil, function(run)
      for _, options in ipairs { "", "--lines" } do
        local rows, samples = 0, 0
        for _, f in ipairs(kit.open(run.path, run.folder, options):json().functions) do
          if f.self_samples >= 20 and f.module == "sizeless" then
            rows, samples = rows + 1, samples + f.self_samples
            assert.matches("^sizeless%+0x%x+$", f.name)
          end
        end
        assert.equal(1, rows, run:tree())
        assert.is_true(samples >= 100)
      end
    end)
  end)

  for _, name in ipairs { "chain_lld_pie", "chain_lld_fixed", "chain_fixed" } do
    it("is right in the layout of " .. name, function()
      recorded(name, nil, function(run)
        run:assert_chain { "main", "top", "middle", "leaf" }
      end)
    end)
  end

  for _, library in ipairs { "liblow.so", "libhigh.so", "liblld.so" } do
    it("is right in " .. library .. ", wherever its segments say they lie", function()
      recorded(("uses_library $programs/%s burn_in_library"):format(library), nil,
        function(run)
          run:assert_chain { "main", "burn_in_library", "library_leaf" }
          assert.equal(run:with("library_leaf"), run:count(function(_, modules)
            return modules[#modules] == library
          end))
        end)
    end)
  end

  it("is right in a second executable segment", function()
    recorded("segments", nil, function(run) run:assert_chain { "main", "far_away" } end)
  end)

  it("loses the suffix of thin link-time optimisation", function()
    recorded("thin", nil, function(run)
      run:assert_chain { "main", "promoted" }
      assert.equal(0, run:count(function(names)
        return names[#names]:find(".llvm.", 1, true) ~= nil
      end))
      local lines = self_lines(run)
      local found = 0
      for key, samples in pairs(lines) do
        if key:match("^promoted:%d+$") then found = found + samples end
      end
      assert.is_true(found >= 100)
    end)
  end)

  for _, folder in ipairs { "split", "packed" } do
    it("comes with inlined functions from split DWARF 5: " .. folder, function()
      recorded(folder .. "/inlines", nil, function(run)
        run:assert_chain { "main", "foo()", "bar()", "func()" }
        local lines = self_lines(run)
        assert.is_true((lines["func():9"] or 0) >= 100, run:tree())
      end)
    end)
  end

  it("is that of the symbol, with one warning, where the split part is missing", function()
    recorded("bare/inlines", nil, function(run)
      run:assert_chain { "main" }
      assert.equal(0, run:with("func()"))
      local problem = module_problems(run).inlines
      assert.matches("%.dwo", problem)
      local text, _, status = helper.microscope("report " .. helper.quote(run.path))
      assert.equal(0, status)
      assert.is_not_nil(text:find(problem, 1, true), text)
    end)
  end)

  it("is the same from sections packed by zstd", function()
    recorded("inlines_zstd", nil, function(run)
      run:assert_chain { "main", "foo()", "bar()", "func()" }
      assert.is_true((self_lines(run)["func():9"] or 0) >= 100, run:tree())
    end)
  end)

  it("tells a base's constructor inlined in a derived one's", function()
    -- Under -g1 an inlined function's name comes without its class.
    recorded("uses_library $programs/libconstructor.so construct", nil,
      function(run)
        run:assert_chain({ "main", "construct", "Derived::Derived()", "Base" }, 20)
        -- All but its own first and last instructions.
        local outer = run:with("Derived::Derived()")
        assert.is_true(run:with("Base") >= outer * 0.95, run:tree())
        local found = 0
        for key, samples in pairs(self_lines(run)) do
          assert.is_nil(key:match("^Derived::Derived%(%):8"), key)
          if key == "Base:8" then found = found + samples end
        end
        assert.is_true(found >= 20, run:tree())
      end)
  end)

  it("of an anonymous namespace and of a template is demangled", function()
    recorded("namespace", nil, function(run)
      run:assert_chain({ "main", "(anonymous namespace)::single_thread()" }, 50)
      run:assert_chain({ "main", "outer::Box<int>::burn(int)" }, 50)
    end)
  end)

  for _, version in ipairs { "v0", "legacy" } do
    it("of Rust is shown as a path: " .. version, function()
      if not kit.has("rustc") then
        pending("there is no rustc")
        return
      end
      assert(kit.build("names_" .. version))
      recorded("names_" .. version, nil, function(run)
        local method, closure = 0, 0
        for _, stack in ipairs(run:stacks()) do
          local text = table.concat(stack.names, " > ")
          if text:find("names::shop::Burn>::burn") then method = method + stack.samples end
          if text:find("names::main::{+closure") then
            closure = closure + stack.samples
          end
        end
        assert.is_true(method >= 50, run:tree())
        assert.is_true(closure >= 50, run:tree())
      end)
    end)
  end

  it("at an address that two libraries had is each one's own, half and half", function()
    recorded("reuse $programs/libalpha.so $programs/libbravo.so", nil, function(run)
      local address = run.out:match("alpha (0x%x+)")
      -- The loader maps the second where the first was; the case is about that.
      assert.equal(address, run.out:match("bravo (0x%x+)"))
      local alpha = run:chain { "main", "call", "alpha", "library_leaf" }
      local bravo = run:chain { "main", "call", "bravo", "library_leaf" }
      assert.equal(run:with("library_leaf"), alpha + bravo)
      assert.is_true(alpha + bravo >= 200)
      kit.assert_share(0.5, alpha, alpha + bravo, "alpha")
    end)
  end)
end)

describe("a module without debug information", function()
  setup(kit.builds("chain"))

  it("is told of where lines are asked for", function()
    recorded("chain 100", nil, function(run)
      local path = helper.quote(run.path)
      assert.is_nil(helper.microscope("report " .. path):find("no debug information", 1, true))
      assert.is_not_nil(helper.microscope("report --lines " .. path)
        :find("problem: chain: no debug information", 1, true))
    end)
  end)
end)
