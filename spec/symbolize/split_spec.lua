-- Debug information that is split, shared or packed, found in folders of debug files.

local helper = require("spec.helper")
local kit = require("spec.symbolize.kit")

-- How each is built: makes the program p, and what goes to the folder d when it was recorded.
local KINDS = {
  {
    "split objects (.dwo), by name",
    "clang++ -O2 -gdwarf-5 -gsplit-dwarf -Wl,--build-id -o p words.cc",
    "mv *.dwo d/",
    "clang++",
  },
  {
    "split objects (.dwo), by the folder they were made in",
    "clang++ -O2 -gdwarf-5 -gsplit-dwarf -Wl,--build-id -o p words.cc",
    [[mkdir -p d"$PWD" && mv *.dwo d"$PWD"]],
    "clang++",
  },
  {
    "a package (.dwp)",
    "clang++ -O2 -gdwarf-5 -gsplit-dwarf -Wl,--build-id -o p words.cc && llvm-dwp -e p -o p.dwp"
      .. " && rm *.dwo",
    "mv p.dwp d/",
    "llvm-dwp",
  },
  {
    "debug information that files share (dwz)",
    [[g++ -O2 -g -Wl,--build-id -c words.cc -o words.o && g++ -O2 -g -Wl,--build-id -o p words.o
      g++ -O1 -g -Wl,--build-id -o q words.cc
      objcopy --only-keep-debug p p.debug && objcopy --only-keep-debug q q.debug
      dwz -m shared.debug p.debug q.debug && strip p]],
    [[for file in p shared; do
        id=$(readelf -n $file.debug | sed -n 's/.*Build ID: //p')
        mkdir -p d/.build-id/$(echo $id | cut -c1-2)
        mv $file.debug d/.build-id/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-).debug
      done]],
    "dwz",
  },
  {
    "debug information that files share (dwz), by content alone",
    [[g++ -O2 -g -Wl,--build-id -o p words.cc && g++ -O1 -g -Wl,--build-id -o q words.cc
      objcopy --only-keep-debug p p.debug && objcopy --only-keep-debug q q.debug
      dwz -m shared.debug p.debug q.debug && strip p]],
    "mkdir d/x d/y && mv p.debug d/x/one && mv shared.debug d/y/two",
    "dwz",
  },
  {
    "a symbol table in .gnu_debugdata",
    [[g++ -O2 -Wl,--build-id -o p words.cc && cp p whole
      objcopy --only-keep-debug p mini && strip -g mini && xz mini && strip p
      objcopy --add-section .gnu_debugdata=mini.xz p]],
    "cp p d/whatever",
    "xz",
  },
}

local function has(tool)
  local _, _, status = helper.run("command -v " .. tool)
  return status == 0
end

describe("symbolize reads", function()
  for _, kind in ipairs(KINDS) do
    local what, build, move, tool = unpack(kind)
    it(what, function()
      if not has(tool) then
        pending("there is no " .. tool)
        return
      end
      local folder = helper.folder()
      local function shell(script)
        local source = helper.quote(helper.root .. "/fixtures/bench/words.cc")
        local out, err, status = helper.run(("set -e; cp -n %s .\n%s"):format(source, script),
          folder)
        assert.equal(0, status, out .. err)
      end
      -- Recorded with everything in place, then named when the files are in the folder alone.
      shell(("%s\n%s/bin/microscope record -q -F 2999 -o now.usprof ./p 3"):format(build,
        helper.quote(helper.stage)))
      kit.without_names(folder .. "/now.usprof", folder .. "/bare.usprof")
      shell("mkdir d; " .. move .. "; mkdir -p d/root" .. folder .. " && mv p d/root" .. folder)
      local _, err, status = kit.symbolize(("-d d -d d/root -o named.usprof bare.usprof"), folder)
      assert.equal(0, status, err)
      local now, named = kit.meanings(folder .. "/now.usprof"),
        kit.meanings(folder .. "/named.usprof")
      local known = 0
      for l, meaning in ipairs(now) do
        known = known + (named[l]:find("round_of") and 1 or 0)
        -- The recording had no debug folder: what it knew is known still.
        if meaning ~= "" then assert.is_true(named[l] ~= "", meaning) end
        if meaning:find("words.cc", 1, true) then assert.equal(meaning, named[l]) end
      end
      assert.is_true(known > 10, err)
      if tool ~= "xz" then
        assert.is_true(kit.count(folder .. "/named.usprof", "words.cc:%d+") > 10, err)
      end
      helper.remove(folder)
    end)
  end
end)
