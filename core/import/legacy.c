/* legacy.c - mappings, places and stacks of old profiles. */
#include "import/legacy.h"

#include <linux/limits.h>
#include <stdlib.h>
#include <string.h>

#include "import/legacy_inside.h"

/* --- mappings ------------------------------------------------------------------------------ */

bool mic_legacy_hex(const char **at, const char *end, uint64_t *value) {
  const char *from = *at;
  *value = 0;
  for (; *at < end; (*at)++) {
    char c = **at;
    uint64_t digit;
    if (c >= '0' && c <= '9')
      digit = (uint64_t)(c - '0');
    else if (c >= 'a' && c <= 'f')
      digit = (uint64_t)(c - 'a') + 10;
    else
      break;
    if (*value >> 60) return false;
    *value = *value << 4 | digit;
  }
  return *at > from;
}

static bool take_char(const char **at, const char *end, char c) {
  if (*at == end || **at != c) return false;
  ++*at;
  return true;
}

/* A word and the blanks before it. */
static const char *take_word(const char **at, const char *end, size_t *size) {
  while (*at < end && **at == ' ') ++*at;
  const char *from = *at;
  while (*at < end && **at != ' ') ++*at;
  *size = (size_t)(*at - from);
  return from;
}

/* A path; "$build" at its start is what a line "build=PATH" said, which is no longer than a path
 * can be: each line may make another text of it. */
static uint32_t path_of(struct mic_legacy *r, const char *path, size_t size) {
  static const char build[] = "$build";
  const size_t length = sizeof build - 1;
  if (!r->main_path || size < length || memcmp(path, build, length) != 0)
    return mic_writer_string(r->w, path, size);
  uint64_t main_size;
  const char *bytes = mic_writer_bytes_of(r->w, r->main_path, &main_size);
  char *whole = mic_alloc(main_size + size);
  memcpy(whole, bytes, main_size);
  memcpy(whole + main_size, path + length, size - length);
  uint32_t id = mic_writer_string(r->w, whole, main_size + size - length);
  free(whole);
  return id;
}

void mic_legacy_map_line(struct mic_legacy *r, const char *line, size_t size) {
  const char *at = line, *end = line + size;
  struct mic_legacy_map map;
  size_t length, unused;
  if (size > 6 && size < PATH_MAX && memcmp(line, "build=", 6) == 0) {
    r->main_path = mic_writer_string(r->w, line + 6, size - 6);
    return;
  }
  while (at < end && *at == ' ') at++;
  if (!mic_legacy_hex(&at, end, &map.start) || !take_char(&at, end, '-') ||
      !mic_legacy_hex(&at, end, &map.end) || map.end <= map.start)
    return;
  const char *rights = take_word(&at, end, &length);
  if (!memchr(rights, 'x', length)) return;
  while (at < end && *at == ' ') at++;
  if (!mic_legacy_hex(&at, end, &map.offset)) return;
  take_word(&at, end, &unused); /* device */
  take_word(&at, end, &unused); /* inode */
  while (at < end && *at == ' ') at++;
  bool is_file = at < end && *at == '/', is_vdso = end - at == 6 && memcmp(at, "[vdso]", 6) == 0;
  bool is_built = at < end && *at == '$';
  map.module = MIC_NONE;
  if (is_file || is_vdso || is_built)
    map.module = mic_build_module(r->build, path_of(r, at, (size_t)(end - at)), 0);
  *mic_vec_push(&r->maps) = map;
}

static int by_start(const void *a, const void *b) {
  const struct mic_legacy_map *x = a, *y = b;
  return x->start < y->start ? -1 : x->start > y->start;
}

void mic_legacy_maps_done(struct mic_legacy *r) {
  if (r->maps.count) qsort(r->maps.at, r->maps.count, sizeof *r->maps.at, by_start);
  uint32_t process = mic_build_process(r->build, 0, 0);
  r->thread = mic_build_thread(r->build, process, 0, 0);
  for (size_t i = 0; i < r->maps.count; i++) {
    const struct mic_legacy_map *map = &r->maps.at[i];
    struct mic_mappings_row row = {
      .process = process,
      .module = map->module,
      .address = map->start,
      .size = map->end - map->start,
      .file_offset = map->offset,
      .end_ns = UINT64_MAX,
    };
    mic_writer_mappings(r->w, &row);
  }
}

