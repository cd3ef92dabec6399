/*
 * claims.c - drop the second copy of a record.
 *
 * A task that was opened although it may have inherited events already has two events a CPU.  It
 * is claimed by those that were opened for it: a record of it that comes from another's event is a
 * second copy.  What it makes inherits both kinds, and so its claim.
 */
#include "perf/claims.h"

#include "base/alloc.h"
#include "base/map.h"

struct claim {
  uint32_t tid, owner; /* only records of owner's events count for tid */
  uint64_t since_ns;
  bool exited;
};

struct mic_claims {
  struct mic_map owner_of; /* event id -> tid it was opened for */
  struct mic_map claim_of; /* tid -> claims */
  MIC_VEC(struct claim) claims;
  MIC_VEC(uint32_t) unused; /* of claims */
  uint64_t dropped;
};

struct mic_claims *mic_claims_new(void) {
  return mic_alloc(sizeof(struct mic_claims));
}

void mic_claims_event(struct mic_claims *claims, uint64_t id, uint32_t owner) {
  mic_map_put(&claims->owner_of, id, 0, owner);
}

static void put(struct mic_claims *claims, uint32_t tid, uint32_t owner, uint64_t since_ns) {
  uint32_t index = mic_map_get(&claims->claim_of, tid, 0);
  if (index == MIC_NONE) {
    if (claims->unused.count) {
      index = claims->unused.at[--claims->unused.count];
    } else {
      index = (uint32_t)claims->claims.count;
      mic_vec_push(&claims->claims);
    }
    mic_map_put(&claims->claim_of, tid, 0, index);
  }
  claims->claims.at[index] = (struct claim){tid, owner, since_ns, false};
}

void mic_claims_task(struct mic_claims *claims, uint32_t tid, uint64_t opened_ns) {
  put(claims, tid, tid, opened_ns);
}

static struct claim *find(const struct mic_claims *claims, uint32_t tid) {
  uint32_t index = mic_map_get(&claims->claim_of, tid, 0);
  return index == MIC_NONE ? NULL : &claims->claims.at[index];
}

static void drop_claim(struct mic_claims *claims, uint32_t tid) {
  uint32_t index = mic_map_get(&claims->claim_of, tid, 0);
  if (index == MIC_NONE) return;
  mic_map_remove(&claims->claim_of, tid, 0);
  *mic_vec_push(&claims->unused) = index;
}

/* A thread that execs takes its leader's tid and keeps its events: the claim moves with it. */
static void follow_exec(struct mic_claims *claims, const struct mic_record *record,
                        uint32_t owner) {
  struct claim *mover = find(claims, owner);
  if (owner == record->tid || !mover || mover->exited || mover->owner != owner) return;
  drop_claim(claims, owner);
  put(claims, record->tid, owner, record->time_ns);
}

static void follow_fork(struct mic_claims *claims, const struct mic_record *record) {
  const struct claim *maker = find(claims, record->ptid), *made = find(claims, record->tid);
  if (made && made->since_ns >= record->time_ns) return; /* it was opened itself, later */
  if (made) drop_claim(claims, record->tid);
  if (maker && !maker->exited) put(claims, record->tid, maker->owner, record->time_ns);
}

static bool is_second(struct mic_claims *claims, const struct mic_record *record, uint32_t owner) {
  struct claim *claim = find(claims, record->by_tid);
  if (!claim || record->time_ns < claim->since_ns) return false;
  if (claim->owner == owner) {
    if (record->kind == MIC_RECORD_EXIT && record->tid == claim->tid) claim->exited = true;
    return false;
  }
  if (!claim->exited || record->kind == MIC_RECORD_EXIT) return true;
  drop_claim(claims, record->by_tid); /* another task by that tid */
  return false;
}

bool mic_claims_accept(struct mic_claims *claims, const struct mic_record *record) {
  if (claims->claim_of.count == 0) return true;
  uint32_t owner = mic_map_get(&claims->owner_of, record->id, 0);
  /* What tells of a ring or an event, not of a task, is never a copy. */
  bool of_task = record->kind == MIC_RECORD_SAMPLE || record->kind == MIC_RECORD_MMAP ||
                 record->kind == MIC_RECORD_COMM || record->kind == MIC_RECORD_FORK ||
                 record->kind == MIC_RECORD_EXIT || record->kind == MIC_RECORD_SWITCH;
  if (owner == MIC_NONE || !of_task) return true;
  if (record->kind == MIC_RECORD_COMM && record->exec) follow_exec(claims, record, owner);
  if (is_second(claims, record, owner)) {
    claims->dropped++;
    return false;
  }
  if (record->kind == MIC_RECORD_FORK) follow_fork(claims, record);
  return true;
}

uint64_t mic_claims_dropped(const struct mic_claims *claims) { return claims->dropped; }

void mic_claims_free(struct mic_claims *claims) {
  if (!claims) return;
  mic_map_free(&claims->owner_of);
  mic_map_free(&claims->claim_of);
  mic_vec_free(&claims->claims);
  mic_vec_free(&claims->unused);
  free(claims);
}
