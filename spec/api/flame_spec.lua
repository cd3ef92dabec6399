-- The flame graph in a real browser: what it draws, zoom, search, and names that would be markup.

local cjson = require("cjson")

local helper = require("spec.helper")
local made = require("spec.support.made")

describe("the flame graph", function()
  local folder
  -- Names from outside are bytes: markup, an end of the data's element, a direction mark, no UTF-8.
  local HOSTILE = {
    markup = "<img src=x onerror=alert(1)>",
    ending = "</script><script>alert(2)</script>",
    quote = 'a"b\'c&amp;d\\',
    turned = "x\xe2\x80\xaey",
    broken = "caf\xe9\27[31m",
  }

  setup(function()
    folder = helper.folder()
    made.capture(folder .. "/a.usprof", {
      meta = { command = "./app <b>bold</b>" },
      samples = {
        { "main > parse > read", n = 30 },
        { "main > parse", n = 10 },
        { "main > work > inner > leaf", n = 40 },
        { "[3] > lost", n = 20 },
      },
    })
    local samples = {}
    for _, name in pairs(HOSTILE) do samples[#samples + 1] = { "main | " .. name, n = 10 } end
    made.capture(folder .. "/hostile.usprof", { separator = "|", samples = samples })
    local deep = {}
    for i = 1, 3000 do deep[i] = i % 2 == 0 and "visit" or "walk" end
    made.capture(folder .. "/deep.usprof", { samples = { { table.concat(deep, " > "), n = 3 },
      { "walk", n = 1 } } })
  end)

  teardown(function() helper.remove(folder) end)

  -- What a browser says of a page after these steps.
  local function browse(page, steps)
    helper.write(folder .. "/steps.json", cjson.encode(steps))
    local out, err, status = helper.run(("timeout -s KILL 120 python3 %s %s steps.json"):format(
      helper.quote(helper.root .. "/spec/support/browser.py"), page), folder)
    assert.same({ "", 0 }, { err, status })
    local result = cjson.decode(out)
    assert.same({}, result.requests)
    assert.same({}, result.errors)
    return result.values
  end

  local function page_of(capture)
    local page = capture .. ".html"
    local _, err, status = helper.microscope(("query flame -o %s %s.usprof"):format(page,
      capture), folder)
    assert.same({ "", 0 }, { err, status })
    return page
  end

  local LABELS = [[Array.from(document.querySelectorAll("g.frame")).map(
    (g) => g.getAttribute("aria-label"))]]
  local function width(label)
    return ([[Math.round(Array.from(document.querySelectorAll("g.frame")).find((g) =>
      g.getAttribute("aria-label").startsWith("%s ")).querySelector("rect")
      .getBoundingClientRect().width)]]):format(label)
  end

  it("holds all that was chosen, and leaves out nothing that weighs nothing", function()
    made.capture(folder .. "/part.usprof", {
      threads = { { tid = 1, name = "a" }, { tid = 2, name = "b" } },
      samples = { { "main > work", n = 10 }, { "alone", n = 5 },
        { "main > other > more", n = 9, thread = 1 } },
    })
    local _, err, status = helper.microscope("report part.usprof --flame part.html --merge alone"
      .. " --where 'thread = a'", folder)
    assert.same({ "", 0 }, { err, status })
    local page = helper.read(folder .. "/part.html")
    assert.equal("15000000", page:match('"total":(%d+)'))
    assert.equal("0", page:match('"hidden":(%d+)'))
    local at_top = 0
    for parent, total in page:match('"nodes":(%b[])'):gmatch("%d+,(%d+),(%d+),%d+") do
      if parent == "0" then at_top = at_top + total end
    end
    assert.equal(15e6, at_top)
  end)

  it("draws each frame as wide as its share", function()
    local values = browse(page_of("a"), { { eval = LABELS }, { eval = width("main") },
      { eval = width("work") }, { eval = width("parse") }, { eval = "document.title" },
      { eval = "document.querySelectorAll('h1 *').length" } })
    assert.same({
      "all: 100 ms, 100.00 %",
      "main (app): 80.0 ms, 80.00 %",
      "parse (app): 40.0 ms, 40.00 %; itself 10.0 ms, 10.00 %",
      "read (app): 30.0 ms, 30.00 %; itself 30.0 ms, 30.00 %",
      "work (app): 40.0 ms, 40.00 %",
      "inner (app): 40.0 ms, 40.00 %",
      "leaf (app): 40.0 ms, 40.00 %; itself 40.0 ms, 40.00 %",
      "[stack copy exhausted]: 20.0 ms, 20.00 %",
      "lost (app): 20.0 ms, 20.00 %; itself 20.0 ms, 20.00 %",
    }, values[1])
    assert.same({ 960, 480, 480 }, { values[2], values[3], values[4] })
    assert.same({ "./app <b>bold</b>", 0 }, { values[5], values[6] })
  end)

  it("zooms to what is clicked, and out again", function()
    local node = [[g.frame[aria-label^="parse "] rect]]
    local values = browse(page_of("a"), {
      { click = node }, { eval = LABELS }, { eval = width("parse") }, { eval = width("read") },
      { key = "Escape" }, { eval = width("main") }, { eval = "document.activeElement.id" },
      { click = "#reset" }, { eval = width("main") },
      { eval = "document.getElementById('reset').disabled" },
      { eval = [[document.querySelector('g.frame[aria-label^="work "]').focus()]] },
      { key = "Enter" }, { eval = width("work") } })
    assert.same({ "main (app): 80.0 ms, 80.00 %", "all: 100 ms, 100.00 %",
      "parse (app): 40.0 ms, 40.00 %; itself 10.0 ms, 10.00 %",
      "read (app): 30.0 ms, 30.00 %; itself 30.0 ms, 30.00 %" }, values[1])
    assert.same({ 1200, 900 }, { values[2], values[3] })
    assert.equal(1200, values[4]) -- one out: main fills the line
    assert.same({ 960, true, 1200 }, { values[6], values[7], values[9] })
  end)

  it("searches by name and by expression, and says how much was found", function()
    local hits = [[Array.from(document.querySelectorAll("g.hit")).map(
      (g) => g.getAttribute("aria-label").split(" ")[0])]]
    local found = "document.getElementById('matched').textContent"
    local values = browse(page_of("a"), {
      { type = { "#search", "REA" } }, { eval = hits }, { eval = found },
      { eval = "document.getElementById('search').value = ''" },
      { type = { "#search", "/^(work|leaf|lost)$/" } }, { eval = hits }, { eval = found },
      { eval = "document.getElementById('search').value = ''" },
      { type = { "#search", "/(/" } }, { eval = found } })
    assert.same({ "read" }, values[1])
    assert.equal("1 frames, 30.00 %", values[2])
    assert.same({ "work", "leaf", "lost" }, values[4])
    assert.equal("3 frames, 60.00 %", values[5]) -- leaf's time is work's
    assert.equal("not an expression", values[7])
  end)

  it("shows hostile names as text and runs none of them", function()
    local page = page_of("hostile")
    local text = helper.read(folder .. "/" .. page)
    assert.is_nil(text:find("onerror=alert(1)>", 1, true))
    assert.is_nil(text:find("</script><script>alert", 1, true))
    local values = browse(page, { { eval = LABELS },
      { eval = "document.querySelectorAll('img, script').length" } })
    local all = table.concat(values[1], "\n")
    for _, shown in ipairs { HOSTILE.markup, HOSTILE.ending, HOSTILE.quote,
      "x\\xe2\\x80\\xaey", "caf\\xe9\\x1b[31m" } do
      assert.is_truthy(all:find(shown .. " (app): 10.0 ms", 1, true), shown .. " in " .. all)
    end
    assert.equal(2, values[2]) -- the data and the script
  end)

  it("draws thousands of frames of recursion", function()
    local values = browse(page_of("deep"), {
      { eval = "document.querySelectorAll('g.frame').length" },
      { eval = "document.getElementById('graph').getBoundingClientRect().height > 3000 * 18" } })
    assert.same({ 3001, true }, values)
  end)

  it("comes from report too, after its transforms", function()
    local _, err, status = helper.microscope(
      "report --flame r.html --merge inner --drop lost a.usprof", folder)
    assert.same({ "", 0 }, { err, status })
    local values = browse("r.html", { { eval = LABELS } })
    local all = table.concat(values[1], "\n")
    assert.matches("all: 80%.0 ms", all)
    assert.is_nil(all:find("inner", 1, true))
    _, err, status = helper.microscope("report --flame no/such/folder/r.html a.usprof", folder)
    assert.equal(1, status)
    assert.matches("^microscope report: [^\n]*no/such/folder", err)
  end)

  it("says how many nodes are too small to see", function()
    helper.microscope("query flame -o s.html a.usprof", folder)
    helper.microscope("report --flame s.html --min-percent 35 a.usprof", folder)
    local values = browse("s.html", { { eval = LABELS },
      { eval = "document.getElementById('details').textContent" } })
    assert.equal(6, #values[1])
    assert.matches("2 nodes too small to see are left out", values[2])
  end)
end)
