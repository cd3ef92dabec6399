/* space_test.c - intervals of code: covering, splitting, keeping. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "target/space.h"

static struct mic_mapping mapping(uint64_t start, uint64_t end, struct mic_image *image,
                                  uint64_t offset) {
  return (struct mic_mapping){
    .code = {.start = start, .end = end, .bias = start - offset, .kind = MIC_CODE_IMAGE},
    .image = image,
    .file_offset = offset,
  };
}

/* All mappings, in order; no part is empty or too large. */
static mic_mappings all_of(const struct mic_code_space *maps) {
  mic_mappings all = {0};
  for (size_t p = 0; p < maps->parts.count; p++) {
    const mic_mappings *part = &maps->parts.at[p];
    assert_in_range(part->count, 1, MIC_SPACE_PART);
    for (size_t i = 0; i < part->count; i++) *mic_vec_push(&all) = part->at[i];
  }
  return all;
}

static void expect(const struct mic_code_space *maps, const uint64_t (*ranges)[3], size_t count) {
  mic_mappings all = all_of(maps);
  assert_int_equal(all.count, count);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(all.at[i].code.start, ranges[i][0]);
    assert_int_equal(all.at[i].code.end, ranges[i][1]);
    assert_int_equal(all.at[i].file_offset, ranges[i][2]);
  }
  mic_vec_free(&all);
}

static void a_cover_in_the_middle_splits(void **state) {
  (void)state;
  struct mic_image a = {0}, b = {0};
  struct mic_code_space maps = {0};
  mic_mappings ended = {0};
  struct mic_mapping whole = mapping(0x1000, 0x9000, &a, 0x100000);
  struct mic_mapping middle = mapping(0x3000, 0x5000, &b, 0);
  assert_true(mic_code_space_insert(&maps, &whole, &ended));
  assert_int_equal(ended.count, 0);
  assert_true(mic_code_space_insert(&maps, &middle, &ended));
  expect(
    &maps,
    (uint64_t[][3]){{0x1000, 0x3000, 0x100000}, {0x3000, 0x5000, 0}, {0x5000, 0x9000, 0x104000}},
    3);
  assert_int_equal(ended.count, 1);
  assert_int_equal(ended.at[0].code.start, 0x3000);
  assert_int_equal(ended.at[0].code.end, 0x5000);
  assert_int_equal(ended.at[0].file_offset, 0x102000);
  assert_ptr_equal(mic_code_space_find(&maps, 0x4fff)->image, &b);
  assert_ptr_equal(mic_code_space_find(&maps, 0x5000)->image, &a);
  assert_null(mic_code_space_find(&maps, 0x9000));
  assert_null(mic_code_space_find(&maps, 0xfff));
  mic_code_space_clear(&maps);
  mic_vec_free(&ended);
}

static void what_is_there_already_changes_nothing(void **state) {
  (void)state;
  struct mic_image a = {0};
  struct mic_code_space maps = {0};
  mic_mappings ended = {0};
  struct mic_mapping whole = mapping(0x1000, 0x9000, &a, 0),
                     part = mapping(0x2000, 0x3000, &a, 0x1000);
  struct mic_mapping shifted = mapping(0x2000, 0x3000, &a, 0x2000);
  mic_code_space_insert(&maps, &whole, &ended);
  assert_false(mic_code_space_insert(&maps, &whole, &ended));
  assert_false(mic_code_space_insert(&maps, &part, &ended));
  assert_int_equal(ended.count, 0);
  /* The same file elsewhere in the same place is another mapping. */
  assert_true(mic_code_space_insert(&maps, &shifted, &ended));
  assert_int_equal(maps.parts.at[0].count, 3);
  struct mic_mapping empty = mapping(0x5000, 0x5000, &a, 0);
  assert_false(mic_code_space_insert(&maps, &empty, &ended));
  mic_code_space_clear(&maps);
  mic_vec_free(&ended);
}

