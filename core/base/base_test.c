/* base_test.c - errors, arrays, arenas, maps, strings and cursors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/error.h"
#include "base/map.h"

static void errors_hold_one_line(void **state) {
  (void)state;
  struct mic_error err;
  assert_int_equal(mic_fail(&err, MIC_EARG, "a\nb\x7f%s", "\tc"), MIC_EARG);
  assert_string_equal(err.msg, "a?b??c");
  assert_int_equal(mic_fail_at(&err, 77, "x"), MIC_EFORMAT);
  assert_int_equal(err.offset, 77);
  errno = EACCES;
  assert_int_equal(mic_fail_sys(&err, "open %s", "f"), MIC_EPERM);
  assert_string_equal(err.msg, "open f: Permission denied");
  assert_int_equal(err.sys, EACCES);
  errno = ESRCH;
  assert_int_equal(mic_fail_sys(NULL, "x"), MIC_EGONE);
  char longer[600];
  memset(longer, 'y', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  errno = ENOENT;
  assert_int_equal(mic_fail_sys(&err, "%s", longer), MIC_ESYS);
  assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
  assert_string_equal(mic_code_name(MIC_EGONE), "EGONE");
  assert_string_equal(mic_code_name(12345), "?");
}

static void arrays_grow(void **state) {
  (void)state;
  MIC_VEC(uint64_t) v = {0};
  for (uint64_t i = 0; i < 1000; i++) *mic_vec_push(&v) = i * i;
  assert_int_equal(v.count, 1000);
  for (uint64_t i = 0; i < 1000; i++) assert_int_equal(v.at[i], i * i);
  mic_vec_free(&v);
  assert_null(v.at);
  assert_null(mic_try_alloc(SIZE_MAX / 2, 4));
}

static void arenas_align_and_zero(void **state) {
  (void)state;
  struct mic_arena arena = {0};
  for (size_t size = 1; size < 100000; size = size * 3 + 1) {
    char *p = mic_arena_alloc(&arena, size);
    assert_int_equal((uintptr_t)p % 16, 0);
    for (size_t i = 0; i < size; i++) assert_int_equal(p[i], 0);
    memset(p, 0xff, size);
  }
  mic_arena_free(&arena);
}

/* Against the plainest thing that works: an array that is searched. */
static void maps_agree_with_a_list(void **state) {
  (void)state;
  enum { KEYS = 300 };
  uint32_t plain[KEYS];
  memset(plain, 0xff, sizeof plain);
  struct mic_map map = {0};
  assert_int_equal(mic_map_get(&map, 1, 2), MIC_NONE);
  assert_false(mic_map_remove(&map, 1, 2));
  uint32_t seed = 1;
  for (uint32_t step = 0; step < 20000; step++) {
    seed = seed * 1664525 + 1013904223;
    uint32_t key = (seed >> 8) % KEYS;
    uint64_t a = key * 0x100000000ULL, b = key % 7;
    if (seed >> 31) {
      assert_int_equal(mic_map_remove(&map, a, b), plain[key] != MIC_NONE);
      plain[key] = MIC_NONE;
    } else {
      mic_map_put(&map, a, b, step);
      plain[key] = step;
    }
    if (step % 100 == 0)
      for (uint32_t k = 0; k < KEYS; k++)
        assert_int_equal(mic_map_get(&map, k * 0x100000000ULL, k % 7), plain[k]);
  }
  bool added;
  mic_map_put(&map, 5, 5, 9);
  assert_int_equal(mic_map_intern(&map, 5, 5, 10, &added), 9);
  assert_false(added);
  mic_map_free(&map);
}

static void ids_agree_with_a_list(void **state) {
  (void)state;
  enum { KEYS = 3000 };
  static uint32_t plain[KEYS];
  memset(plain, 0xff, sizeof plain);
  struct mic_id_map ids = {0};
  assert_int_equal(mic_id_map_get(&ids, 1), MIC_NONE);
  assert_false(mic_id_map_remove(&ids, 1));
  uint32_t seed = 1;
  for (uint32_t step = 0; step < 60000; step++) {
    seed = seed * 1664525 + 1013904223;
    uint32_t k = (seed >> 8) % KEYS, key = k * 0x9e3779b9;
    if (seed >> 31) {
      assert_int_equal(mic_id_map_remove(&ids, key), plain[k] != MIC_NONE);
      plain[k] = MIC_NONE;
    } else {
      mic_id_map_put(&ids, key, step);
      plain[k] = step;
    }
    if (step % 3000) continue;
    uint32_t count = 0;
    for (k = 0; k < KEYS; k++) {
      assert_int_equal(mic_id_map_get(&ids, k * 0x9e3779b9), plain[k]);
      count += plain[k] != MIC_NONE;
    }
    assert_int_equal(ids.count, count);
  }
  mic_id_map_put(&ids, UINT32_MAX, 7);
  assert_int_equal(mic_id_map_get(&ids, UINT32_MAX), 7);
  mic_id_map_free(&ids);
}

static void strings_get_dense_ids(void **state) {
  (void)state;
  struct mic_interner in = {0};
  assert_int_equal(mic_interner_find(&in, "a", 1), MIC_NONE);
  assert_int_equal(mic_intern(&in, "a", 1), 0);
  assert_int_equal(mic_intern(&in, "a\0b", 3), 1);
  assert_int_equal(mic_intern(&in, NULL, 0), 2);
  for (int i = 0; i < 5000; i++) mic_intern(&in, (const char *)&i, sizeof i);
  assert_int_equal(mic_intern(&in, "a", 1), 0);
  assert_int_equal(mic_intern(&in, "a\0b", 3), 1);
  assert_int_equal(mic_interner_find(&in, "", 0), 2);
  assert_int_equal(in.strings.count, 5003);
  assert_memory_equal(mic_interner_at(&in, 1).bytes, "a\0b", 4);
  mic_interner_free(&in);
}

