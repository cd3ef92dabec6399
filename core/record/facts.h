/* facts.h - what a capture says of itself: host, program, clocks, what was measured. */
#ifndef MIC_RECORD_FACTS_H
#define MIC_RECORD_FACTS_H

#include <stdint.h>

#include "capture/writer.h"
#include "record/session.h"

/* The rows of meta and sources that are known at the start. */
void mic_facts_start(struct mic_writer *writer, const struct mic_record_options *options);
/* The clocks' row; status is that of the program that was started, NULL without one and while it
 * runs. */
void mic_facts_end(struct mic_writer *writer, uint64_t start_ns, uint64_t duration_ns,
                   const int32_t *status);

#endif
