-- record --symbols later and --keep-images: what such a capture has, and has not.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local kit = require("spec.cases.kit")

-- Rows of naming: {module, state, problem, named, unnamed}.
local function naming(cap)
  local out = {}
  local function text(column, i) return cap:string(cap:array("naming", column)[i]) end
  for i = 0, cap:rows("naming") - 1 do
    local module = cap:array("naming", "module")[i]
    out[#out + 1] = {
      module = cap:string(cap:array("modules", "name")[module]),
      state = capture.enum("mic_naming", cap:array("naming", "state")[i]),
      image = text("image", i),
      problem = text("problem", i),
      named = tonumber(cap:array("naming", "named")[i]),
      unnamed = tonumber(cap:array("naming", "unnamed")[i]),
    }
  end
  return out
end

local function of_module(list, name)
  for _, row in ipairs(list) do
    if row.module == name then return row end
  end
end

-- The modules whose parts are kept, and how many bytes there are of all.
local function kept(cap)
  local out, module = {}, cap:array("image_parts", "module")
  for i = 0, cap:rows("image_parts") - 1 do
    out[cap:string(cap:array("modules", "name")[module[i]])] = true
  end
  return out, cap:rows("image_bytes")
end

describe("record --symbols later", function()
  setup(kit.builds("chain", "vdso"))

  it("has places and build IDs, and no names", function()
    kit.with(kit.record("chain", "--symbols later"), function(run)
      assert.equal(0, run.status, run.err)
      assert.matches("microscope symbolize", run.err)
      capture.with(run.path, function(cap)
        assert.equal(0, cap:rows("lines"))
        assert.equal(0, cap:rows("functions"))
        assert.equal("later", cap:settings().symbols)
        local row = of_module(naming(cap), "chain")
        assert.equal("later", row.state)
        assert.equal(0, row.named)
        assert.is_true(row.unnamed >= 3)
      end)
      assert.is_true(run:summary().names_later)
      local named = run:count(function(names) return names[#names]:match("^chain%+0x%x+$") end)
      assert.is_true(named >= 100, run:tree())
      local text = helper.microscope("report " .. helper.quote(run.path))
      assert.matches("microscope symbolize", text)
    end)
  end)

  it("says which images no file will be proven to be, while they can be kept", function()
    local said = "none: it has no build ID: only record --keep-images lets symbolize name it"
    local function recorded(options)
      return kit.script([[
        echo 'int main(void) { for (volatile long i = 0; i < 400000000; i++); return 0; }' >none.c
        cc -O1 -Wl,--build-id=none -o none none.c || exit 9
        $microscope record --symbols later ]] .. options .. [[ -o x.usprof ./none]])
    end
    kit.with(recorded(""), function(run)
      assert.equal(0, run.status, run.err)
      assert.matches("microscope: " .. said .. "\n", run.err, 1, true)
      local text = helper.microscope("report " .. helper.quote(run.path))
      assert.matches("problem: " .. said .. "\n", text, 1, true)
      local _, err = helper.microscope("symbolize " .. helper.quote(run.path))
      assert.matches("it has no build ID, so no file can be proven to be it", err, 1, true)
    end)
    kit.with(recorded("--keep-images"), function(run)
      assert.equal(0, run.status, run.err)
      assert.is_nil(run.err:find("no build ID", 1, true))
      helper.microscope("symbolize " .. helper.quote(run.path))
      assert.matches("main %(none%)", (helper.microscope("report " .. helper.quote(run.path))))
    end)
  end)

  it("opens no debug file", function()
    if not kit.has("strace") then
      pending("there is no strace")
      return
    end
    kit.with(kit.script("strace -f -e trace=openat,openat2 -o opened $microscope record --symbols"
      .. " later -F 999 -o x.usprof -- $programs/chain"), function(run)
      assert.equal(0, run.status, run.err)
      local opened = helper.read(run.folder .. "/opened")
      assert.is_nil(opened:find("/.build-id/", 1, true))
      assert.is_nil(opened:find("/usr/lib/debug", 1, true))
    end)
  end)

  it("keeps the vDSO, which no file holds, and nothing else", function()
    kit.with(kit.record("vdso", "--symbols later"), function(run)
      assert.equal(0, run.status, run.err)
      capture.with(run.path, function(cap)
        local modules, bytes = kept(cap)
        assert.same({ ["[vdso]"] = true }, modules)
        assert.is_true(bytes > 1000 and bytes < 65536)
      end)
    end)
  end)
end)

describe("record --keep-images", function()
  setup(kit.builds("chain"))

  it("keeps symbols and unwind tables, and no code", function()
    kit.with(kit.record("chain", "--keep-images"), function(run)
      assert.equal(0, run.status, run.err)
      capture.with(run.path, function(cap)
        local modules, bytes = kept(cap)
        assert.is_true(modules.chain)
        local all = {}
        for rows, data in cap:blocks("image_bytes", "byte") do
          all[#all + 1] = require("ffi").string(data, rows)
        end
        all = table.concat(all)
        assert.equal(bytes, #all)
        assert.is_not_nil(all:find("\0leaf\0", 1, true))
        assert.is_not_nil(all:find("GNU\0", 1, true))
      end)
    end)
  end)

  it("is not there without being asked for", function()
    kit.with(kit.record("chain"), function(run)
      capture.with(run.path, function(cap)
        assert.equal(0, cap:rows("image_parts"))
        assert.equal("done", of_module(naming(cap), "chain").state)
      end)
    end)
  end)
end)
