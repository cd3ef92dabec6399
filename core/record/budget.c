/* budget.c - the duty that brings the cost back under the share. */
#include "record/budget.h"

/* Never quite off: a recording that shows nothing cannot say why, and its cost could not be seen
 * to fall. */
enum { LEAST = 10, FULL = 1000 };

static int64_t allowed_ns(const struct mic_budget *budget, uint64_t wall_ns) {
  return (int64_t)(wall_ns / 1000 * budget->share_permille);
}

static int64_t clamp(int64_t value, int64_t least, int64_t most) {
  return value < least ? least : value > most ? most : value;
}

void mic_budget_start(struct mic_budget *budget, uint32_t share_permille) {
  *budget = (struct mic_budget){.share_permille = share_permille, .duty_permille = FULL};
  budget->debt_ns = -allowed_ns(budget, MIC_BUDGET_WINDOW_NS) * MIC_BUDGET_WINDOWS;
}

uint32_t mic_budget_step(struct mic_budget *budget, uint64_t wall_ns, uint64_t cpu_ns,
                         uint64_t on_ns) {
  if (!budget->share_permille || wall_ns == 0) return budget->duty_permille = FULL;
  int64_t allowed = allowed_ns(budget, wall_ns), most = allowed * MIC_BUDGET_WINDOWS;
  budget->debt_ns = clamp(budget->debt_ns + (int64_t)cpu_ns - allowed, -most, most);
  /* What the next window may cost, at the lower price of the last two: what comes once, as a large
   * image's table, is paid for but says nothing of what sampling costs. */
  int64_t may_ns = clamp(allowed - budget->debt_ns, 0, INT64_MAX);
  int64_t duty = FULL;
  double now = on_ns > 0 ? (double)cpu_ns / (double)on_ns : budget->price;
  double price = now < budget->price ? now : budget->price;
  budget->price = now;
  if (price > 0) {
    double can_ns = (double)may_ns / price;
    duty = can_ns >= (double)wall_ns ? FULL : (int64_t)(can_ns * FULL / (double)wall_ns);
  }
  /* Upwards in steps of at most double, so that one cheap window does not undo what is known. */
  duty = clamp(duty, LEAST, clamp((int64_t)budget->duty_permille * 2, LEAST, FULL));
  return budget->duty_permille = (uint32_t)duty;
}
