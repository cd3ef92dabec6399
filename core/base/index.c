/* index.c - open addressing with linear probes; at most 3/4 full. */
#include "base/index.h"

#include <string.h>
#include <sys/auxv.h>

enum { FIRST_ROOM = 64 };

uint64_t mic_index_secret[2];

/* 16 bytes that the kernel made for this run (fs/binfmt_elf.c, create_elf_tables). */
__attribute__((constructor)) static void take_secret(void) {
  const void *random = (const void *)getauxval(AT_RANDOM); /* NOLINT(performance-no-int-to-ptr) */
  if (random) memcpy(mic_index_secret, random, sizeof mic_index_secret);
  mic_index_secret[1] |= 1; /* a product with 0 would be one for all keys */
}

static void put(struct mic_index *index, uint32_t hash, uint32_t id) {
  uint64_t at = hash * index->room >> 32;
  while (index->slots[at] != MIC_NONE) at = at + 1 == index->room ? 0 : at + 1;
  index->slots[at] = mic_index_tag(index, hash) | id;
}

/* By a half: the slots of a table that has just grown are half full.  The old ones are freed
 * before, as keys tell all that is in them. */
static void rebuild(struct mic_index *index, mic_index_hash *hash_of, const void *keys) {
  free(index->slots);
  size_t size = (size_t)index->room * sizeof *index->slots;
  index->slots = mic_realloc(NULL, size);
  memset(index->slots, 0xff, size);
  for (uint32_t id = 0; id < index->count; id++) put(index, hash_of(keys, id), id);
}

void mic_index_add(struct mic_index *index, uint32_t hash, mic_index_hash *hash_of,
                   const void *keys) {
  if (((uint64_t)index->count + 1) * 4 > index->room * 3) {
    index->room = index->room ? index->room / 2 * 3 : FIRST_ROOM;
    /* No id is all ones in its bits: with such a tag it would be the mark of an empty slot. */
    uint64_t most = index->room * 3 / 4 + 1;
    while (index->id_bits < 32 && 1ULL << index->id_bits <= most) index->id_bits++;
    rebuild(index, hash_of, keys);
  }
  put(index, hash, index->count++);
}

void mic_index_free(struct mic_index *index) {
  free(index->slots);
  memset(index, 0, sizeof *index);
}
