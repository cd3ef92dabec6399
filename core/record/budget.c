/* budget.c - the duty that brings the cost back under the share. */
#include "record/budget.h"

/* Never quite off: a recording that shows nothing cannot say why, and its cost could not be seen
 * to fall. */
enum { LEAST = 10, FULL = 1000 };

void mic_budget_start(struct mic_budget *budget, uint32_t share_permille) {
  *budget = (struct mic_budget){.share_permille = share_permille, .duty_permille = FULL};
}

uint32_t mic_budget_step(struct mic_budget *budget, uint64_t wall_ns, uint64_t cpu_ns,
                         uint64_t on_ns) {
  if (!budget->share_permille || wall_ns == 0) return budget->duty_permille = FULL;
  uint64_t allowed_ns = wall_ns / 1000 * budget->share_permille;
  uint64_t spent_ns = budget->debt_ns + cpu_ns;
  /* The debt is forgiven past ten windows: a stall of the machine must not end sampling for good.
   */
  budget->debt_ns = spent_ns > allowed_ns ? spent_ns - allowed_ns : 0;
  if (budget->debt_ns > allowed_ns * 10) budget->debt_ns = allowed_ns * 10;
  /* What the next window may cost, at the price this one had for each ns it was on. */
  uint64_t may_ns = budget->debt_ns >= allowed_ns ? 0 : allowed_ns - budget->debt_ns;
  uint64_t duty = FULL;
  if (cpu_ns > 0 && on_ns > 0) {
    double price = (double)cpu_ns / (double)on_ns;
    double can_ns = (double)may_ns / price;
    duty = can_ns >= (double)wall_ns ? FULL : (uint64_t)(can_ns * FULL / (double)wall_ns);
  }
  /* Upwards in steps of at most double, so that one cheap window does not undo what is known. */
  if (duty > (uint64_t)budget->duty_permille * 2) duty = (uint64_t)budget->duty_permille * 2;
  if (duty < LEAST) duty = LEAST;
  if (duty > FULL) duty = FULL;
  return budget->duty_permille = (uint32_t)duty;
}
