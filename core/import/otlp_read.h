/*
 * otlp_read.h - read OpenTelemetry profiles (opentelemetry.proto.profiles.v1development with a
 * dictionary): a ProfilesData message, or a request to export one.
 *
 * Each profile's type is a source, each value of a sample a row with its time.  Threads and
 * processes are attributes by OpenTelemetry's names; all others, of samples and of what was
 * profiled, become labels.  The fields of a sample have other numbers in releases up to 1.9 than
 * after it; which they are the samples show, and a file that fits both is refused.
 *
 * The file is read twice, as the dictionary comes after what names its entries.
 *
 * Fails:   MIC_EFORMAT with the byte of the record, also for an index that is none.
 */
#ifndef MIC_IMPORT_OTLP_READ_H
#define MIC_IMPORT_OTLP_READ_H

#include <stdint.h>

#include "base/error.h"
#include "capture/writer.h"
#include "import/input.h"

/* ffi:begin */
struct mic_otlp_result {
  uint64_t profiles, samples;
  uint64_t links;      /* of samples to spans: left out */
  uint64_t attributes; /* whose values are no text and no number: left out */
  uint64_t payloads;   /* originals of another format: left out */
  uint64_t early;      /* times before the first profile's start, taken as that */
};

int mic_otlp_read(struct mic_input *input, struct mic_writer *writer,
                  struct mic_otlp_result *result, struct mic_error *err);
/* ffi:end */

#endif
