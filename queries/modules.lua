-- modules: how the time splits among the program, its libraries and code of no file.

-- The module of each key: its name, "" for places outside of all files.
local function add_self(m, cap, keys, costs)
  local by_name = {}
  for key = 0, keys.count - 1 do
    if costs.self[key] > 0 then
      local name = m.describe(cap, keys, key).module
      if name == "" then name = "[no file]" end
      local entry = by_name[name] or { name = name, weight = 0, samples = 0, functions = 0 }
      by_name[name] = entry
      entry.weight = entry.weight + costs.self[key]
      entry.samples = entry.samples + costs.self_count[key]
      entry.functions = entry.functions + 1
    end
  end
  return by_name
end

return {
  summary = "The share of each module: the program, its libraries, code of no file.",
  columns = { "samples.stack", "locations.module", "modules.name" },
  run = function(ctx)
    local m, cap = ctx.microscope, ctx.cap
    local keys = m.keys(cap)
    local tree = assert(m.tree(cap, keys, ctx.selection()))
    local list = {}
    for _, entry in pairs(add_self(m, cap, keys, m.costs(tree, keys))) do
      list[#list + 1] = entry
    end
    table.sort(list, function(a, b)
      if a.weight ~= b.weight then return a.weight > b.weight end
      return a.name < b.name
    end)
    -- Values that are not sampled have no error of sampling.
    local rows, sampled = {}, tree.period > 0
    for i, entry in ipairs(list) do
      local low, high
      if sampled then low, high = m.interval(entry.samples, tree.samples) end
      rows[i] = { entry.name, entry.weight, entry.weight / tree.weight, low, high,
        entry.samples, entry.functions }
    end
    return m.result({ { name = "module" }, { name = "self", unit = m.unit(tree.unit) },
      { name = "share", unit = "share" }, { name = "low", unit = "share" },
      { name = "high", unit = "share" }, { name = "samples", unit = "count" },
      { name = "functions", unit = "count" } }, rows,
      { notes = { sampled and "low and high bound the share with 95 % confidence" or nil } })
  end,
}
