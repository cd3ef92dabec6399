/*
 * otlp_write.h - a capture as OpenTelemetry profiles (opentelemetry.proto.profiles.v1development,
 * a ProfilesData message).
 *
 * A profile for each source; samples of the same thread, stack and labels are one sample with a
 * value and a time each.  Threads and processes are attributes by OpenTelemetry's names, and a
 * stack that ends short has its reason in brackets as outermost frame.  Texts are made UTF-8.
 *
 * Fails:   MIC_ELIMIT for a value of more than 2^63 - 1, which the format cannot hold.
 * Threads: no state.
 */
#ifndef MIC_IMPORT_OTLP_WRITE_H
#define MIC_IMPORT_OTLP_WRITE_H

#include "base/error.h"
#include "capture/reader.h"
#include "import/output.h"

/* ffi:begin */
int mic_otlp_write(const struct mic_capture *cap, struct mic_output *output, struct mic_error *err);
/* ffi:end */

#endif