static uint32_t hash_of_word(const void *keys, uint32_t id) {
  uint64_t key = ((const uint64_t *)keys)[id];
  return mic_index_mix(key, key >> 7);
}
static uint32_t id_of_word(const struct mic_index *index, const uint64_t *keys, uint64_t key) {
  uint64_t at;
  uint32_t hash = mic_index_mix(key, key >> 7);
  for (uint32_t id = mic_index_first(index, hash, &at); id != MIC_NONE;
       id = mic_index_next(index, hash, &at))
    if (keys[id] == key) return id;
  return MIC_NONE;
}

static void an_index_finds_ids(void **state) {
  (void)state;
  enum { KEYS = 100000 };
  static uint64_t keys[KEYS];
  struct mic_index index = {0};
  assert_int_equal(id_of_word(&index, keys, 7), MIC_NONE);
  for (uint32_t i = 0; i < KEYS; i++) {
    keys[i] = (uint64_t)i * i * 0x10001;
    assert_int_equal(id_of_word(&index, keys, keys[i]), MIC_NONE);
    mic_index_add(&index, mic_index_mix(keys[i], keys[i] >> 7), hash_of_word, keys);
    assert_int_equal(id_of_word(&index, keys, keys[i / 2]), i / 2);
  }
  for (uint32_t i = 0; i < KEYS; i++) assert_int_equal(id_of_word(&index, keys, keys[i]), i);
  assert_int_equal(id_of_word(&index, keys, 5), MIC_NONE);
  assert_true(index.room * sizeof *index.slots <= 8 * KEYS);
  mic_index_free(&index);
}

/* Words that a fixed function would give one hash each: the inverse of all its steps. */
static uint64_t meets_others(uint64_t n) {
  uint64_t h = (n << 32 | n) * 0x4f74430c22a54005ULL; /* times 0xff51afd7ed558ccd is 1 */
  h ^= h >> 33;
  return (h ^ 0x7f4a7c15ULL * 0xc2b2ae3d27d4eb4fULL) *
         0xf1de83e19937733dULL; /* 0x9e3779b97f4a7c15 */
}

/* A file's keys cannot be chosen so that they meet. */
static void hashes_are_secret(void **state) {
  (void)state;
  uint32_t same = 0;
  for (uint64_t i = 1; i < 1000; i++)
    same += mic_index_mix(meets_others(i), 0) == mic_index_mix(meets_others(i + 1), 0);
  assert_int_equal(same, 0);
  assert_true((uint32_t)mic_hash("microscope", 10) != mic_hash_key("microscope", 10));
}

static void cursors_stay_bad(void **state) {
  (void)state;
  const uint8_t bytes[] = {1, 2, 3};
  struct mic_cursor c = mic_cursor(bytes, sizeof bytes);
  assert_int_equal(mic_cursor_u16(&c), 0x0201);
  assert_int_equal(mic_cursor_u16(&c), 0);
  assert_true(c.bad);
  assert_int_equal(mic_cursor_u8(&c), 0);
  c = mic_cursor(bytes, sizeof bytes);
  assert_false(mic_cursor_seek(&c, 4));
  c = mic_cursor(bytes, sizeof bytes);
  assert_true(mic_cursor_seek(&c, 3));
  assert_int_equal(mic_cursor_left(&c), 0);
  assert_null(mic_cursor_string(&c));
  assert_true(c.bad);
}

/* The examples of DWARF 5, table 7.7 and 7.8, and the ends of the range. */
static void leb128_is_read(void **state) {
  (void)state;
  static const struct {
    uint8_t bytes[11];
    size_t size;
    uint64_t u;
    int64_t s;
    bool bad_u, bad_s;
  } cases[] = {
    {{2}, 1, 2, 2, false, false},
    {{127}, 1, 127, -1, false, false},
    {{0x80, 1}, 2, 128, 128, false, false},
    {{0x7e}, 1, 126, -2, false, false},
    {{0xff, 0}, 2, 127, 127, false, false},
    {{0x80, 0x7f}, 2, 16256, -128, false, false},
    {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 10, UINT64_MAX, 0, false, true},
    {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f}, 10, 0, INT64_MIN, true, false},
    {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0}, 11, 0, 0, true, true},
    {{0x80}, 1, 0, 0, true, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct mic_cursor u = mic_cursor(cases[i].bytes, cases[i].size), s = u;
    uint64_t got_u = mic_cursor_uleb(&u);
    int64_t got_s = mic_cursor_sleb(&s);
    assert_int_equal(u.bad, cases[i].bad_u);
    assert_int_equal(s.bad, cases[i].bad_s);
    if (!u.bad) assert_true(got_u == cases[i].u);
    if (!s.bad) assert_true(got_s == cases[i].s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(errors_hold_one_line),  cmocka_unit_test(arrays_grow),
    cmocka_unit_test(arenas_align_and_zero), cmocka_unit_test(maps_agree_with_a_list),
    cmocka_unit_test(ids_agree_with_a_list), cmocka_unit_test(strings_get_dense_ids),
    cmocka_unit_test(an_index_finds_ids),    cmocka_unit_test(hashes_are_secret),
    cmocka_unit_test(cursors_stay_bad),      cmocka_unit_test(leb128_is_read),
  };
  return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
