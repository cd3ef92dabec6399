-- microscope record against the running kernel: how it ends, what it leaves, what it measures.

local cjson = require("cjson")

local capture = require("microscope.capture")
local helper = require("spec.helper")

local SPIN = helper.build .. "/examples/spin"

describe("record", function()
  local folder, microscope

  before_each(function()
    folder = helper.folder()
    microscope = helper.quote(helper.stage .. "/bin/microscope")
  end)

  after_each(function() helper.remove(folder) end)

  local function exists(name)
    local file = io.open(folder .. "/" .. name)
    if file then file:close() end
    return file ~= nil
  end

  -- A shell script in the folder, in which `until_true COMMAND` waits at most half a minute.  One
  -- that hangs is ended after a minute, with all it started.
  local function shell(script)
    helper.write(folder .. "/script.sh", helper.WAITS .. ([[
      until_true() { for _ in $(seq 600); do "$@" && return 0; sleep 0.05; done; return 1; }
      MICROSCOPE=%s SPIN=%s
      %s]]):format(microscope, helper.quote(SPIN), script))
    return helper.run("exec timeout -k 1 60 bash script.sh", folder)
  end

  local function report(name)
    local out, err, status = helper.microscope("report --format json --tree " .. name, folder)
    assert.same({ "", 0 }, { err, status })
    return cjson.decode(out)
  end

  local function by_name(list)
    local out = {}
    for _, entry in ipairs(list) do out[entry.name] = entry end
    return out
  end

  it("passes on the program's status, or 128 and the signal's number", function()
    assert.equal(7, (select(3, shell("$MICROSCOPE record -q sh -c 'exit 7'"))))
    assert.equal(0, (select(3, shell("$MICROSCOPE record -q true"))))
    assert.equal(137, (select(3, shell("$MICROSCOPE record -q sh -c 'kill -9 $$'"))))
    assert.equal(143, (select(3, shell("$MICROSCOPE record -q sh -c 'kill -15 $$'"))))
  end)

  it("gives the program its own arguments, streams and environment", function()
    local out, err = shell([[
      echo in | X=1 $MICROSCOPE record -q -g -F 99 sh -c 'cat; echo "$1 $X"; echo e >&2' x -F]])
    assert.same({ "in\n-F 1\n", "e\n" }, { out, err })
  end)

  it("fails in one line when there is no such program, and leaves no file", function()
    local out, err, status = shell("$MICROSCOPE record ./nothing-here")
    assert.same({ "", 1 }, { out, status })
    assert.matches("^microscope record: [^\n]*nothing%-here[^\n]*\n$", err)
    assert.is_false(exists("microscope.usprof"))
  end)

  it("fails when the capture cannot be written", function()
    local _, err, status = shell("$MICROSCOPE record -o no/where.usprof true")
    assert.equal(1, status)
    assert.matches("no/where.usprof", err)
  end)

  it("keeps an older capture as .old", function()
    shell("$MICROSCOPE record -q true && $MICROSCOPE record -q true")
    assert.is_true(exists("microscope.usprof") and exists("microscope.usprof.old"))
    assert.equal(0, (select(3, helper.microscope("report", folder))))
  end)

  it("measures shares that are known, within their 99.999 % interval", function()
    assert.equal(0, (select(3, shell("$MICROSCOPE record -q -o a.usprof $SPIN 1.5"))))
    local r = report("a.usprof")
    local fns, n = by_name(r.functions), r.summary.samples
    assert.is_true(n > 200, n .. " samples")
    -- 4.417 standard errors on each side leave out 1 in 100,000.
    local share, want = fns.heavy.self_samples / (fns.heavy.self_samples + fns.light.self_samples),
      0.75
    assert.is_true(math.abs(share - want) < 4.417 * math.sqrt(want * (1 - want) / n), share)
    -- All but what the loader took before main, and libc after it.
    assert.is_true(n - fns.main.total_samples <= 5, n - fns.main.total_samples)
    assert.is_true(fns.heavy.self_ci_ns[1] < fns.heavy.self_ns
      and fns.heavy.self_ns < fns.heavy.self_ci_ns[2])
    assert.equal("spin", fns.heavy.module)
    -- As many samples as the program had CPU time for.
    assert.is_true(r.summary.sampled_ns > 1.3e9 and r.summary.sampled_ns < 1.7e9,
      r.summary.sampled_ns)
  end)

  it("attaches to a running process and leaves it unharmed", function()
    local _, err, status = shell([[
      $SPIN 100 ready & pid=$!
      until_true test -e ready
      $MICROSCOPE record -q -o a.usprof --duration 0.5 --pid $pid; rc=$?
      kill -0 $pid || rc=99
      kill -9 $pid
      exit $rc]])
    assert.same({ "", 0 }, { err, status })
    local r = report("a.usprof")
    assert.is_true(r.summary.samples > 20, r.summary.samples .. " samples")
    assert.is_truthy(by_name(r.functions).heavy)
  end)

  it("stops and saves on Ctrl-C, and ends what it started", function()
    local _, _, status = shell([[
      $MICROSCOPE record -o a.usprof $SPIN 1000 ready & recorder=$!
      until_true test -e ready
      burns $(pgrep -f "^$SPIN 1000 ready") 30
      kill -INT $recorder; wait $recorder; rc=$?
      pgrep -f "$SPIN 1000 ready" > left
      exit $rc]])
    -- Only the recorder got the signal; it ends the program by SIGTERM.
    assert.equal(143, status)
    assert.equal("", helper.read(folder .. "/left"))
    assert.is_true(report("a.usprof").summary.samples > 0)
  end)

  it("killed leaves the program running and no file under the final name", function()
    local _, _, status = shell([[
      $MICROSCOPE record -q -o a.usprof $SPIN 1000 ready & recorder=$!
      until_true test -e ready
      kill -9 $recorder; wait $recorder
      pid=$(pgrep -f "$SPIN 1000 ready") && kill -0 $pid && kill -9 $pid]])
    assert.equal(0, status)
    assert.is_false(exists("a.usprof"))
  end)

  it("records threads and children, and leaves children out when asked", function()
    assert.equal(0, (select(3, shell([[
      export SPIN
      $MICROSCOPE record -q -o a.usprof sh -c '"$SPIN" 0.3 & "$SPIN" 0.3; wait' &&
      $MICROSCOPE record -q -o b.usprof --no-children sh -c '"$SPIN" 0.3; true']]))))
    assert.is_true(report("a.usprof").summary.processes >= 3)
    assert.is_truthy(by_name(report("a.usprof").functions).heavy)
    assert.is_nil(by_name(report("b.usprof").functions).heavy)
  end)

  -- Without randomisation each program's stack is where the one's before was, and begins higher or
  -- lower as its environment is short or long: copies end at the right one's.
  it("keeps whole stacks over execs that move the stack", function()
    local out, err, status = shell([[
      cat >self.sh <<'END'
n=$1; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done
[ $n = 0 ] && exit 0
[ $((n % 2)) = 0 ] && PAD=$(printf '%06000d' 0) || PAD=
export PAD; exec sh self.sh $((n - 1))
END
      setarch -R $MICROSCOPE record -q -F 9999 -o x.usprof setarch -R sh self.sh 12]])
    assert.same({ "", 0 }, { err, status }, out)
    local r = report("x.usprof")
    assert.is_true(r.summary.samples > 1000, r.summary.samples)
    local short = 0
    for _, ending in ipairs(r.ends) do
      if not ending.whole then short = short + ending.samples end
    end
    -- A sample now and then is in code without call-frame information.
    assert.is_true(short <= 0.005 * r.summary.samples, cjson.encode(r.ends))
  end)

  it("waits for the delay", function()
    assert.equal(0, (select(3, shell([[
      $MICROSCOPE record -q -o a.usprof --delay 0.5 \
        sh -c 'cut -d" " -f1 /proc/uptime > began; exec "$0" 1' $SPIN]]))))
    assert.is_true(report("a.usprof").summary.samples > 0)
    local began = tonumber(helper.read(folder .. "/began"))
    local cap = assert(capture.open(folder .. "/a.usprof"))
    local zero = tonumber(cap:array("clocks", "monotonic_ns")[0]) / 1e9
    cap:close()
    -- /proc/uptime counts hundredths, and the shell was up for a moment.
    assert.is_true(zero - began > 0.4, zero - began)
  end)

  it("tells of time that samples do not stand for", function()
    local out = shell([[
      $MICROSCOPE record -q -F 99 -o a.usprof \
        sh -c 'i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); done' &&
      $MICROSCOPE report a.usprof]])
    local summary = report("a.usprof").summary
    -- Hundreds of processes that live for a tenth of a period each: seldom sampled, but counted.
    assert.is_true(summary.program_user_ns - summary.sampled_ns > 50e6, out)
    assert.matches("of user CPU time: samples stand for", out)
    shell("$MICROSCOPE record -q -o b.usprof $SPIN 0.5")
    summary = report("b.usprof").summary
    assert.is_true(math.abs(summary.sampled_ns / summary.program_user_ns - 1) < 0.1,
      summary.sampled_ns .. " " .. summary.program_user_ns)
  end)

  -- Go's stacks begin in runtime.goexit, which nothing called: its return address is 0.
  it("sees Go's stacks whole", function()
    helper.write(folder .. "/busy.go", [[
package main
import "fmt"
//go:noinline
func leaf(n int) int { s := 0; for i := 0; i < n; i++ { s += i ^ n }; return s }
//go:noinline
func middle(n int) int { return leaf(n) + 1 }
func main() {
  done := make(chan int)
  go func() {
    s := 0
    for i := 0; i < 300; i++ { s += middle(1000000) }
    done <- s
  }()
  fmt.Println(<-done)
}
]])
    local _, err, status = helper.run(("HOME=%s GOCACHE=%s/gocache GOFLAGS=-mod=mod go build -o "
      .. "busy busy.go"):format(helper.quote(folder), helper.quote(helper.build)), folder)
    assert(status == 0, err)
    shell("$MICROSCOPE record -q -F 1999 -o a.usprof ./busy")
    local all, whole = 0, 0
    for _, entry in ipairs(report("a.usprof").ends) do
      all = all + entry.samples
      whole = whole + (entry.whole and entry.samples or 0)
    end
    assert.is_true(all > 100 and whole >= 0.95 * all, whole .. " of " .. all)
    assert.matches("main.main.func1.*main.middle.*main.leaf",
      (helper.microscope("report --tree a.usprof", folder)))
  end)

  it("keeps what it was recorded with", function()
    shell("$MICROSCOPE record -q -F 1999 --stack-bytes 8K --budget 50 $SPIN 0.2")
    local settings = report("microscope.usprof").summary.settings
    assert.equal("1999 Hz", settings.rate)
    assert.equal("8192", settings["stack-bytes"])
    assert.equal("50 %", settings.budget)
    assert.equal("dev", settings.preset)
  end)

  it("serves an unprivileged user's own programs", function()
    if helper.run("id -u") ~= "0\n" then return pending("needs root, to become another user") end
    local out, err, status = helper.run(([[
      d=$(mktemp -d) && cp -r %s/. $d && cp %s $d/spin && chmod -R a+rX $d && chmod 777 $d
      cd $d && setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all \
        $d/bin/microscope record -q -o a.usprof ./spin 0.5 && bin/microscope report a.usprof; rc=$?
      rm -rf $d; exit $rc]]):format(helper.quote(helper.stage), helper.quote(SPIN)))
    assert.same({ "", 0 }, { err, status })
    assert.matches("heavy %(spin%)", out)
  end)
end)
