-- symbolize --debuginfod: a real server, and servers that do not behave, all on loopback.

local helper = require("spec.helper")
local kit = require("spec.symbolize.kit")

local RECORD = [[
  set -e
  cp %s/fixtures/bench/words.cc .
  g++ -g -O2 -Wl,--build-id -o words words.cc
  g++ -g -O1 -Wl,--build-id -o other words.cc
  %s/bin/microscope record -q -F 4999 -o now.usprof ./words 5
  mkdir served
  mv words served/
]]

-- What scripts use.  `serve DATABASE FOLDER` starts a debuginfod that has read the folder; `behave
-- MODE FILE` a server of spec/symbolize/server.py.  Both set $url and $server, which ends with the
-- script: what a time limit ends is a process group.
local SHELL = [[
trap 'test -z "$server" || kill -9 $server 2>/dev/null' EXIT
until_there() { for _ in $(seq 600); do [ -e "$1" ] && return 0; sleep 0.1; done; return 1; }
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(
    s.getsockname()[1])'
}
answers() {
  python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=5)' "$1" \
    2>/dev/null
}
serve() {
  id=$(readelf -n "$base/served/words" | sed -n 's/.*Build ID: //p')
  port=$(free_port)
  debuginfod -d :memory: -p $port -t 0 -F "$1" >server.log 2>&1 & server=$!
  url=http://127.0.0.1:$port
  for _ in $(seq 300); do answers $url/buildid/$id/debuginfo && return 0; sleep 0.1; done
  cat server.log; return 1
}
behave() {
  python3 "$root/spec/symbolize/server.py" "$1" "$2" . & server=$!
  until_there port && url=http://127.0.0.1:$(cat port)
}
symbolize() { timeout -s KILL 60 "$microscope" symbolize "$@"; }
export DEBUGINFOD_CACHE_PATH=$PWD/cache
]]

