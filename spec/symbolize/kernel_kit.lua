--- kernel_kit.lua - a vmlinux made of the running kernel's symbols, and captures of its code.

local ffi = require("ffi")

local capture = require("microscope.capture")
local helper = require("spec.helper")
local writer = require("microscope.writer")

local M = {}

-- Addresses of the kernel are 0xffffffff and these 32 bits.
local HIGH = 0xffffffff

-- perf, and a mount namespace in which /proc/kallsyms is empty: where they are not, why.
function M.why_not()
  local _, _, status = helper.run("command -v perf && unshare -m true && "
    .. "perf record -q -a -e cpu-clock -o probe.data true && grep -q ' T _text$' /proc/kallsyms"
    .. " && ! grep -q '^0*0 T _text$' /proc/kallsyms")
  return status ~= 0 and "needs perf, its right to record the kernel, and unshare -m" or nil
end

-- Where vmlinux.c looks, and nothing is on other machines.
local HIDE = "for at in /usr/lib/debug /lib/modules /boot; do"
  .. " [ ! -d $at ] || mount -t tmpfs none $at || exit 1; done && "

--- A command as it runs where no vmlinux is installed.
function M.bare(command)
  return "unshare -m sh -c " .. helper.quote(HIDE .. "exec " .. command)
end

--- The same where /proc/kallsyms tells nothing either.
function M.hidden(command)
  return "unshare -m sh -c " .. helper.quote(HIDE
    .. "mount --bind /dev/null /proc/kallsyms && exec " .. command)
end