static void a_read_ends_what_it_does_not_show(void **state) {
  (void)state;
  struct mic_image a = {0};
  struct mic_code_space maps = {0};
  mic_mappings ended = {0}, shown = {0};
  struct mic_mapping first = mapping(0x1000, 0x4000, &a, 0),
                     second = mapping(0x6000, 0x9000, &a, 0x6000);
  mic_code_space_insert(&maps, &first, &ended);
  mic_code_space_insert(&maps, &second, &ended);
  *mic_vec_push(&shown) = mapping(0x0, 0x2000, &a, 0);
  *mic_vec_push(&shown) = mapping(0x3000, 0x7000, &a, 0);
  assert_true(mic_code_space_keep(&maps, &shown, &ended));
  expect(&maps,
         (uint64_t[][3]){{0x1000, 0x2000, 0}, {0x3000, 0x4000, 0x2000}, {0x6000, 0x7000, 0x6000}},
         3);
  assert_int_equal(ended.count, 2);
  assert_int_equal(ended.at[0].code.start, 0x2000);
  assert_int_equal(ended.at[0].code.end, 0x3000);
  assert_int_equal(ended.at[1].code.start, 0x7000);
  assert_int_equal(ended.at[1].code.end, 0x9000);
  assert_false(mic_code_space_keep(&maps, &shown, &ended));
  shown.at[1].image = NULL; /* anonymous code stands where the file was */
  ended.count = 0;
  assert_true(mic_code_space_keep(&maps, &shown, &ended));
  expect(&maps, (uint64_t[][3]){{0x1000, 0x2000, 0}}, 1);
  assert_int_equal(ended.count, 2);
  shown.count = 0;
  assert_true(mic_code_space_keep(&maps, &shown, &ended));
  assert_int_equal(maps.parts.count, 0);
  mic_code_space_clear(&maps);
  mic_vec_free(&ended);
  mic_vec_free(&shown);
}

/* Against one owner a page: everywhere they agree, and whatever is cut off it, a byte of a mapping
 * keeps its place in the file. */
static void agree(const struct mic_code_space *maps, const int *owner, uint64_t pages,
                  struct mic_image *images) {
  for (uint64_t page = 0; page < pages; page++) {
    const struct mic_mapping *found = mic_code_space_find(maps, page << 12);
    if (owner[page] < 0)
      assert_null(found);
    else
      assert_ptr_equal(found->image, &images[owner[page]]);
  }
  mic_mappings all = all_of(maps);
  for (size_t m = 0; m < all.count; m++) {
    if (m) assert_true(all.at[m - 1].code.end <= all.at[m].code.start);
    assert_int_equal(all.at[m].code.start - all.at[m].code.bias, all.at[m].file_offset);
  }
  mic_vec_free(&all);
}

/* So many random mappings of up to `most` pages, compared after each `step`. */
static void insert_random(int count, uint64_t pages, uint32_t most, int step) {
  struct mic_image *images = mic_alloc((size_t)count * sizeof *images);
  int *owner = mic_alloc(pages * sizeof *owner);
  struct mic_code_space maps = {0}, copy = {0};
  mic_mappings ended = {0};
  uint32_t seed = 7;
  memset(owner, 0xff, pages * sizeof *owner);
  for (int i = 0; i < count; i++) {
    seed = seed * 1664525 + 1013904223;
    uint64_t from = (seed >> 8) % pages, size = 1 + (seed >> 20) % most;
    uint64_t to = from + size > pages ? pages : from + size;
    struct mic_mapping new = mapping(from << 12, to << 12, &images[i], 0x40000);
    ended.count = 0;
    mic_code_space_insert(&maps, &new, &ended);
    for (uint64_t page = from; page < to; page++) owner[page] = i;
    if (i % step == 0) agree(&maps, owner, pages, images);
  }
  agree(&maps, owner, pages, images);
  mic_code_space_copy(&copy, &maps, 5);
  agree(&copy, owner, pages, images);
  assert_int_equal(copy.parts.at[0].at[0].start_ns, 5);
  /* Kept are those of every other page. */
  mic_mappings shown = {0};
  for (uint64_t page = 0; page < pages; page++) {
    if (page % 2 && owner[page] >= 0)
      *mic_vec_push(&shown) = mapping(page << 12, (page + 1) << 12, &images[owner[page]], 0);
    if (page % 2 == 0) owner[page] = -1;
  }
  mic_code_space_keep(&maps, &shown, &ended);
  agree(&maps, owner, pages, images);
  mic_code_space_clear(&maps);
  mic_code_space_clear(&copy);
  mic_vec_free(&shown);
  mic_vec_free(&ended);
  free(owner);
  free(images);
}

static void inserts_agree_with_a_page_table(void **state) {
  (void)state;
  insert_random(200, 64, 12, 1);
  insert_random(30000, 20000, 2, 5000);
  insert_random(30000, 20000, 4000, 5000); /* each covers many parts */
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_cover_in_the_middle_splits),
    cmocka_unit_test(what_is_there_already_changes_nothing),
    cmocka_unit_test(a_read_ends_what_it_does_not_show),
    cmocka_unit_test(inserts_agree_with_a_page_table),
  };
  return cmocka_run_group_tests_name("space", tests, NULL, NULL);
}