describe("microscope symbolize --debuginfod", function()
  local base, folder

  setup(function()
    base = helper.folder()
    local out, err, status = helper.run(RECORD:format(helper.quote(helper.root),
      helper.quote(helper.stage)), base)
    assert.equal(0, status, out .. err)
    kit.without_names(base .. "/now.usprof", base .. "/bare.usprof")
  end)
  teardown(function() helper.remove(base) end)
  before_each(function()
    folder = helper.folder()
    helper.run(("cp %s/bare.usprof %s/a.usprof"):format(base, folder))
  end)
  after_each(function() helper.remove(folder) end)

  -- Run a script in the folder: stdout, stderr, status.
  local function shell(script)
    helper.write(folder .. "/script", ("root=%s\nbase=%s\nmicroscope=%s\n%s%s"):format(
      helper.quote(helper.root), helper.quote(base),
      helper.quote(helper.stage .. "/bin/microscope"), SHELL, script))
    return helper.run("timeout -s KILL 200 sh script", folder)
  end

  local function named(script)
    local out, err, status = shell(script)
    assert.equal(0, status, out .. err)
    return err
  end

  local function has_server()
    local _, _, status = helper.run("command -v debuginfod")
    if status ~= 0 then pending("there is no debuginfod") end
    return status == 0
  end

  local function assert_as_recorded()
    kit.assert_same(kit.meanings(base .. "/now.usprof"), kit.meanings(folder .. "/a.usprof"))
  end

  local function assert_unnamed(words)
    assert.equal(0, kit.count(folder .. "/a.usprof", "words.cc"))
    assert.matches(words, kit.problem(folder .. "/a.usprof", "words"))
  end

  it("fetches the image and its debug information", function()
    if not has_server() then return end
    named("serve $base/served && DEBUGINFOD_URLS=$url symbolize --debuginfod a.usprof")
    assert_as_recorded()
  end)

  it("asks no server without being told to", function()
    if not has_server() then return end
    named([[serve $base/served && : >server.log
      DEBUGINFOD_URLS=$url symbolize a.usprof && ! grep -q GET server.log]])
    assert_unnamed("no file with its build ID was found")
  end)

  it("needs no image where a server has debug files alone", function()
    if not has_server() then return end
    named([[mkdir debug && objcopy --only-keep-debug $base/served/words debug/x
      serve debug && DEBUGINFOD_URLS=$url symbolize --debuginfod a.usprof]])
    local now = kit.meanings(base .. "/now.usprof")
    for l, meaning in ipairs(kit.meanings(folder .. "/a.usprof")) do
      if now[l]:find("words.cc", 1, true) then assert.equal(now[l], meaning) end
    end
  end)

  it("has from the cache what it has once fetched", function()
    if not has_server() then return end
    named([[serve $base/served && cp a.usprof b.usprof
      DEBUGINFOD_URLS=$url symbolize --debuginfod b.usprof && kill -9 $server
      DEBUGINFOD_URLS=$url symbolize --debuginfod a.usprof]])
    assert_as_recorded()
  end)

  it("does not use what lies in the cache for another build", function()
    if not has_server() then return end
    named([[serve $base/served && cp a.usprof b.usprof
      DEBUGINFOD_URLS=$url symbolize --debuginfod b.usprof; kill -9 $server
      for file in cache/$id/*; do chmod u+w $file; cp $base/other $file; done
      DEBUGINFOD_URLS=$url symbolize --debuginfod a.usprof]])
    assert_unnamed("another build ID")
  end)

  it("says when no server has it", function()
    if not has_server() then return end
    named([[mkdir none && cp $base/served/words none && serve none && kill -9 $server
      mkdir empty; port=$(free_port)
      debuginfod -d :memory: -p $port -t 0 -F empty >server.log 2>&1 & server=$!
      url=http://127.0.0.1:$port
      for _ in $(seq 300); do answers $url/metrics && break; sleep 0.1; done
      DEBUGINFOD_URLS=$url symbolize --debuginfod a.usprof]])
    assert_unnamed("debuginfod: no server has its build ID")
  end)

  it("does not use a file of another build that a server gives", function()
    named("behave wrong $base/other && DEBUGINFOD_URLS=$url symbolize --debuginfod a.usprof")
    assert_unnamed("has another build ID")
  end)

  it("does not use what is no ELF file, and what was cut off", function()
    named("behave wrong $base/words.cc && DEBUGINFOD_URLS=$url symbolize --debuginfod a.usprof")
    assert_unnamed("not an ELF")
    helper.run(("rm -rf cache port; cp %s/bare.usprof a.usprof"):format(base), folder)
    named("behave cut $base/served/words && DEBUGINFOD_URLS=$url symbolize --debuginfod a.usprof")
    assert_unnamed("debuginfod: ")
  end)

  it("names a server that refuses", function()
    named("DEBUGINFOD_URLS=http://127.0.0.1:$(free_port) symbolize --debuginfod a.usprof")
    assert_unnamed("debuginfod: Connection refused")
  end)

  it("gives up on a server that says nothing, once for all modules", function()
    named([[behave silent $base/other
      DEBUGINFOD_TIMEOUT=1 DEBUGINFOD_URLS=$url symbolize --debuginfod a.usprof]])
    assert_unnamed("debuginfod: ")
    local asked = 0
    local _, err = helper.microscope("symbolize --unnamed a.usprof", folder)
    for _ in err:gmatch("no answer within") do asked = asked + 1 end
    assert.is_true(asked <= 1, err)
  end)

  it("gives up on a server that never ends, and keeps nothing of what it sent", function()
    named([[behave endless $base/served/words
      DEBUGINFOD_MAXSIZE=20000000 DEBUGINFOD_URLS=$url symbolize --debuginfod a.usprof
      test $(du -sb cache | cut -f 1) -lt 1000000]])
    assert_unnamed("debuginfod: a server sent more than 20000000 bytes")
  end)

  it("gives up on a server that is slower than DEBUGINFOD_TIMEOUT allows", function()
    named([[behave slow $base/served/words
      DEBUGINFOD_TIMEOUT=1 DEBUGINFOD_URLS=$url symbolize --debuginfod a.usprof]])
    assert_unnamed("debuginfod: ")
  end)

  for _, mode in ipairs { "silent", "slow" } do
    it("ends at a signal and leaves the capture whole: " .. mode, function()
      local before = helper.read(folder .. "/a.usprof")
      local out, err, status = shell(("behave %s $base/served/words\n"):format(mode) .. [[
        export DEBUGINFOD_URLS=$url
        timeout -s KILL 60 "$microscope" symbolize --debuginfod a.usprof & job=$!
        until_there asked && pkill -TERM -P $job
        wait $job]])
      assert.equal(143, status, out .. err)
      assert.matches("interrupted: a.usprof is as it was", err)
      assert.equal(before, helper.read(folder .. "/a.usprof"))
      assert.equal("a.usprof\n", (helper.run("ls | grep usprof", folder)))
      -- Nothing says for the next minutes that no server had it.
      assert.equal("", (helper.run("find cache -name executable -o -name debuginfo", folder)))
    end)
  end
end)
