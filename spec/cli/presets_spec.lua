-- Presets of a user's own, and the rules under which they are read.

local helper = require("spec.helper")

describe("a user's preset", function()
  local folder, config

  before_each(function()
    folder = helper.folder()
    config = folder .. "/config"
    os.execute("mkdir -p " .. helper.quote(config .. "/microscope/presets"))
  end)

  after_each(function() helper.remove(folder) end)

  local function preset(name, text)
    helper.write(config .. "/microscope/presets/" .. name .. ".lua", text)
  end

  local function dry_run(name, before)
    return helper.run(("%s XDG_CONFIG_HOME=%s %s/bin/microscope record --dry-run --preset %s prog")
      :format(before or "", helper.quote(config), helper.quote(helper.stage), name), folder)
  end

  it("is found by name and beats a shipped one", function()
    preset("mine", "return { rate = 123, stack_bytes = 4096 }")
    preset("prod", "return { rate = 7, stack_bytes = 8 }")
    assert.matches("\nrate%s+123 Hz\n", (dry_run("mine")))
    assert.matches("\nrate%s+7 Hz\n", (dry_run("prod")))
  end)

  it("is found by path", function()
    helper.write(folder .. "/p.lua", "return { rate = 5, stack_bytes = 16, budget = 2 }")
    assert.matches("\nbudget%s+2 %%\n", (dry_run("./p.lua")))
  end)

  it("is never found in the current directory by name", function()
    helper.write(folder .. "/here.lua", "return { rate = 5, stack_bytes = 16 }")
    local _, err, status = dry_run("here")
    assert.equal(2, status)
    assert.matches("'here'", err)
  end)

  it("is data: it reaches nothing", function()
    preset("bad", "os.execute('touch ran'); return { rate = 5, stack_bytes = 16 }")
    local _, err, status = dry_run("bad")
    assert.equal(2, status)
    assert.matches("global 'os'", err)
    assert.is_nil(io.open(folder .. "/ran"))
  end)

  it("is not read as bytecode", function()
    preset("code", string.dump(function() return { rate = 5, stack_bytes = 16 } end))
    local _, err, status = dry_run("code")
    assert.equal(2, status)
    assert.matches("code%.lua: not Lua text", err)
  end)

  it("is not read when others may write it", function()
    preset("open", "return { rate = 5, stack_bytes = 16 }")
    os.execute("chmod 666 " .. helper.quote(config .. "/microscope/presets/open.lua"))
    local _, err, status = dry_run("open")
    assert.equal(2, status)
    assert.matches("others may write it", err)
  end)

  it("is not read when another user owns it", function()
    if helper.run("id -u") ~= "0\n" then return pending("needs root, to change an owner") end
    preset("foreign", "return { rate = 5, stack_bytes = 16 }")
    os.execute("chown 65534 " .. helper.quote(config .. "/microscope/presets/foreign.lua"))
    local _, err, status = dry_run("foreign")
    assert.equal(2, status)
    assert.matches("you do not own it", err)
  end)

  it("is checked: names and values", function()
    preset("typo", "return { rate = 5, stack_byte = 16 }")
    assert.matches("no such setting 'stack_byte'", select(2, dry_run("typo")))
    preset("text", "return { rate = '5', stack_bytes = 16 }")
    assert.matches("rate must be a number", select(2, dry_run("text")))
    preset("much", "return { rate = 5, stack_bytes = 65536 }")
    assert.matches("multiple of 8 up to 65528", select(2, dry_run("much")))
    preset("less", "return { rate = 5 }")
    assert.matches("stack_bytes is missing", select(2, dry_run("less")))
  end)
end)
