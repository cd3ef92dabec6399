-- capture_format_spec.lua - docs/format.md against the bytes and against the schema.

local ffi = require("ffi")

local capture = require("microscope.capture")
local helper = require("spec.helper")

describe("docs/format.md", function()
  it("has the schema's tables, columns and enums", function()
    local _, err, status = helper.run("luajit cmake/format_reference.lua --check", helper.root)
    assert.equal("", err)
    assert.equal(0, status)
  end)

  it("is enough to read a capture from", function()
    local folder = helper.folder()
    local path = folder .. "/a.usprof"
    assert(capture.generate { path = path, samples = 70000, stacks = 300, functions = 100 })
    local _, err, status = helper.run(("python3 %s %s %s"):format(
      helper.quote(helper.root .. "/spec/core/capture_reader.py"), helper.quote(path),
      helper.quote(folder)))
    assert.equal("", err)
    assert.equal(0, status)
    assert(capture.with(path, function(cap)
      for _, name in ipairs(capture.tables()) do
        for _, column in ipairs(cap:columns(name)) do
          local theirs = helper.read(folder .. "/" .. name .. "." .. column.name)
          local size = column.rows * ffi.sizeof(column.type == "u8" and "uint8_t"
            or column.type == "u16" and "uint16_t" or column.type == "u32" and "uint32_t"
            or "uint64_t")
          local ours = size > 0 and ffi.string(column.data, size) or ""
          assert(theirs == ours, name .. "." .. column.name .. " differs")
        end
      end
      return true
    end))
    helper.remove(folder)
  end)
end)
