-- The shipped queries, each over captures whose answers are known.

local cjson = require("cjson")

local helper = require("spec.helper")
local made = require("spec.support.made")
local microscope = require("microscope")
local sources = require("spec.support.sources")

describe("the query", function()
  local folder

  setup(function()
    folder = helper.folder()
    helper.write(folder .. "/app.c", ("line\n"):rep(32) .. "  hot(); /* \27[31m here */\n")
    made.capture(folder .. "/known.usprof", {
      duration_ns = 2e9,
      file = folder .. "/app.c",
      processes = { { pid = 100, name = "app" }, { pid = 200, parent = 0, name = "child",
        start_ns = 1e8, end_ns = 1.9e9 } },
      threads = { { tid = 100, name = "main" },
        { tid = 101, name = "worker", start_ns = 5e8, end_ns = 1.5e9 },
        { tid = 200, process = 1, name = "child", start_ns = 1e8, end_ns = 1.9e9 } },
      samples = {
        { "main > parse", n = 100, at = 0, every = 1e6 },
        { "main > walk > walk > walk > visit", n = 60, at = 5e8, every = 1e6, thread = 1, cpu = 1 },
        { "main > walk > walk", n = 20, at = 6e8, every = 1e6, thread = 1, cpu = 1 },
        { "main > parse", n = 10, at = 1.1e9, every = 1e6 },
        { "main > render", n = 90, at = 1.2e9, every = 1e6, thread = 2 },
        { "[3] > deep", n = 18, at = 1.5e9, every = 1e6, thread = 2 },
        { "main > error > log > format > write", n = 2, at = 1.6e9, every = 1e6, thread = 2 },
      },
      rows = {
        { "losses", { time_ns = 1e9, kind = "samples", count = 7 } },
        { "losses", { time_ns = 1e9, kind = "records", count = 3 } },
        { "off_spans", { start_ns = 1e8, end_ns = 3e8, kind = "budget" } },
        { "problems", { text = { "something odd" }, count = 2 } },
      },
    })
  end)

  teardown(function() helper.remove(folder) end)

  -- A query's rows as tables by column, and what it says below.
  local function rows_of(name, arguments)
    local out, err, status = helper.microscope(("query %s --format json known.usprof%s"):format(
      name, arguments and " -- " .. arguments or ""), folder)
    assert.same({ "", 0 }, { err, status })
    local result = cjson.decode(out)
    return result.rows, result.notes, result
  end

  local function one(rows, column, value)
    for _, row in ipairs(rows) do
      if row[column] == value then return row end
    end
    error("no row with " .. column .. " = " .. value)
  end

  it("modules adds up to all", function()
    local rows = rows_of("modules")
    assert.equal(1, #rows)
    assert.same({ "app", 300e6, 300, 1 },
      { rows[1].module, rows[1].self, rows[1].samples, rows[1].share })
    assert.equal(6, rows[1].functions) -- those that have time of their own
  end)

  it("weighs rows that stand for several samples by what they weigh", function()
    local path = folder .. "/many.usprof"
    made.capture(path, { duration_ns = 1e9, period = 1e6, file = "/none/app.c",
      threads = { { tid = 1, name = "a" }, { tid = 2, name = "b" } },
      samples = {
        { "main > hot", at = 0, weight = 990e6 },
        { "main > hot > cold", at = 6e8, weight = 9e6, thread = 1 },
        { "[3] > lost", at = 6e8, weight = 1e6, thread = 1 },
      } })
    local function first(query, column, arguments)
      local out, err = helper.microscope(("query %s --format json many.usprof%s"):format(query,
        arguments and " -- " .. arguments or ""), folder)
      assert.equal("", err)
      return cjson.decode(out).rows[1][column], cjson.decode(out).rows
    end
    for _, query in ipairs { "hot-lines", "threads" } do
      assert.near(0.99, (first(query, "share")), 1e-12, query)
    end
    assert.near(0.999, (first("ends", "share")), 1e-12)
    assert.near(1, (first("top-by-thread", "share")), 1e-12)
    local low, rows = first("modules", "low")
    assert.same({ 1, 1000 }, { rows[1].share, rows[1].samples })
    assert.is_true(low > 0.99)
    local _, around = first("sandwich", "share", "hot")
    assert.near(9 / 999, one(around, "role", "callee").share, 1e-12)
    assert.equal(9, one(around, "role", "callee").samples)
    local _, changes = first("changes", "change")
    assert.same({ 1, 0, "less" }, { changes[1].first, changes[1].rest, changes[1].verdict })
    local cap = assert(microscope.open(path))
    local tree = assert(microscope.tree(cap, microscope.keys(cap)))
    local sums = microscope.sums(cap, "thread")
    assert.same({ 1000, 990, 10 }, { tree.samples, sums.samples[0], sums.samples[1] })
    local lane = microscope.lanes(cap, { from_ns = 5e8, to_ns = 7e8, by = "all" }).lanes[1]
    assert.same({ 10e6, 10 }, { lane.total_weight, lane.total_samples })
    cap:close()
  end)

  it("loses no sample at the end of a recording", function()
    made.capture(folder .. "/last.usprof", { duration_ns = 2e9, samples = {
      { "main > a", at = 0 }, { "main > b", at = 2e9 } } })
    local cap = assert(microscope.open(folder .. "/last.usprof"))
    local lanes = microscope.lanes(cap, { by = "all" })
    assert.same({ 2, 2e9 + 1 }, { lanes.lanes[1].total_samples, lanes.to_ns })
    cap:close()
    local out = helper.microscope("query heatmap --format json last.usprof", folder)
    local total = 0
    for _, row in ipairs(cjson.decode(out).rows) do total = total + row.weight end
    assert.equal(2e6, total)
  end)

  it("reads no source from what has no end", function()
    local fifo = folder .. "/fifo.c"
    helper.run("mkfifo " .. fifo)
    for _, path in ipairs { fifo, "/dev/zero", "/proc/self/mem", "/proc/kmsg", folder, "a\0b" } do
      assert.is_nil(microscope.source_lines(path), path)
    end
    assert.equal("# microscope", microscope.source_lines(helper.root .. "/README.md")[1])
  end)

  it("hot-lines names lines and quotes the source that is there", function()
    local rows, notes = rows_of("hot-lines", "--limit 3")
    assert.equal(3, #rows)
    assert.same({ "3 more lines (--limit)" }, notes)
    assert.same({ "parse", "app.c", 33, 110e6, "hot(); /* \27[31m here */" },
      { rows[1]["function"], rows[1].file, rows[1].line, rows[1].self, rows[1].source })
    assert.near(110 / 300, rows[1].share, 1e-9)
    assert.same({ "render", cjson.null }, { rows[2]["function"], rows[2].source })
    local out = helper.microscope("query hot-lines known.usprof", folder)
    assert.matches("app%.c +33  hot%(%); /%* \\x1b%[31m here %*/\n", out)
  end)

  it("hot-lines says of how much no line is known", function()
    helper.write(folder .. "/bare.folded", "main;work 3\n")
    helper.microscope("convert bare.folded bare.usprof", folder)
    assert.matches("%(no rows%)\n\nof 100%.0 %% no line is known: query losses",
      (helper.microscope("query hot-lines bare.usprof", folder)))
  end)

  it("sandwich has callers and callees that add up to the whole", function()
    local rows, _, result = rows_of("sandwich", "walk")
    assert.equal("walk (app): 80.0 ms in all, 26.7 % of the recording", result.title)
    local caller, itself, callee = one(rows, "role", "caller"), one(rows, "role", "itself"),
      one(rows, "role", "callee")
    assert.same({ "main (app)", 80, 1 }, { caller["function"], caller.samples, caller.share })
    assert.same({ "walk (app)", 20 }, { itself["function"], itself.samples })
    assert.same({ "visit (app)", 60 }, { callee["function"], callee.samples })
    local _, err, status = helper.microscope("query sandwich known.usprof -- wal", folder)
    assert.equal(1, status)
    assert.matches("no function 'wal'; near to it: walk", err)
    _, err, status = helper.microscope("query sandwich known.usprof -- /r/", folder)
    assert.equal(1, status)
    assert.matches("'/r/' names 5 functions: ", err)
    _, err, status = helper.microscope("query sandwich known.usprof", folder)
    assert.equal(2, status)
    assert.matches("sandwich needs the argument function", err)
  end)

  it("threads tells each thread's share and how even they are", function()
    local rows, notes = rows_of("threads")
    assert.equal(3, #rows)
    assert.same({ "main", 100, 110e6 }, { rows[1].thread, rows[1].tid, rows[1].weight })
    local worker = one(rows, "thread", "worker")
    assert.near(0.08, worker.busy, 1e-9) -- 80 ms of the second that it lived
    assert.same({ "app (pid 100): 2 threads ran, evenness 0.98" }, notes)
  end)

  it("heatmap has each slice's time in its place", function()
    local rows, notes = rows_of("heatmap", "--columns 10")
    assert.equal(2, #rows)
    assert.equal("|@    +:   |", rows[1].slices)
    assert.equal("| .%  :.   |", rows[2].slices)
    assert.equal(180e6, rows[1].weight)
    assert.equal(120e6, rows[2].weight)
    assert.matches("a column is 100 ms", notes[1])
  end)

  it("ends says why, where and what helps", function()
    local rows, notes = rows_of("ends")
    assert.same({ "outermost frame", "whole", 282 },
      { rows[1].reason, rows[1].stacks, rows[1].samples })
    assert.same({ "stack copy exhausted", "short", 18, "deep (app)" },
      { rows[2].reason, rows[2].stacks, rows[2].samples, rows[2].most_often_under })
    assert.matches("stack copy exhausted: a larger %-%-stack%-bytes", notes[1])
  end)

  it("recursion finds what calls itself and how deep", function()
    local rows = rows_of("recursion")
    assert.equal(1, #rows)
    assert.same({ "walk (app)", 3, 80e6, 20e6 },
      { rows[1]["function"], rows[1].deepest, rows[1].total, rows[1].in_recursion })
  end)

  it("changes tells what noise cannot explain", function()
    local rows, notes = rows_of("changes")
    assert.matches("the first part has 180 samples, the rest 120; it begins at 1.00 s", notes[1])
    local render = one(rows, "function", "render (app)")
    local parse = one(rows, "function", "parse (app)")
    assert.same({ 0, 0.75, "more" }, { render.first, render.rest, render.verdict })
    assert.near(100 / 180, parse.first, 1e-9)
    assert.equal("less", parse.verdict)
    assert.equal("within noise", one(rows, "function", "write (app)").verdict)
    local total = rows_of("changes", "--of total --at 0.4")
    assert.equal("less", one(total, "function", "parse (app)").verdict)
    local _, err = helper.microscope("query changes known.usprof -- --at 5", folder)
    assert.matches("one part has no samples", err)
  end)

  it("top-by-thread lists each thread's own functions", function()
    local rows, notes = rows_of("top-by-thread", "--threads 2 --limit 1")
    assert.equal(2, #rows)
    assert.same({ "main", "parse (app)", 110e6, 1 },
      { rows[1].thread, rows[1]["function"], rows[1].self, rows[1].share })
    assert.same({ "child", "render (app)", 90e6 },
      { rows[2].thread, rows[2]["function"], rows[2].self })
    assert.matches("1 more thread", notes[1])
  end)

  it("rare-stacks shows the deepest of those seldom seen", function()
    local rows, notes = rows_of("rare-stacks")
    assert.equal(1, #rows)
    assert.same({ 5, 2, "write < format < log < error < ..." },
      { rows[1].long, rows[1].samples, rows[1].stack })
    assert.equal("1 of 6 distinct stacks are rare", notes[1])
  end)

  it("hot-paths goes from the top to where time went", function()
    local rows = rows_of("hot-paths", "--limit 4")
    assert.same({ 1, 2, "parse (app)", 110e6 },
      { rows[2].path, rows[2].depth, rows[2]["function"], rows[2].self })
    local short = one(rows_of("hot-paths", "--limit 5"), "depth", 0)
    assert.same({ 5, "[stack copy exhausted]" }, { short.path, short["function"] })
  end)

  it("timeline shows where threads lived and ran", function()
    local rows = rows_of("timeline", "--columns 20")
    local worker = one(rows, "thread", "worker")
    assert.same({ 5e8, 1e9, 80e6 }, { worker.start, worker.lived, worker.weight })
    assert.equal("|     =-........     |", worker.line)
  end)

  it("processes adds up what each started", function()
    local rows = rows_of("processes")
    assert.same({ "app", 190e6, 300e6, 1 },
      { rows[1].process, rows[1].self, rows[1].total, rows[1].share })
    assert.same({ "  child", 110e6, 110e6, 1e8, 1.9e9 },
      { rows[2].process, rows[2].self, rows[2].total, rows[2].start, rows[2]["end"] })
  end)

  it("losses tells all that is missing", function()
    local rows = rows_of("losses")
    assert.equal(2e8, one(rows, "what", "off: budget").time)
    assert.near(0.1, one(rows, "what", "off: budget").share, 1e-9)
    assert.equal(7, one(rows, "what", "lost samples").count)
    assert.near(7 / 307, one(rows, "what", "lost samples").share, 1e-9)
    assert.equal(3, one(rows, "what", "lost records").count)
    assert.same({ 18, "stack copy exhausted" }, { one(rows, "what", "short stacks").count,
      one(rows, "what", "short stacks").why })
    assert.same({ 2, "something odd" }, { one(rows, "what", "problem").count,
      one(rows, "what", "problem").why })
  end)
end)

describe("each shipped query", function()
  local folder, names = nil, {}
  for _, path in ipairs(sources.files("^queries/.*%.lua$")) do
    names[#names + 1] = path:match("([^/]+)%.lua$")
  end

  setup(function()
    folder = helper.folder()
    made.capture(folder .. "/empty.usprof", {})
    made.capture(folder .. "/one.usprof", { samples = { { "main", at = 5 } } })
  end)

  teardown(function() helper.remove(folder) end)

  it("is there: at least a dozen", function() assert.is_true(#names >= 12) end)

  it("uses the public API alone", function()
    for _, name in ipairs(names) do
      local text = sources.read("queries/" .. name .. ".lua")
      assert.is_nil(text:find("%f[%w]require%f[%W]"), name)
      assert.is_nil(text:find("%._[%a]"), name)
    end
  end)

  it("answers for a capture of nothing and of one sample, in each format", function()
    for _, name in ipairs(names) do
      local argument = name == "sandwich" and " -- main" or ""
      -- What writes a form of its own takes no --format.
      local writes = dofile(helper.root .. "/queries/" .. name .. ".lua").writes
      for _, file in ipairs { "empty", "one" } do
        for _, format in ipairs { "text", "json", "csv" } do
          local out, err, status = helper.microscope(("query %s%s %s.usprof%s"):format(name,
            writes and "" or " --format " .. format, file, argument), folder)
          local refused = status == 1
            and err:match("^microscope query: " .. name:gsub("%p", "%%%0") .. ": [^\n]+\n$")
          assert.is_truthy(status == 0 and err == "" and out ~= "" or refused,
            name .. " " .. file .. " " .. format .. ": " .. err)
        end
      end
    end
  end)

  it("has a help that names its options", function()
    for _, name in ipairs(names) do
      local out, err, status = helper.microscope("query " .. name .. " --help")
      assert.same({ "", 0 }, { err, status })
      local plugin = dofile(helper.root .. "/queries/" .. name .. ".lua")
      for _, option in ipairs(plugin.options or {}) do
        assert.is_truthy(out:find("--" .. option.name, 1, true), name .. " --" .. option.name)
      end
    end
  end)
end)
