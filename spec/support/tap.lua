-- tap.lua - busted's results as TAP: names, the place and message of each failure.

local pretty = require("pl.pretty")

return function()
  local busted = require("busted")
  local handler = require("busted.outputHandlers.base")()
  local count = 0

  local function say(format, ...) io.write(string.format(format, ...), "\n") end

  local function comment(text) say("# %s", (tostring(text):gsub("\n", "\n# "))) end

  local function failure(t)
    say("not ok %d - %s", count, t.name)
    local trace = t.trace or t.element.trace or {}
    if trace.short_src then comment(trace.short_src .. ":" .. tostring(trace.currentline)) end
    local message = t.message
    if message == nil then message = "an error without a message" end
    comment(type(message) == "string" and message or pretty.write(message))
    if t.isError and trace.traceback then comment((trace.traceback:gsub("^\n", ""))) end
  end

  local function test_end(_, _, status)
    count = count + 1
    if status == "success" then
      say("ok %d - %s", count, handler.successes[#handler.successes].name)
    elseif status == "pending" then
      local t = handler.pendings[#handler.pendings]
      local reason = type(t.message) == "string" and ": " .. t.message or ""
      say("ok %d # SKIP %s%s", count, t.name, reason)
    else
      local list = status == "failure" and handler.failures or handler.errors
      failure(list[#list])
    end
    io.flush()
    return nil, true
  end

  local function on_error(element)
    if element.descriptor ~= "it" then
      count = count + 1
      failure(handler.errors[#handler.errors])
    end
    return nil, true
  end

  busted.subscribe({ "test", "end" }, test_end, { predicate = handler.cancelOnPending })
  busted.subscribe({ "error" }, on_error)
  busted.subscribe({ "failure" }, on_error)
  busted.subscribe({ "suite", "end" }, function()
    say("1..%d", count)
    io.flush()
    return nil, true
  end)
  return handler
end
