-- The rules of form that matter, as tests.

local helper = require("spec.helper")
local sources = require("spec.support.sources")

local COLUMNS = 100
local FUNCTION_LINES = 70
local FILE_LINES = 800

-- Every case collects all its findings, so that one run names them all.
local function none(findings) assert.equal("", table.concat(findings, "\n")) end

-- Columns of a UTF-8 line.
local function columns(line) return #line:gsub("[\128-\191]", "") end

local function own_code()
  local out = {}
  for _, pattern in ipairs { "%.c$", "%.h$", "%.lua$", "%.awk$", "%.sh$", "^dev$", "^%.ci/run$" } do
    for _, path in ipairs(sources.files(pattern)) do
      out[#out + 1] = path
    end
  end
  return out
end

describe("form", function()
  it("keeps lines within 100 columns, without tabs or trailing blanks", function()
    local found = {}
    for _, path in ipairs(own_code()) do
      for number, line in ipairs(sources.lines(path)) do
        local where = path .. ":" .. number .. ": "
        if columns(line) > COLUMNS then
          found[#found + 1] = where .. columns(line) .. " columns"
        end
        if line:match("%s$") then found[#found + 1] = where .. "blank at the end" end
        if line:match("\t") then found[#found + 1] = where .. "a tab" end
      end
    end
    none(found)
  end)

  it("keeps files within 800 lines", function()
    local found = {}
    for _, path in ipairs(own_code()) do
      local count = #sources.lines(path)
      if count > FILE_LINES then found[#found + 1] = path .. ": " .. count .. " lines" end
    end
    none(found)
  end)

  it("keeps C functions within 70 lines", function()
    local found, seen = {}, 0
    for _, path in ipairs(sources.files("%.[ch]$")) do
      for _, f in ipairs(sources.c_functions(path)) do
        seen = seen + 1
        local count = f.last - f.first + 1
        if count > FUNCTION_LINES then
          found[#found + 1] = ("%s:%d: %s has %d lines"):format(path, f.first, f.name, count)
        end
      end
    end
    assert.is_true(seen > 20) -- the reader of functions still finds them
    none(found)
  end)

  it("keeps Lua functions within 70 lines", function()
    local found, seen = {}, 0
    for _, path in ipairs(sources.files("^[lpcq].*%.lua$")) do
      for _, f in ipairs(sources.lua_functions(path)) do
        seen = seen + 1
        local count = f.last - f.first + 1
        if count > FUNCTION_LINES then
          found[#found + 1] = ("%s:%d: a function of %d lines"):format(path, f.first, count)
        end
      end
    end
    assert.is_true(seen > 20)
    none(found)
  end)

  it("begins each C file and Lua module with what it is", function()
    local found = {}
    for _, path in ipairs(sources.files("^core/.*%.[ch]$")) do
      local name = path:match("[^/]+$")
      local start = table.concat(sources.lines(path), "\n", 1, 2)
      if not start:find("/%*[%s%*]*" .. name:gsub("%p", "%%%0") .. " %- ") then
        found[#found + 1] = path .. ": does not begin with '" .. name .. " - '"
      end
    end
    for _, path in ipairs(sources.files("^lua/.*%.lua$")) do
      if not sources.lines(path)[1]:match("^%-%-") then
        found[#found + 1] = path .. ": does not begin with a comment"
      end
    end
    none(found)
  end)
end)

describe("the floors", function()
  local floors, order = {}, {}
  for name in sources.read("core/CMakeLists.txt"):gmatch("add_subdirectory%(([%w_]+)%)") do
    order[#order + 1] = name
    floors[name] = #order
  end

  it("let a module include only from itself and from below", function()
    assert.is_true(#order >= 9)
    local found = {}
    for _, path in ipairs(sources.files("^core/[%w_]+/.*%.[ch]$")) do
      local module = path:match("^core/([%w_]+)/")
      for number, line in ipairs(sources.lines(path)) do
        local other = floors[module] and line:match('^#include "([%w_]+)/')
        -- Tests may use what is made for them.
        if other == "fixtures" and path:match("_%w+%.c$") then other = nil end
        if other and not (floors[other] and floors[other] <= floors[module]) then
          found[#found + 1] = ("%s:%d: %s may not include %s"):format(path, number, module, other)
        end
      end
    end
    none(found)
  end)

  it("have no orphan: each C file is built, each fuzzer has a corpus", function()
    local found = {}
    for _, path in ipairs(sources.files("^core/.*%.c$")) do
      local module, rest = path:match("^core/([%w_]+)/(.*)$")
      if module ~= "replay" and (not floors[module] or rest:find("/", 1, true)) then
        found[#found + 1] = path .. ": in no module that core/CMakeLists.txt names"
      end
      local noun = rest and rest:match("^([%w_]+)_fuzz%.c$")
      if noun and #sources.files("^fixtures/fuzz/" .. noun .. "/") == 0 then
        found[#found + 1] = path .. ": fixtures/fuzz/" .. noun .. "/ holds no input"
      end
    end
    none(found)
  end)
end)

describe("Lua files", function()
  it("have no orphan: each module is required, each spec is run", function()
    local all = {}
    for _, path in ipairs(sources.files("%.lua$")) do all[#all + 1] = sources.read(path) end
    all[#all + 1] = sources.read("core/script/main.c")
    local text = table.concat(all, "\n")
    local found = {}
    for _, path in ipairs(sources.files("^lua/microscope/.*%.lua$")) do
      local name = path:match("^lua/(.*)%.lua$"):gsub("/init$", ""):gsub("/", ".")
      -- Commands and formats are found by their folder.
      if not name:match("%.cli%.") and not name:match("%.formats%.")
        and not text:find('"' .. name .. '"', 1, true) then
        found[#found + 1] = path .. ": nobody requires " .. name
      end
    end
    for _, path in ipairs(sources.files("^spec/.*%.lua$")) do
      if not path:match("_spec%.lua$") and sources.read(path):match("\ndescribe%(") then
        found[#found + 1] = path .. ": has cases but is not named *_spec.lua"
      end
    end
    none(found)
  end)

  it("pass luacheck", function()
    local out, err, status = helper.run("luacheck -q --no-color lua spec presets queries cmake",
      helper.root)
    assert.equal("", status == 0 and "" or out .. err)
  end)
end)

describe("C files", function()
  -- name -> what to use
  local BANNED = {
    strcpy = "snprintf", strcat = "snprintf", sprintf = "snprintf", vsprintf = "vsnprintf",
    gets = "fgets", tmpnam = "mkstemp", mktemp = "mkstemp", alloca = "mic_alloc",
  }
  -- The same for what is no test: tests ask judges, and read what those print.
  local BANNED_OUTSIDE_TESTS = {
    strtok = "strtok_r", atoi = "strtoul", atol = "strtoul", atoll = "strtoul",
    system = "posix_spawn", popen = "posix_spawn", scanf = "a cursor", sscanf = "a cursor",
    signal = "sigaction", usleep = "a condition", rand = "nothing: results never are chance",
  }
  local PRINTING = { "printf", "puts", "putchar", "vprintf" }

  local function calls(text, name) return text:find("%f[%w_]" .. name .. "%s*%(") end

  it("call nothing that is banned", function()
    local found = {}
    for _, path in ipairs(sources.files("^core/.*%.[ch]$")) do
      local number = 0
      local is_test = path:match("_test%.c$") or path:match("_fuzz%.c$")
        or path:match("_fixture%.h$")
      local quiet = not path:match("/main%.c$") and not is_test
      for line in (sources.bare_c(sources.read(path)) .. "\n"):gmatch("(.-)\n") do
        number = number + 1
        for _, banned in ipairs { BANNED, is_test and {} or BANNED_OUTSIDE_TESTS } do
          for name, use in pairs(banned) do
            if calls(line, name) then
              found[#found + 1] = ("%s:%d: %s; use %s"):format(path, number, name, use)
            end
          end
        end
        for _, name in ipairs(PRINTING) do
          if quiet and calls(line, name) then
            found[#found + 1] = ("%s:%d: %s: a library prints nothing"):format(path, number, name)
          end
        end
      end
    end
    table.sort(found)
    none(found)
  end)

  it("are formatted by clang-format", function()
    local out, err, status = helper.run(
      "git ls-files -co --exclude-standard 'core/*.[ch]' 'fixtures/programs/*.c' 'bench/*.c'"
      .. " | xargs -r clang-format --dry-run -Werror", helper.root)
    assert.equal("", status == 0 and "" or out .. err)
  end)
end)
