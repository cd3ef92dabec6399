local fake = require("spec.support.fake")
local summary = require("microscope.query.summary")

local ALL = 0xffff

describe("the summary", function()
  it("counts time off once where spans overlap, and that of single CPUs apart", function()
    local off = summary.of(fake.capture {
      off_spans = {
        start_ns = { 100, 150, 500, 0 },
        end_ns = { 200, 300, 600, 1000 },
        kind = { 0, 1, 0, 2 },
        cpu = { ALL, ALL, ALL, 3 },
      },
    }).off
    assert.same({ total_ns = 300, queue_ns = 200, budget_ns = 150, throttle_ns = 0,
      one_cpu_ns = 1000 }, off)
  end)

  it("tells lost samples from lost records", function()
    local s = summary.of(fake.capture { losses = { kind = { 0, 1, 0 }, count = { 3, 4, 5 } } })
    assert.equal(8, s.lost_samples)
    assert.equal(4, s.lost_records)
  end)

  it("adds up costs by kind", function()
    local s = summary.of(fake.capture {
      costs = { kind = { 0, 1, 1 }, cpu_ns = { 5, 6, 7 }, wall_ns = { 50, 60, 70 } },
    })
    assert.same({ cpu_ns = 5, wall_ns = 50 }, s.costs.startup)
    assert.same({ cpu_ns = 13, wall_ns = 130 }, s.costs.running)
    assert.same({ cpu_ns = 0, wall_ns = 0 }, s.costs.finishing)
  end)

  it("tells what is wrong with modules", function()
    local s = summary.of(fake.capture {
      modules = { name = { "a", "b" }, problem = { "", "no debug information" } },
      problems = { text = { "odd" }, count = { 2 } },
    })
    assert.same({ { text = "odd", count = 2 }, { text = "b: no debug information", count = 1 } },
      s.problems)
  end)

  it("knows the program's CPU time of one recording, not of several in a folder", function()
    local function user_ns(segments)
      local key, value = { "user_cpu_ns" }, { "5000" }
      if segments then key[2], value[2] = "segments", segments end
      return summary.of(fake.capture { meta = { key = key, value = value } }).program_user_ns
    end
    assert.equal(5000, user_ns())
    assert.equal(5000, user_ns("1"))
    assert.is_nil(user_ns("2"))
  end)

  it("takes the first source of CPU time", function()
    local cap = fake.capture {
      sources = { name = { "faults", "cpu-clock" }, unit = { 2, 0 }, period = { 1, 1001001 } },
    }
    assert.same({ id = 1, name = "cpu-clock", unit = "ns", period = 1001001, is_cpu = true },
      summary.cpu_source(cap))
    assert.is_nil(summary.cpu_source(fake.capture {}))
  end)
end)
