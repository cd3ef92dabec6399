--- interval.lua - how sure a share is that was counted in samples.
--
-- Samples of a fixed period are independent looks at where time goes: of n looks k found the
-- function, so k is binomial and the share's interval is Wilson's (E. B. Wilson, 1927, JASA 22).
-- It holds near 0 and 1 and for few samples, where the normal approximation does not.

local M = {}

-- The 97.5 % point of the normal distribution: 2.5 % are left out on each side.
local Z = 1.959963984540054

--- The 95 % interval of a share of which k in n samples were found: low, high (0 to 1).
function M.wilson(k, n)
  if n <= 0 then return 0, 1 end
  local share, z2 = k / n, Z * Z
  local middle = share + z2 / (2 * n)
  local half = Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
  local scale = 1 + z2 / n
  -- The ends are exact where rounding would leave a trace.
  local low = k <= 0 and 0 or math.max(0, (middle - half) / scale)
  local high = k >= n and 1 or math.min(1, (middle + half) / scale)
  return low, high
end

--- The same in the unit of `total`, of which the n samples are the whole.
function M.of_total(k, n, total)
  local low, high = M.wilson(k, n)
  return low * total, high * total
end

--- The 95 % interval of the difference b - a of two independent estimates that have intervals of
-- their own: low, high.  Each end is as far from the difference as the ends of both intervals
-- that lie towards it, taken as independent errors (square and add).  For two shares with Wilson's
-- intervals it is Newcombe's hybrid score interval (R. G. Newcombe, 1998, Statistics in Medicine
-- 17, method 10); with both scaled by known totals, its like for amounts (G. Y. Zou and A. Donner,
-- 2008, Statistics in Medicine 27).  Unlike the normal approximation it holds for few samples,
-- and never says that 0 against 0 is certain.
function M.of_difference(a, a_low, a_high, b, b_low, b_high)
  local difference = b - a
  local low = difference - math.sqrt((b - b_low) ^ 2 + (a_high - a) ^ 2)
  local high = difference + math.sqrt((b_high - b) ^ 2 + (a - a_low) ^ 2)
  return low, high
end

return M
