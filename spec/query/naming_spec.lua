-- Which places of a capture have names.

local capture = require("microscope.capture")
local helper = require("spec.helper")
local naming = require("microscope.query.naming")
local writer = require("microscope.writer")

describe("naming", function()
  local folder
  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  it("has each address of a module once, whatever it was proven by", function()
    local path = folder .. "/t.usprof"
    assert(writer.with(path, function(w)
      local empty = w:string("")
      w:row("sources", { name = w:string("cpu"), unit = "cpu_ns", period = 1000 })
      w:row("processes", { pid = 7, name = w:string("seven"), cgroup = empty })
      w:row("threads", { process = 0, tid = 7, name = w:string("seven") })
      for _, name in ipairs { "one", "two" } do
        w:row("modules", { kind = "elf", name = w:string(name), path = w:string("/" .. name),
          build_id = empty, problem = empty })
      end
      local function place(module, offset, kind, evidence)
        return w:row("locations", { kind = kind or "native", evidence = evidence or "cfi",
          module = module, offset = offset })
      end
      place(0, 0x10)
      place(0, 0x10, "native", "code")
      place(0, 0x10, "signal", "frame_pointer")
      place(0, 0x20)
      place(1, 0x10)
      place(1, 0x10, "file") -- an offset in the file is no address
      local last = place(1, 0x30, "native", "code")
      place(1, 0x30)
      place(0, 0xfffffffffffffff0ULL)
      place(0, 0xfffffffffffffff1ULL)
      local name = w:string("work")
      w:row("functions", { name = name, linkage_name = name, module = 1 })
      w:row("lines", { location = last, ["function"] = 0, line = 3, depth = 0 })
      w:row("stacks", { ["end"] = "OUTERMOST" })
    end))
    local found
    assert(capture.with(path, function(cap)
      found = naming.of(cap)
      return true
    end))
    assert.same({ 7, 1, 1 }, { found.places, found.named, found.with_lines })
    local lists = {}
    for i, module in ipairs(found.unnamed) do lists[i] = table.concat(module.unnamed, " ") end
    assert.same({ "0x10 0x20 0xfffffffffffffff0 0xfffffffffffffff1", "0x10 0x10" }, lists)
  end)
end)
