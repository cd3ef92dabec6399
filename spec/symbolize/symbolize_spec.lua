-- microscope symbolize: the same names as a recording gives, from wherever the files are now.

local helper = require("spec.helper")
local kit = require("spec.symbolize.kit")

-- A C++ program with inlined functions, recorded; shared by the cases, each in a folder of its own.
local SCRIPT = [[
  set -e
  cp %s/fixtures/bench/words.cc .
  g++ -g -O2 -Wl,--build-id -o words words.cc
  %s/bin/microscope record -q -F 4999 --keep-images -o now.usprof ./words 5
]]

describe("microscope symbolize", function()
  local base, folder

  setup(function()
    base = helper.folder()
    local out, err, status = helper.run(SCRIPT:format(helper.quote(helper.root),
      helper.quote(helper.stage)), base)
    assert.equal(0, status, out .. err)
    kit.without_names(base .. "/now.usprof", base .. "/bare.usprof")
    kit.without_names(base .. "/now.usprof", base .. "/kept.usprof", true)
  end)
  teardown(function() helper.remove(base) end)
  before_each(function()
    folder = helper.folder()
    helper.run(("cp %s/bare.usprof %s/a.usprof"):format(base, folder))
  end)
  after_each(function() helper.remove(folder) end)

  -- Run a script in the folder; $base is where the program and its captures are.
  local function shell(script)
    local out, err, status = helper.run(("set -e; base=%s; %s"):format(helper.quote(base), script),
      folder)
    assert.equal(0, status, out .. err)
    return out
  end

  -- Where the recorded path says the program is, there is something else while fn runs.
  local function without_program(fn, script)
    shell("mv $base/words $base/words.away; " .. (script or ":"))
    local ok, err = pcall(fn)
    shell("rm -f $base/words; mv $base/words.away $base/words")
    if not ok then error(err, 0) end
  end

  local function named(arguments, environment)
    helper.run("cp a.usprof before.usprof", folder)
    local _, err, status = kit.symbolize(arguments .. " a.usprof", folder, environment)
    assert.equal(0, status, err)
    kit.assert_same_rows(folder .. "/before.usprof", folder .. "/a.usprof")
    return err
  end

  local function assert_as_recorded()
    kit.assert_same(kit.meanings(base .. "/now.usprof"), kit.meanings(folder .. "/a.usprof"))
  end

  it("gives the names that the recording gave", function()
    local err = named("")
    assert_as_recorded()
    assert.matches("%d+ of %d+ places named, %d+ with lines, in a.usprof", err)
    assert.is_true(kit.count(folder .. "/a.usprof", " <== ") > 50)
  end)

  it("gives llvm-symbolizer's files and lines, frame by frame", function()
    local _, _, missing = helper.run("command -v llvm-symbolizer")
    if missing ~= 0 then
      pending("there is no llvm-symbolizer")
      return
    end
    named("")
    local ours, addresses = kit.places(folder .. "/a.usprof", "words")
    helper.write(folder .. "/addresses", table.concat(addresses, "\n") .. "\n")
    local out = shell("llvm-symbolizer -e $base/words <addresses")
    local theirs, chain = {}, {}
    for line in out:gmatch("([^\n]*)\n") do
      chain[#chain + 1] = line:match("([^/]*:%d+):%d+$")
      if line == "" then
        theirs[#theirs + 1] = table.concat(chain, " ")
        chain = {}
      end
    end
    assert.is_true(#ours > 50, #ours .. " places")
    assert.same(theirs, ours)
  end)

  it("leaves the capture as it is with -o", function()
    local before = helper.read(folder .. "/a.usprof")
    local _, err, status = kit.symbolize("-o b.usprof a.usprof", folder)
    assert.equal(0, status, err)
    assert.equal(before, helper.read(folder .. "/a.usprof"))
    kit.assert_same(kit.meanings(base .. "/now.usprof"), kit.meanings(folder .. "/b.usprof"))
  end)

  it("gives the same bytes each time", function()
    shell("cp a.usprof b.usprof")
    named("")
    kit.symbolize("b.usprof", folder)
    assert.equal(helper.read(folder .. "/a.usprof"), helper.read(folder .. "/b.usprof"))
  end)

  it("is not fooled by another program at the path", function()
    without_program(function()
      local err = named("")
      assert.equal(0, kit.count(folder .. "/a.usprof", "words.cc"))
      assert.matches("has another build ID", kit.problem(folder .. "/a.usprof", "words"))
      assert.matches("words, build ID %x+: %d+ places %(.-another build ID.-%): 0x%x+", err)
    end, "gcc -O1 -x c - -o $base/words <<'C'\nint main(void) { return 0; }\nC")
  end)

  it("finds the program by its build ID, whatever it is called", function()
    without_program(function()
      shell("mkdir -p d/e; cp $base/words.away d/e/other-name")
      named("--debug-dir d")
      assert_as_recorded()
    end)
  end)

  it("finds it in a root file system", function()
    without_program(function()
      shell("mkdir -p root$base; cp $base/words.away root$base/words")
      named("--debug-dir root")
      assert_as_recorded()
    end)
  end)

  it("finds it where perf keeps what it saw", function()
    without_program(function()
      shell([[id=$(readelf -n $base/words.away | sed -n 's/.*Build ID: //p')
        at=perf/.build-id/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-)
        mkdir -p $at home; cp $base/words.away $at/elf; cp -r perf home/.debug]])
      named("", "PERF_BUILDID_DIR= HOME=home")
      assert_as_recorded()
      shell("cp $base/bare.usprof a.usprof")
      named("", "PERF_BUILDID_DIR=perf")
      assert_as_recorded()
    end)
  end)

  -- Where a separate debug file may be, and what makes it.
  local layouts = {
    { "a build-id tree", [[id=$(readelf -n words | sed -n 's/.*Build ID: //p')
       mkdir -p d/.build-id/$(echo $id | cut -c1-2)
       mv words.debug d/.build-id/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-).debug]] },
    { "a build-id tree under usr/lib/debug", [[id=$(readelf -n words | sed -n 's/.*Build ID: //p')
       mkdir -p d/usr/lib/debug/.build-id/$(echo $id | cut -c1-2); cd d/usr/lib/debug/.build-id
       mv $OLDPWD/words.debug $(echo $id | cut -c1-2)/$(echo $id | cut -c3-).debug; cd $OLDPWD]] },
    { "any name in the folder", "mkdir -p d/x; mv words.debug d/x/whatever" },
    { "the place of the debuglink", [[objcopy --add-gnu-debuglink=words.debug words
       mkdir -p d$base; mv words.debug d$base]] },
  }
  for _, layout in ipairs(layouts) do
    it("finds a debug file in " .. layout[1], function()
      without_program(function()
        shell("cp $base/words.away words; objcopy --only-keep-debug words words.debug;"
          .. "strip words; " .. layout[2] .. "; cp words $base/words")
        named("--debug-dir d")
        assert_as_recorded()
      end)
    end)
  end

  -- Functions, inlined functions and lines of the program, without those that only call-frame
  -- information tells of.
  local function proven(path)
    local out = {}
    for _, meaning in ipairs(kit.meanings(path)) do
      out[#out + 1] = meaning:find("words.cc", 1, true) and meaning or "-"
    end
    return out
  end

  for _, tool in ipairs {
    "objcopy --only-keep-debug $base/words.away d/x",
    "eu-strip -f d/x -o stripped $base/words.away",
  } do
    it("needs nothing but the debug file of " .. tool:match("^[%w-]+"), function()
      without_program(function()
        shell("mkdir d; " .. tool)
        named("--debug-dir d")
        kit.assert_same(proven(base .. "/now.usprof"), proven(folder .. "/a.usprof"))
      end)
    end)
  end

  it("does not use a debug file of another build", function()
    without_program(function()
      shell([[cp $base/words.away words; strip words; cp words $base/words
        g++ -g -O1 -Wl,--build-id -o other $base/words.cc
        id=$(readelf -n words | sed -n 's/.*Build ID: //p')
        mkdir -p d/.build-id/$(echo $id | cut -c1-2)
        cp other d/.build-id/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-).debug]])
      named("--debug-dir d")
      assert.equal(0, kit.count(folder .. "/a.usprof", "words.cc"))
      assert.matches("has another build ID", kit.problem(folder .. "/a.usprof", "words"))
    end)
  end)

  it("names functions from what the capture kept, with no file at all", function()
    shell("cp $base/kept.usprof a.usprof")
    without_program(function()
      local err = named("")
      assert.matches("no debug information", kit.problem(folder .. "/a.usprof", "words"))
      local now = kit.meanings(base .. "/now.usprof")
      for l, meaning in ipairs(kit.meanings(folder .. "/a.usprof")) do
        -- The function that holds the code, without its lines.
        local outermost = now[l]:gsub("^.* <== ", ""):gsub("|.*$", "")
        if now[l]:find("words.cc", 1, true) then
          assert.equal(outermost, (meaning:gsub("|.*$", "")), err)
        end
      end
    end)
  end)

  it("adds to what has names, and never takes one away", function()
    shell("cp $base/now.usprof a.usprof")
    local before = kit.meanings(folder .. "/a.usprof")
    without_program(function()
      local _, err, status = kit.symbolize("a.usprof", folder)
      assert.equal(0, status, err)
    end)
    kit.assert_same(before, kit.meanings(folder .. "/a.usprof"))
    kit.assert_same_rows(base .. "/now.usprof", folder .. "/a.usprof")
  end)

  it("adds lines where functions were known", function()
    shell("cp $base/kept.usprof a.usprof")
    without_program(function() named("") end)
    assert.equal(0, kit.count(folder .. "/a.usprof", "words.cc:%d"))
    named("")
    assert_as_recorded()
  end)

  it("does not grow by being repeated", function()
    local function size() return #helper.read(folder .. "/a.usprof") end
    named("")
    local once = size()
    for _ = 1, 3 do named("") end
    assert.equal(once, size())
  end)

  it("names the vDSO", function()
    shell(("gcc -O1 %s/fixtures/cases/vdso.c -o vdso\n%s/bin/microscope record -q -F 4999"
      .. " --symbols later -o v.usprof ./vdso"):format(helper.quote(helper.root),
      helper.quote(helper.stage)))
    local _, err, status = kit.symbolize("v.usprof", folder)
    assert.equal(0, status, err)
    assert.is_true(kit.count(folder .. "/v.usprof", "clock_gettime") > 0, err)
  end)

  it("says what it cannot do in one line", function()
    local function fails(arguments, words, environment)
      local before = helper.read(folder .. "/a.usprof")
      local out, err, status = kit.symbolize(arguments, folder, environment)
      assert.equal("", out)
      assert.equal(1, status, err)
      assert.matches(words, err)
      assert.equal(1, select(2, err:gsub("\n", "")), err)
      assert.equal(before, helper.read(folder .. "/a.usprof"))
    end
    fails("--debug-dir nowhere a.usprof", "nowhere: No such file")
    fails("--debug-dir a.usprof a.usprof", "is no folder")
    fails("nothing.usprof", "nothing.usprof: No such file")
    fails("--debuginfod a.usprof", "DEBUGINFOD_URLS", "DEBUGINFOD_URLS=")
    fails("-o nowhere/b.usprof a.usprof", "nowhere/b.usprof")
    helper.write(folder .. "/damaged.usprof", helper.read(folder .. "/a.usprof"):sub(1, -2))
    fails("damaged.usprof", "damaged.usprof: .*bytes")
    helper.write(folder .. "/text.usprof", "no capture\n")
    fails("text.usprof", "text.usprof: not a capture")
    fails("-o /dev/full a.usprof", "not a regular file")
    shell("mkdir empty")
    fails("empty", "there is no capture %(NAME%.usprof%) in empty")
  end)

  it("names each capture of a folder in its place", function()
    shell("mkdir all; cp a.usprof all/b.usprof; cp a.usprof all/c.usprof; cp a.usprof all/other")
    shell("echo no capture >all/a.usprof")
    local _, err, status = kit.symbolize("all/", folder)
    assert.equal(1, status, err)
    assert.matches("symbolize: all/a.usprof: not a capture", err)
    for _, name in ipairs { "b", "c" } do
      assert.matches("%d+ places named, %d+ with lines, in all/" .. name .. "%.usprof", err)
      kit.assert_same(kit.meanings(base .. "/now.usprof"),
        kit.meanings(("%s/all/%s.usprof"):format(folder, name)))
    end
    assert.equal(helper.read(folder .. "/a.usprof"), helper.read(folder .. "/all/other"))
    _, err, status = kit.symbolize("-o named.usprof all", folder)
    assert.equal(2, status, err)
    assert.matches("%-%-output names one file", err)
  end)
end)
