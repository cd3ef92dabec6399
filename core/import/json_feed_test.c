/* json_feed_test.c - decimal numbers to whole ones, without the detour of floating point. */
#include "import/json_feed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static bool scaled(const char *text, uint32_t digits, int64_t *out) {
  return mic_json_digits(text, strlen(text), digits, out);
}

static void keeps_every_digit(void **state) {
  static const struct {
    const char *text;
    uint32_t digits;
    int64_t want;
  } cases[] = {
    {"0", 3, 0},
    {"12", 3, 12000},
    {"12.345", 3, 12345},
    {"12.3454", 3, 12345},
    {"12.3455", 3, 12346},
    {"-12.3455", 3, -12346},
    {"0.0009", 3, 1},
    {"0.0004", 3, 0},
    {"1e3", 3, 1000000},
    {"1.5E-3", 3, 2},
    {"1700000000000000.123", 3, 1700000000000000123},
    {"9223372036854775807", 0, INT64_MAX},
    {"9223372036854775.807", 3, INT64_MAX},
    {"0.12345678901234567890123456789", 9, 123456789},
    {"99999999999999999999e-10", 0, 10000000000},
    {"1e-400", 3, 0},
    {"0e9999", 3, 0},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t got = -1;
    if (!scaled(cases[i].text, cases[i].digits, &got)) fail_msg("%s: refused", cases[i].text);
    if (got != cases[i].want) fail_msg("%s: %lld", cases[i].text, (long long)got);
  }
}

static void refuses_what_is_no_number(void **state) {
  static const char *const cases[] = {"",
                                      "-",
                                      "x",
                                      "1x",
                                      "1.2.3",
                                      "1e",
                                      "1e+",
                                      "1e99",
                                      "NaN",
                                      "9223372036854775808",
                                      " 1",
                                      "0x10",
                                      "1e9999999999999999999"};
  int64_t out;
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (scaled(cases[i], 0, &out)) fail_msg("%s: taken", cases[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(keeps_every_digit),
    cmocka_unit_test(refuses_what_is_no_number),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
