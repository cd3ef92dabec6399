-- `report --annotate` on a real program: its lines and instructions against the capture's samples,
-- objdump and the source.

local cjson = require("cjson")

local capture = require("microscope.capture")
local helper = require("spec.helper")
local sources = require("microscope.report.sources")

local folder

local function report(arguments)
  return helper.microscope("report " .. arguments .. " x.usprof", folder)
end

local function annotate(symbol, more)
  local out, err, status = report(("--format json --annotate %s %s"):format(symbol, more or ""))
  assert.equal("", err)
  assert.equal(0, status)
  return cjson.decode(out)
end

-- The capture's own count: what ran at each address of the program itself.
local function by_address()
  local out = {}
  assert(capture.with(folder .. "/x.usprof", function(cap)
    local stack, weight = cap:array("samples", "stack"), cap:array("samples", "weight")
    local location, module = cap:array("stacks", "location"), cap:array("locations", "module")
    local name, offset = cap:array("modules", "name"), cap:array("locations", "offset")
    for i = 0, cap:rows("samples") - 1 do
      local l = location[stack[i]]
      if l ~= capture.NONE and module[l] ~= capture.NONE
        and cap:string(name[module[l]]) == "wordcount" then
        local address = tonumber(offset[l])
        out[address] = (out[address] or 0) + tonumber(weight[i])
      end
    end
    return true
  end))
  return out
end

describe("report --annotate", function()
  setup(function()
    folder = helper.folder()
    local out, err, status = helper.run(([[
      cp %s/fixtures/programs/wordcount.c . && gcc -O2 -g wordcount.c -o wordcount &&
      %s/bin/microscope record -F 4999 -o x.usprof ./wordcount]]):format(helper.quote(helper.root),
      helper.quote(helper.stage)), folder)
    assert(status == 0, out .. err)
  end)
  teardown(function() helper.remove(folder) end)

  it("gives each instruction what ran at it", function()
    local counted = by_address()
    for _, name in ipairs { "is_same", "find_word", "count_words", "make_text" } do
      local annotation = annotate(name).annotations[1]
      assert.equal(name, annotation.name)
      assert.equal(cjson.null, annotation.problem)
      local sum = 0
      for _, row in ipairs(annotation.code.instructions) do
        local own, first = 0, tonumber(row.address)
        for address = first, first + #row.bytes / 2 - 1 do own = own + (counted[address] or 0) end
        assert.equal(own, row.self)
        sum = sum + own
      end
      assert.equal(0, annotation.code.unplaced)
      assert.equal(sum, annotation.self)
      local lines = 0
      for _, line in ipairs(annotation.files[1].lines) do lines = lines + line.self end
      assert.equal(sum, lines)
    end
  end)

  it("says of a function what the function table says", function()
    local functions = cjson.decode((report("--format json"))).functions
    local found
    for _, entry in ipairs(functions) do
      if entry.name == "is_same" then found = entry end
    end
    local annotation = annotate("is_same").annotations[1]
    assert.equal(found.self_ns, annotation.self)
    assert.equal(found.total_ns, annotation.total)
  end)

  it("shows the program's own bytes and the source's own words", function()
    local annotation = annotate("find_word").annotations[1]
    local dump = helper.run("objdump -d --disassemble=find_word wordcount", folder)
    for _, row in ipairs(annotation.code.instructions) do
      local bytes = row.bytes:gsub("..", "%0 "):sub(1, 20)
      assert.is_truthy(dump:find(("%s:\t%s"):format(row.address:sub(3), bytes), 1, true),
        row.address)
      assert.equal("find_word", row.frames[#row.frames].name)
    end
    local text = sources.find(folder .. "/wordcount.c").lines
    for _, line in ipairs(annotation.files[1].lines) do assert.equal(text[line.line], line.text) end
    assert.is_false(annotation.files[1].newer)
  end)

  it("is for people too", function()
    local out, err, status = report("--annotate count_words")
    assert.same({ "", 0 }, { err, status })
    assert.matches("^count_words in .*/wordcount, build ID %x+\n", out)
    assert.matches("\n *[%d.<]+ %% +[%d.<]+ %% +%d+ +add_word%(text", out)
    assert.matches("count_words.*wordcount.c:78 > add_word wordcount.c:%d+", out)
    assert.matches("call 0x%x+ <find_word>", out)
    local intel = report("--annotate count_words --syntax intel")
    assert.is_nil(intel:find("%rdi", 1, true))
    assert.is_truthy(intel:find("rdi", 1, true))
  end)

  it("lists the candidates when there is no such function", function()
    local out, err, status = report("--annotate count_word")
    assert.same({ "", 1 }, { out, status })
    assert.matches("no function 'count_word'.*count_words", err)
  end)

  it("takes several by glob", function()
    local names = {}
    for _, annotation in ipairs(annotate("'*_word'").annotations) do
      names[annotation.name] = true
    end
    assert.is_true(names.find_word and names.hash_word)
  end)

  it("looks for the source below the folders it is told", function()
    helper.run("mkdir -p moved/a && mv wordcount.c moved/a/", folder)
    local gone = annotate("is_same").annotations[1]
    assert.equal(cjson.null, gone.files[1].found)
    assert.equal(cjson.null, gone.files[1].lines[1].text)
    assert.is_true(#gone.code.instructions > 3)
    assert.matches("not found; %-%-source%-dir", (report("--annotate is_same")))
    local found = annotate("is_same", "--source-dir nowhere --source-dir moved/a").annotations[1]
    assert.equal("moved/a/wordcount.c", found.files[1].found)
    helper.run("touch -d '+1 hour' moved/a/wordcount.c && mv moved/a/wordcount.c .", folder)
    assert.is_true(annotate("is_same").annotations[1].files[1].newer)
    assert.matches("WRITTEN AFTER THE PROGRAM", (report("--annotate is_same")))
  end)

  it("shows no code but that of what was recorded", function()
    helper.run("mv wordcount kept && gcc -O1 wordcount.c -o wordcount", folder)
    local annotation = annotate("is_same").annotations[1]
    assert.equal(cjson.null, annotation.code)
    assert.matches("is not what was recorded: its build ID is", annotation.problem)
    assert.is_true(annotation.files[1].lines[1].total > 0)
    local id = annotation.build_id
    helper.run(("mkdir -p debug/.build-id/%s && cp kept debug/.build-id/%s/%s"):format(id:sub(1, 2),
      id:sub(1, 2), id:sub(3)), folder)
    local found = annotate("is_same", "--debug-dir debug").annotations[1]
    assert.is_true(#found.code.instructions > 3)
    assert.matches("debug/.build%-id/", found.code.path)
    helper.run("mv kept wordcount", folder)
  end)
end)
