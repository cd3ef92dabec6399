-- Lines and inlined functions of a recording against addr2line's, for every address recorded.
--
-- Compared is where each frame stands, inlined ones too; names are not: addr2line leaves out the
-- namespaces of inlined functions and gives some the name of what they are inlined into.

local capture = require("microscope.capture")
local helper = require("spec.helper")

-- addr2line (binutils 2.40) names the unit's own file for some functions of other files: a line
-- past that file's end proves it.
local function is_impossible(places, lines)
  for place in places:gmatch("words%.cc:(%d+)") do
    if tonumber(place) > lines then return true end
  end
end

local function line_count(path) return select(2, helper.read(path):gsub("\n", "")) end

local function base(path) return path:match("[^/]+$") end

-- Of each location of a module: "file:line" by inline depth, innermost first.
local function recorded(cap, own)
  local kind, module, offset = cap:array("locations", "kind"), cap:array("locations", "module"),
    cap:array("locations", "offset")
  local module_name, out = cap:array("modules", "name"), {}
  for l = 0, cap:rows("locations") - 1 do
    if kind[l] == 0 and cap:string(module_name[module[l]]) == own then
      out[l] = { address = tonumber(offset[l]), frames = {} }
    end
  end
  local location, file, line, depth = cap:array("lines", "location"), cap:array("lines", "file"),
    cap:array("lines", "line"), cap:array("lines", "depth")
  local path = cap:array("files", "path")
  for i = 0, cap:rows("lines") - 1 do
    local entry = out[location[i]]
    if entry then
      local place = file[i] == capture.NONE and "?" or base(cap:string(path[file[i]]))
      entry.frames[depth[i] + 1] = place .. ":" .. (line[i] == 0 and "?" or line[i])
    end
  end
  return out
end

-- addr2line's view of addresses: by address the same lists.
local function judged(addresses, folder)
  helper.write(folder .. "/addresses", table.concat(addresses, "\n") .. "\n")
  local out = helper.run("addr2line -e program -a -i -f -C <addresses", folder)
  local by_address, list = {}, nil
  local name
  for line in out:gmatch("[^\n]+") do
    local address = line:match("^0x(%x+)$")
    if address then
      list, name = {}, nil
      by_address[tonumber(address, 16)] = list
    elseif not name then
      name = line
    else
      local file, number = line:match("^(.-):([%d?]+)")
      list[#list + 1] = base(file):gsub("^%?%?$", "?") .. ":" .. (number == "0" and "?" or number)
      name = nil
    end
  end
  return by_address
end

describe("lines agree with addr2line's", function()
  local folder
  setup(function() folder = helper.folder() end)
  teardown(function() helper.remove(folder) end)

  local function check(flags, least)
    local out, err, status = helper.run(("g++ -g %s -o program %s/fixtures/bench/words.cc && "
      .. "%s/bin/microscope record -q -F 4999 -o a.usprof ./program 40"):format(flags,
      helper.quote(helper.root), helper.quote(helper.stage)), folder)
    assert.equal(0, status, out .. err)
    local cap = assert(capture.open(folder .. "/a.usprof"))
    local ours, addresses = recorded(cap, "program"), {}
    cap:close()
    for _, entry in pairs(ours) do addresses[#addresses + 1] = ("0x%x"):format(entry.address) end
    assert.is_true(#addresses >= least, #addresses .. " addresses")
    local theirs, wrong = judged(addresses, folder), {}
    local lines = line_count(helper.root .. "/fixtures/bench/words.cc")
    for _, entry in pairs(ours) do
      local have, want = table.concat(entry.frames, " < "),
        table.concat(theirs[entry.address], " < ")
      -- addr2line takes the file of the FILE symbol before code that no debug information covers.
      local guess = have == "" and want:match("^[^<]+:%?$")
      if have ~= want and not guess and not is_impossible(want, lines) then
        wrong[#wrong + 1] = ("0x%x\n  %s\n  %s"):format(entry.address, have, want)
      end
    end
    assert.equal("", table.concat(wrong, "\n"))
  end

  it("in a C++ program with inlined functions", function() check("-O2", 100) end)
  it("in one without optimisation", function() check("-O0", 100) end)
end)
