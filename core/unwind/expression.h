/* expression.h - evaluate a DWARF expression of call-frame information over a thread's state. */
#ifndef MIC_UNWIND_EXPRESSION_H
#define MIC_UNWIND_EXPRESSION_H

#include "base/map.h"
#include "unwind/code.h"

/* Evaluates with `initial` on the stack when it is not NULL.  MIC_END_NONE and *out, or why not;
 * *reg is the register that was not known when that is the reason. */
enum mic_end mic_expression_run(const struct mic_string *expression, const struct mic_regs *regs,
                                const uint64_t *initial, const struct mic_reader *reader,
                                uint64_t *out, uint8_t *reg);

#endif
