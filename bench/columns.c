/*
 * columns.c - what analysis costs a plain C program over the same columns: columns FILE.
 *
 * FILE is what analysis_bench.lua dumps: five u64 (samples, stacks, locations, frames, threads),
 * then the columns thread, stack (u32), weight (u64) of samples, parent, location (u32), end (u8)
 * of stacks, and start and frame (u32) of keys.  Prints "NAME NS CHECK" a line, the least of five
 * runs: weights by thread, and the call tree with its totals.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROOTS = 256, RUNS = 5 };

struct columns {
  uint64_t samples, stacks, locations, frames, threads;
  uint32_t *thread, *stack, *parent, *location, *start, *frame;
  uint64_t *weight;
  uint8_t *end;
};

static void *take(FILE *file, uint64_t count, size_t size) {
  void *column = malloc(count * size + 1);
  if (!column || fread(column, size, count, file) != count) exit(1);
  return column;
}

static void load(struct columns *c, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file || fread(c, sizeof(uint64_t), 5, file) != 5) exit(1);
  c->thread = take(file, c->samples, 4);
  c->stack = take(file, c->samples, 4);
  c->weight = take(file, c->samples, 8);
  c->parent = take(file, c->stacks, 4);
  c->location = take(file, c->stacks, 4);
  c->end = take(file, c->stacks, 1);
  c->start = take(file, c->locations + 1, 4);
  c->frame = take(file, c->frames, 4);
  fclose(file);
}

static double by_thread(const struct columns *c) {
  double *sums = calloc(c->threads, sizeof *sums);
  for (uint64_t i = 0; i < c->samples; i++) sums[c->thread[i]] += (double)c->weight[i];
  double most = 0;
  for (uint64_t t = 0; t < c->threads; t++)
    if (sums[t] > most) most = sums[t];
  free(sums);
  return most;
}

struct tree {
  uint32_t *parent, *key, *first, *slots, *node_of;
  uint32_t mask, count;
};

static uint32_t add(struct tree *t, uint32_t node, uint32_t key) {
  t->parent[t->count] = node;
  t->key[t->count] = key;
  return t->count++;
}

/* As tree.lua: the first child without the table. */
static uint32_t child(struct tree *t, uint32_t node, uint32_t key) {
  if (!t->first[node]) return t->first[node] = add(t, node, key);
  if (t->key[t->first[node]] == key) return t->first[node];
  uint32_t at = (uint32_t)(((uint64_t)node << 32 | key) * 0x9e3779b97f4a7c15ULL >> 32);
  for (;; at++) {
    uint32_t *slot = &t->slots[at & t->mask];
    if (!*slot) return *slot = add(t, node, key);
    if (t->parent[*slot] == node && t->key[*slot] == key) return *slot;
  }
}

static void merge(const struct columns *c, struct tree *t) {
  for (uint64_t i = 0; i < c->stacks; i++) {
    uint32_t node = c->end[i];
    if (c->parent[i] != UINT32_MAX) {
      node = t->node_of[c->parent[i]];
      uint32_t l = c->location[i];
      for (uint32_t f = c->start[l]; f < c->start[l + 1]; f++) node = child(t, node, c->frame[f]);
    }
    t->node_of[i] = node;
  }
}

/* The heaviest node's total, of those that are no roots. */
static double tree_totals(const struct columns *c) {
  uint64_t most = ROOTS;
  for (uint64_t i = 0; i < c->stacks; i++)
    if (c->parent[i] != UINT32_MAX) most += c->start[c->location[i] + 1] - c->start[c->location[i]];
  uint32_t room = 1024;
  while (room < most / 4) room *= 2;
  struct tree t = {.parent = calloc(most, 4),
                   .key = calloc(most, 4),
                   .first = calloc(most, 4),
                   .slots = calloc(room, 4),
                   .node_of = calloc(c->stacks, 4),
                   .mask = room - 1,
                   .count = ROOTS};
  merge(c, &t);
  double *total = calloc(t.count, sizeof *total), heaviest = 0;
  for (uint64_t i = 0; i < c->samples; i++) total[t.node_of[c->stack[i]]] += (double)c->weight[i];
  for (uint32_t n = t.count - 1; n >= ROOTS; n--) {
    total[t.parent[n]] += total[n];
    if (total[n] > heaviest) heaviest = total[n];
  }
  free(t.parent), free(t.key), free(t.first), free(t.slots), free(t.node_of), free(total);
  return heaviest;
}

static void measure(const char *name, double (*run)(const struct columns *),
                    const struct columns *c) {
  long long least = INT64_MAX;
  double check = 0;
  for (int i = 0; i < RUNS; i++) {
    struct timespec from, to;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    check = run(c);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    long long took = (to.tv_sec - from.tv_sec) * 1000000000LL + to.tv_nsec - from.tv_nsec;
    if (took < least) least = took;
  }
  printf("%s %lld %.0f\n", name, least, check);
}

int main(int argc, char **argv) {
  struct columns c;
  if (argc != 2) return 2;
  load(&c, argv[1]);
  measure("group", by_thread, &c);
  measure("tree", tree_totals, &c);
  return 0;
}
