-- The library's surface: what it exports, what Lua declares, and how both lay out structs.

local ffi = require("ffi")

local helper = require("spec.helper")
local sources = require("spec.support.sources")
local cdef = require("microscope.cdef")

local function sorted(set)
  local out = {}
  for name in pairs(set) do out[#out + 1] = name end
  table.sort(out)
  return out
end

-- Functions that the cut text declares.
local function declared()
  local set = {}
  for name in cdef.text:gmatch("%f[%w_](mic_[%w_]+)%s*%(") do set[name] = true end
  return set
end

-- struct name -> list of its fields' names.
local function structs()
  local out = {}
  for name, body in cdef.text:gmatch("struct%s+(mic_[%w_]+)%s*(%b{})") do
    local fields = {}
    for statement in body:sub(2, -2):gmatch("[^;]+") do
      for piece in (statement .. ","):gmatch("([^,]+),") do
        fields[#fields + 1] = piece:gsub("%[.-%]", ""):match("([%w_]+)%s*$")
      end
    end
    out[name] = fields
  end
  return out
end

describe("libmicroscope.so", function()
  it("exports the functions that the headers declare for Lua, and nothing else", function()
    local out = helper.run("nm -D --defined-only " .. helper.quote(helper.stage)
      .. "/lib/libmicroscope.so")
    local exported = {}
    for kind, name in out:gmatch("%x+ (%a) ([^\n@]+)") do
      -- Sanitizers and coverage export names of their own.
      if kind == "T" and not name:match("^__") and name ~= "_init" and name ~= "_fini" then
        exported[name] = true
      end
    end
    assert.same(sorted(declared()), sorted(exported))
  end)

  it("lays structs out as LuaJIT does", function()
    local lines = { "#include <stddef.h>", "#include <stdio.h>" }
    for _, path in ipairs(sources.files("^core/.*%.h$")) do
      if sources.read(path):find("\n/* ffi:begin", 1, true) then
        lines[#lines + 1] = ('#include "%s"'):format(path:match("^core/(.*)$"))
      end
    end
    lines[#lines + 1] = "int main(void) {"
    local ours, all = {}, structs()
    for _, name in ipairs(sorted(all)) do
      local type_name = "struct " .. name
      ours[#ours + 1] = ("%s %d"):format(name, ffi.sizeof(type_name))
      lines[#lines + 1] = ('printf("%s %%zu\\n", sizeof(%s));'):format(name, type_name)
      for _, field in ipairs(all[name]) do
        ours[#ours + 1] = ("%s.%s %d"):format(name, field, ffi.offsetof(type_name, field))
        lines[#lines + 1] = ('printf("%s.%s %%zu\\n", offsetof(%s, %s));'):format(
          name, field, type_name, field)
      end
    end
    lines[#lines + 1] = "return 0; }\n"
    local folder = helper.folder()
    helper.write(folder .. "/layout.c", table.concat(lines, "\n"))
    local out, err = helper.run(("gcc -D_GNU_SOURCE -I %s layout.c -o layout && ./layout"):format(
      helper.quote(helper.root .. "/core")), folder)
    helper.remove(folder)
    assert.equal("", err)
    assert.equal(table.concat(ours, "\n") .. "\n", out)
  end)

  it("is refused by Lua that was cut from other headers", function()
    local folder = helper.folder()
    local _, err, status = helper.run(([[
      cp -r %s/. . &&
      sed -i 's/api = 0x......../api = 0x00000001/' share/microscope/lua/microscope/cdef.lua &&
      bin/microscope --version]]):format(helper.quote(helper.stage)), folder)
    helper.remove(folder)
    assert.equal(1, status)
    assert.matches("was built from other headers", err)
  end)
end)
