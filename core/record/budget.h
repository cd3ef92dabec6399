/*
 * budget.h - keep the recorder's own cost under its share of one CPU.
 *
 * A pure function of what it is shown: the same observations give the same duty. Duty is the share
 * of each window in which sampling is on; what is off is recorded as off time.
 */
#ifndef MIC_RECORD_BUDGET_H
#define MIC_RECORD_BUDGET_H

#include <stdint.h>

/* The share is kept over so many windows: recording begins with that much credit, for what it
 * pays only once (tables of images, names), and debt beyond that is forgiven, since a stall of the
 * machine must not end sampling for good. */
enum { MIC_BUDGET_WINDOWS = 10 };

/* A window is long against a CPU-clock reading's grain and short against a person's patience. */
#define MIC_BUDGET_WINDOW_NS 1000000000ULL

struct mic_budget {
  uint32_t share_permille; /* of one CPU; 0: no bound, duty stays 1000 */
  uint32_t duty_permille;  /* for the next window */
  int64_t debt_ns;         /* spent over the share so far and not yet made up for; less than 0:
                              credit */
  double price;            /* of the last window: CPU time for each ns that sampling was on */
};

void mic_budget_start(struct mic_budget *budget, uint32_t share_permille);
/* A window of wall_ns ended in which the recorder spent cpu_ns and sampling was on for on_ns of it.
 * Gives the duty for the next window in thousandths. */
uint32_t mic_budget_step(struct mic_budget *budget, uint64_t wall_ns, uint64_t cpu_ns,
                         uint64_t on_ns);

#endif
