local interval = require("microscope.query.interval")

local Z = 1.959963984540054

-- What Wilson's interval is: its ends are the shares from which the seen one is just Z standard
-- errors away, the error being that of the end itself.
local function is_an_end(at, k, n)
  return math.abs(math.abs(k / n - at) - Z * math.sqrt(at * (1 - at) / n)) < 1e-12
end

describe("the interval", function()
  it("is Wilson's", function()
    for _, seen in ipairs { { 5, 10 }, { 1, 20 }, { 19, 20 }, { 1, 1000 }, { 450, 1000 } } do
      local k, n = unpack(seen)
      local low, high = interval.wilson(k, n)
      assert.is_true(low < k / n and k / n < high)
      assert.is_true(is_an_end(low, k, n) and is_an_end(high, k, n))
    end
  end)

  it("ends at 0 and 1 where none or all were seen", function()
    local low, high = interval.wilson(0, 20)
    assert.is_true(low == 0 and is_an_end(high, 0, 20))
    low, high = interval.wilson(20, 20)
    assert.is_true(high == 1 and is_an_end(low, 20, 20))
  end)

  it("of nothing is everything", function()
    assert.same({ 0, 1 }, { interval.wilson(0, 0) })
  end)

  it("scales to a total", function()
    local low, high = interval.of_total(5, 10, 2000)
    assert.is_true(math.abs(low - 473.186181) < 1e-5 and math.abs(high - 1526.813819) < 1e-5)
  end)

  -- n samples of a share are drawn many times; 95 % of intervals must hold the share.  The
  -- generator is a fixed one, so the count is always the same.
  it("holds the true share about 95 times in 100", function()
    local state, held, runs, n = 12345, 0, 2000, 200
    local function random()
      state = (state * 16807) % 2147483647
      return state / 2147483647
    end
    for run = 1, runs do
      local share, k = (run % 9 + 1) / 10, 0
      for _ = 1, n do
        if random() < share then k = k + 1 end
      end
      local low, high = interval.wilson(k, n)
      if low <= share and share <= high then held = held + 1 end
    end
    assert.is_true(held / runs > 0.93 and held / runs < 0.97, held / runs)
  end)
end)