--- The running kernel's functions: {{address, binding, name}} by address, and addresses by name (a
-- list each, as static functions share names).
function M.functions()
  local list, by_name, last = {}, {}, nil
  for line in io.lines("/proc/kallsyms") do
    local address, kind, name = line:match("^ffffffff(%x+) ([tTwW]) (%S+)$")
    if address then
      local f = { tonumber(address, 16), kind, name }
      list[#list + 1] = f
      by_name[name] = by_name[name] or {}
      table.insert(by_name[name], f[1])
      if name == "_einittext" then last = f[1] end
    end
  end
  table.sort(list, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[3] < b[3]) end)
  while list[#list][1] > last do list[#list] = nil end
  return list, by_name
end

local function u16(n) return string.char(n % 256, math.floor(n / 256)) end
local function u32(n) return u16(n % 65536) .. u16(math.floor(n / 65536)) end
local function u64(n, high) return u32(n) .. u32(high or 0) end

local BINDING = { t = 0, T = 1, w = 2, W = 2 } -- STB_LOCAL, STB_GLOBAL, STB_WEAK
local FUNC, TEXT = 2, 1 -- STT_FUNC; the section's number

local function symbols_of(functions, shift)
  local names, symbols, size = { "\0" }, { ("\0"):rep(24) }, 1
  local next_start = functions[#functions][1]
  for i = #functions, 1, -1 do
    local f = functions[i]
    if functions[i + 1] and functions[i + 1][1] > f[1] then next_start = functions[i + 1][1] end
    names[#names + 1] = f[3] .. "\0"
    symbols[#symbols + 1] = u32(size) .. string.char(BINDING[f[2]] * 16 + FUNC, 0) .. u16(TEXT)
      .. u64(f[1] - shift, HIGH) .. u64(next_start - f[1])
    size = size + #f[3] + 1
  end
  return table.concat(symbols), table.concat(names)
end

local function section(name, kind, flags, address, offset, size, link, each)
  return u32(name) .. u32(kind) .. u64(flags) .. u64(address, address > 0 and HIGH) .. u64(offset)
    .. u64(size) .. u32(link) .. u32(0) .. u64(1) .. u64(each)
end

local function segment(kind, flags, offset, address, in_file, size)
  return u32(kind) .. u32(flags) .. u64(offset) .. u64(address, HIGH) .. u64(address, HIGH)
    .. u64(in_file) .. u64(size) .. u64(4)
end

--- Write a vmlinux of functions, linked `shift` bytes below where they are, with notes.
function M.vmlinux(path, functions, shift, notes)
  local low, high = functions[1][1] - shift, functions[#functions][1] - shift
  local symbols, names = symbols_of(functions, shift)
  local titles = "\0.text\0.notes\0.symtab\0.strtab\0.shstrtab\0"
  local function title(name) return titles:find("\0" .. name .. "\0", 1, true) end
  local at, parts = 64 + 2 * 56, {}
  local function put(bytes)
    local where = at
    parts[#parts + 1], at = bytes, at + #bytes
    return where
  end
  put(("\0"):rep(-at % 8))
  local notes_at, symbols_at = put(notes), put(symbols)
  local names_at, titles_at = put(names), put(titles)
  local headers = put(table.concat {
    ("\0"):rep(64),
    section(title(".text"), 8, 6, low, 0, high - low, 0, 0),
    section(title(".notes"), 7, 2, high, notes_at, #notes, 0, 0),
    section(title(".symtab"), 2, 0, 0, symbols_at, #symbols, 4, 24),
    section(title(".strtab"), 3, 0, 0, names_at, #names, 0, 0),
    section(title(".shstrtab"), 3, 0, 0, titles_at, #titles, 0, 0),
  })
  helper.write(path, table.concat {
    "\127ELF\2\1\1" .. ("\0"):rep(9), u16(2), u16(62), u32(1), u64(low, HIGH), u64(64),
    u64(headers), u32(0), u16(64), u16(56), u16(2), u16(64), u16(6), u16(5),
    segment(1, 5, 0, low, 0, high - low), segment(4, 4, notes_at, high, #notes, #notes),
    table.concat(parts),
  })
end

--- Write a capture of places in one module: {kind, path, build_id, meta, offsets (u64)}.
function M.write(path, of)
  assert(writer.with(path, function(w)
    for key, value in pairs(of.meta or {}) do
      w:row("meta", { key = w:string(key), value = w:string(value) })
    end
    local module = w:row("modules", { kind = of.kind, path = w:string(of.path),
      name = w:string(of.path:match("[^/]*$")), build_id = w:string(of.build_id) })
    for _, offset in ipairs(of.offsets) do
      w:row("locations", { kind = 0, evidence = 0, module = module, offset = offset })
    end
  end))
end

--- The rows of naming of a module, the last: {image, problem, named, unnamed}.
function M.naming(path, module)
  return assert(capture.with(path, function(cap)
    local found
    local ids = cap:array("naming", "module")
    local function text(column, i) return cap:string(cap:array("naming", column)[i]) end
    for i = 0, cap:rows("naming") - 1 do
      if cap:string(cap:array("modules", "name")[ids[i]]) == module then
        found = { image = text("image", i), problem = text("problem", i),
          named = tonumber(cap:array("naming", "named")[i]),
          unnamed = tonumber(cap:array("naming", "unnamed")[i]) }
      end
    end
    return assert(found, "naming says nothing of " .. module)
  end))
end

--- A number of hex digits as a u64.
function M.u64(hex)
  local value = ffi.new("uint64_t", 0)
  for digit in hex:gmatch("%x") do value = value * 16 + tonumber(digit, 16) end
  return value
end

--- "file:line" chains of addr2line -afi, as kit.meanings has them: a list of lists {name, place}.
function M.addr2line(image, addresses, options)
  local path = image .. ".addresses"
  helper.write(path, table.concat(addresses, "\n") .. "\n")
  local out, err, status = helper.run(("addr2line -afi %s -e %s <%s"):format(options or "",
    helper.quote(image), helper.quote(path)))
  assert(status == 0, err)
  local chains, name = {}, nil
  for line in out:gmatch("[^\n]+") do
    if line:match("^0x%x+$") then
      chains[#chains + 1], name = {}, nil
    elseif name then
      local place = line:gsub(" %(discriminator %d+%)", "")
      table.insert(chains[#chains], name .. "|" .. place)
      name = nil
    else
      name = line
    end
  end
  return chains
end

return M
