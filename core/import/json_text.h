/*
 * json_text.h - texts as JSON has them, made piece by piece.
 *
 * Quotes, backslashes and control characters are escaped, also those of UTF-8 that a terminal would
 * act on (base/utf8.h).  JSON has no bytes: each byte that is no UTF-8 becomes U+FFFD.
 *
 * Owns: nothing.  Threads: any.
 */
#ifndef MIC_IMPORT_JSON_TEXT_H
#define MIC_IMPORT_JSON_TEXT_H

#include <stdint.h>

/* ffi:begin */
enum { MIC_JSON_WIDEST = 6 }; /* bytes that one of a text can become: \u001f */

/* Write what text[*at] and on becomes, without quotes, and move *at behind what was written: up to
 * the text's end, or until room has less than MIC_JSON_WIDEST bytes left.  How many bytes it gave.
 */
uint64_t mic_json_text(const char *text, uint64_t size, uint64_t *at, char *out, uint64_t room);
/* ffi:end */

#endif