/* The mapping that an address is in, or NULL. */
static const struct mic_legacy_map *map_of(const struct mic_legacy *r, uint64_t address) {
  size_t low = 0, high = r->maps.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (r->maps.at[middle].start <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low && address < r->maps.at[low - 1].end ? &r->maps.at[low - 1] : NULL;
}

/* --- places and stacks --------------------------------------------------------------------- */

static uint32_t hash_named(const void *data, uint32_t id) {
  const struct mic_legacy *r = data;
  return mic_index_mix(r->names.at[r->first_name.at[id]].address, 0);
}

uint32_t mic_legacy_first_name(const struct mic_legacy *r, uint64_t address) {
  uint32_t hash = mic_index_mix(address, 0);
  uint64_t at;
  for (uint32_t id = mic_index_first(&r->named, hash, &at); id != MIC_NONE;
       id = mic_index_next(&r->named, hash, &at))
    if (r->names.at[r->first_name.at[id]].address == address) return r->first_name.at[id];
  return MIC_NONE;
}

void mic_legacy_begin_names(struct mic_legacy *r, uint64_t address) {
  *mic_vec_push(&r->first_name) = (uint32_t)r->names.count;
  mic_index_add(&r->named, mic_index_mix(address, 0), hash_named, r);
}

static void put_lines(struct mic_legacy *r, uint32_t location, uint64_t address) {
  uint32_t first = mic_legacy_first_name(r, address), depth = 0;
  if (first == MIC_NONE) return;
  for (size_t i = first; i < r->names.count && r->names.at[i].address == address; i++) {
    const struct mic_legacy_name *name = &r->names.at[i];
    struct mic_lines_row row = {.location = location,
                                .function = name->function,
                                .file = name->file,
                                .line = name->line,
                                .depth = depth++};
    mic_writer_lines(r->w, &row);
  }
}

static uint32_t hash_place(const void *data, uint32_t location) {
  const struct mic_legacy *r = data;
  return mic_index_mix(r->place_at.at[location], 0);
}

static uint32_t place_of(struct mic_legacy *r, uint64_t address) {
  uint32_t hash = mic_index_mix(address, 0);
  uint64_t at;
  for (uint32_t id = mic_index_first(&r->places, hash, &at); id != MIC_NONE;
       id = mic_index_next(&r->places, hash, &at))
    if (r->place_at.at[id] == address) return id;
  const struct mic_legacy_map *map = map_of(r, address);
  struct mic_locations_row row = {
    .kind = MIC_LOCATION_UNMAPPED, .module = MIC_NONE, .offset = address};
  if (map && map->module == MIC_NONE) row.kind = MIC_LOCATION_ANON;
  if (map && map->module != MIC_NONE) {
    row.kind = MIC_LOCATION_FILE;
    row.module = map->module;
    row.offset = address - map->start + map->offset;
  }
  uint32_t location = mic_writer_locations(r->w, &row);
  *mic_vec_push(&r->place_at) = address;
  mic_index_add(&r->places, hash, hash_place, r);
  put_lines(r, location, address);
  return location;
}

void mic_legacy_put(struct mic_legacy *r, const uint32_t *sources, const uint64_t *values,
                    size_t count, uint32_t label) {
  bool any = false;
  for (size_t i = 0; i < count; i++) any |= values[i] != 0;
  r->result->records++;
  r->result->zero_records += !any;
  if (!any) return;
  uint32_t node = mic_build_root(r->build, MIC_END_NOT_STATED);
  for (size_t i = r->addresses.count; i-- > 0;)
    node = mic_build_node(r->build, node, place_of(r, r->addresses.at[i]));
  for (size_t i = 0; i < count; i++) {
    if (!values[i]) continue;
    struct mic_samples_row row = {
      .thread = r->thread, .stack = node, .weight = values[i], .source = (uint8_t)sources[i]};
    uint32_t sample = mic_writer_samples(r->w, &row);
    if (label != MIC_NONE)
      mic_writer_sample_labels(r->w, &(struct mic_sample_labels_row){sample, label});
  }
}

/* --- the whole ----------------------------------------------------------------------------- */

MIC_EXPORT int mic_legacy_read(struct mic_input *input, struct mic_writer *writer,
                               struct mic_legacy_result *result, struct mic_error *err) {
  struct mic_error unseen;
  uint8_t head[40];
  uint64_t got;
  size_t word;
  struct mic_legacy r = {.input = input,
                         .w = writer,
                         .build = mic_build_new(writer),
                         .result = result,
                         .err = err ? err : &unseen};
  *result = (struct mic_legacy_result){.records = 0};
  int code = mic_input_read(input, head, sizeof head, &got, r.err);
  if (!code) code = mic_input_rewind(input, r.err);
  if (!code)
    code =
      mic_legacy_is_cpu(head, (size_t)got, &word) ? mic_legacy_cpu(&r, word) : mic_legacy_text(&r);
  mic_vec_free(&r.maps);
  mic_vec_free(&r.names);
  mic_vec_free(&r.addresses);
  mic_index_free(&r.named);
  mic_vec_free(&r.first_name);
  mic_index_free(&r.places);
  mic_vec_free(&r.place_at);
  mic_build_free(r.build);
  return code;
}
