/* facts.h - what a capture says of itself: host, program, clocks, what was measured. */
#ifndef MIC_RECORD_FACTS_H
#define MIC_RECORD_FACTS_H

#include <stdint.h>

#include "capture/writer.h"
#include "record/session.h"

/* The rows of meta and sources that are known at the start. */
void mic_facts_start(struct mic_writer *writer, const struct mic_record_options *options);
/* How a started program ended, and what it and all children it waited for spent (getrusage). */
struct mic_facts_program {
  int32_t status;
  uint64_t user_ns, system_ns;
};
/* The clocks' row; program is NULL where none was started or it still runs. */
void mic_facts_end(struct mic_writer *writer, uint64_t start_ns, uint64_t duration_ns,
                   const struct mic_facts_program *program);

#endif
