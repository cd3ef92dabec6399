-- rare-stacks: deep stacks that were seen only a few times: the odd paths that averages hide.

-- Frames of each stack: its parent's and those of its own location.
local function depths(parent, location, start, none, count, depth)
  for i = 0, count - 1 do
    local up = parent[i]
    if up ~= none then
      local l = location[i]
      depth[i] = depth[up] + (start[l + 1] - start[l])
    end
  end
end

return {
  summary = "Deep stacks that were seen only a few times.",
  description = "Stacks that few samples have, the deepest first: rare paths, as of errors, that"
    .. " no share shows.  LONG is how many frames they have, inlined functions counted.",
  columns = { "samples.stack", "stacks.parent", "stacks.location" },
  options = {
    { name = "most", type = "count", default = 2, argname = "N",
      description = "A stack is rare that has at most so many samples." },
    { name = "limit", type = "count", default = 15, argname = "N",
      description = "How many stacks to show." },
    { name = "frames", type = "count", default = 4, argname = "N",
      description = "How many of the innermost frames to show." },
  },
  run = function(ctx, args)
    local m, cap = ctx.microscope, ctx.cap
    local keys, all = m.keys(cap), ctx.selection()
    local stacks = cap:rows("stacks")
    local depth = m.zeros("uint32_t", stacks + 1)
    if stacks > 0 then
      depths(cap:array("stacks", "parent"), cap:array("stacks", "location"), keys.start, m.NONE,
        stacks, depth)
    end
    local sums, found = m.sums(cap, "stack", all), {}
    for i = 0, stacks - 1 do
      if sums.samples[i] > 0 and sums.samples[i] <= args.most then found[#found + 1] = i end
    end
    table.sort(found, function(a, b)
      if depth[a] ~= depth[b] then return depth[a] > depth[b] end
      return a < b
    end)
    local rows = {}
    for i = 1, math.min(args.limit, #found) do
      local id, names = found[i], {}
      local frames = m.frames(cap, keys, id)
      for k = 1, math.min(args.frames, #frames) do
        names[k] = m.describe(cap, keys, frames[k]).name
      end
      rows[i] = { depth[id], sums.samples[id], sums.weight[id],
        table.concat(names, " < ") .. (#frames > args.frames and " < ..." or "") }
    end
    return m.result({ { name = "long", unit = "count" }, { name = "samples", unit = "count" },
      { name = "weight", unit = m.unit(all.unit) },
      { name = "stack", heading = "STACK, INNERMOST FIRST" } }, rows, {
      notes = { ("%s of %s distinct stacks are rare"):format(m.count(#found),
        m.count((function()
          local n = 0
          for i = 0, stacks - 1 do n = n + (sums.samples[i] > 0 and 1 or 0) end
          return n
        end)())) },
    })
  end,
}
