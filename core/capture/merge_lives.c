/*
 * merge_lives.c - processes, threads, their names and mappings across segments.
 *
 * What was alive at the end of one segment and is there at the start of the next goes on: it is
 * one row.  An id that was given anew in between is told by a start of its own, or by another name
 * after a gap.
 */
#include "capture/merge_inside.h"

enum { SURE_GAP_NS = 1000000000 }; /* ids come again after all others were used: not in a second */

static bool goes_on(const struct mic_merge *m, uint64_t old_end, bool same_name) {
  if (m->gap_ns == MIC_MERGE_OTHER_BOOT || old_end != UINT64_MAX) return false;
  return m->gap_ns <= SURE_GAP_NS || same_name;
}

/* The end of a merged row: never before its start, whatever the clocks of segments say.  The
 * start's column stands before the end's. */
static void set_end(struct mic_merge *m, uint32_t column, uint32_t id, uint64_t time_ns) {
  uint64_t start = mic_merge_get(m, column - 1, id);
  mic_merge_set(m, column, id, time_ns < start ? start : time_ns);
}

/* One whose id begins anew has ended by then. */
static void end_by(struct mic_merge *m, uint32_t column, uint32_t id, uint64_t time_ns) {
  if (mic_merge_get(m, column, id) == UINT64_MAX) set_end(m, column, id, time_ns);
}

#define FOLLOWS(table) \
  _Static_assert(MIC_COLUMN_##table##_end_ns == MIC_COLUMN_##table##_start_ns + 1, "set_end")
FOLLOWS(processes);
FOLLOWS(threads);
FOLLOWS(mappings);

/* A table of what lives, by its columns. */
struct living {
  enum mic_table_id table;
  uint32_t owner, number; /* the columns that tell the living apart */
  uint32_t name, start, end;
};

static void add_living(struct mic_merge *m, const struct living *t, mic_merge_lives *lives) {
  struct mic_map *ids = &m->keyed[t->table];
  for (uint64_t row = 0; row < m->cap->tables[t->table].rows; row++) {
    uint64_t owner = mic_merge_value(m, t->owner, row), number = mic_merge_value(m, t->number, row);
    uint64_t name = mic_merge_value(m, t->name, row);
    uint32_t old = m->segment > 1 ? mic_map_get(ids, owner, number) : MIC_NONE;
    /* A segment may hold two with one id, the first of which has ended in it. */
    if (old != MIC_NONE && mic_merge_read(m, t->start, row) == 0 &&
        lives->at[old].segment != m->segment &&
        goes_on(m, mic_merge_get(m, t->end, old), mic_merge_get(m, t->name, old) == name)) {
      mic_merge_set(m, t->name, old, name);
      set_end(m, t->end, old, mic_merge_value(m, t->end, row));
    } else {
      uint32_t id = mic_merge_append(m, t->table, row);
      if (old != MIC_NONE) end_by(m, t->end, old, mic_merge_value(m, t->start, row));
      *mic_vec_push(lives) = (struct mic_merge_life){.last = MIC_NONE};
      mic_map_put(ids, owner, number, id);
      old = id;
    }
    lives->at[old].segment = m->segment;
    m->ids[t->table][row] = old;
  }
}

void mic_merge_add_processes(struct mic_merge *m) {
  static const struct living processes = {
    MIC_TABLE_processes,       MIC_COLUMN_processes_pid,      MIC_COLUMN_processes_ns_pid,
    MIC_COLUMN_processes_name, MIC_COLUMN_processes_start_ns, MIC_COLUMN_processes_end_ns,
  };
  add_living(m, &processes, &m->processes);
}

void mic_merge_add_threads(struct mic_merge *m) {
  static const struct living threads = {
    MIC_TABLE_threads,       MIC_COLUMN_threads_process,  MIC_COLUMN_threads_tid,
    MIC_COLUMN_threads_name, MIC_COLUMN_threads_start_ns, MIC_COLUMN_threads_end_ns,
  };
  add_living(m, &threads, &m->threads);
}

void mic_merge_end_threads(struct mic_merge *m) {
  for (uint32_t id = 0; id < m->rows[MIC_TABLE_threads]; id++) {
    uint64_t process = mic_merge_get(m, MIC_COLUMN_threads_process, id);
    end_by(m, MIC_COLUMN_threads_end_ns, id,
           mic_merge_get(m, MIC_COLUMN_processes_end_ns, process));
  }
}

/* What a segment says was so at its start is told once when the one before ended so. */
static uint32_t add_change(struct mic_merge *m, uint32_t table, uint32_t what, uint32_t time,
                           uint64_t row, struct mic_merge_life *life) {
  bool at_start = mic_merge_read(m, time, row) == 0;
  if (at_start && life->last != MIC_NONE &&
      mic_merge_get(m, what, life->last) == mic_merge_value(m, what, row))
    return life->last;
  life->last = mic_merge_append(m, table, row);
  return life->last;
}

void mic_merge_add_process_execs(struct mic_merge *m) {
  for (uint64_t row = 0; row < m->cap->tables[MIC_TABLE_process_execs].rows; row++) {
    uint64_t process = mic_merge_value(m, MIC_COLUMN_process_execs_process, row);
    m->ids[MIC_TABLE_process_execs][row] =
      add_change(m, MIC_TABLE_process_execs, MIC_COLUMN_process_execs_path,
                 MIC_COLUMN_process_execs_time_ns, row, &m->processes.at[process]);
  }
}

void mic_merge_add_thread_names(struct mic_merge *m) {
  for (uint64_t row = 0; row < m->cap->tables[MIC_TABLE_thread_names].rows; row++) {
    uint64_t thread = mic_merge_value(m, MIC_COLUMN_thread_names_thread, row);
    m->ids[MIC_TABLE_thread_names][row] =
      add_change(m, MIC_TABLE_thread_names, MIC_COLUMN_thread_names_name,
                 MIC_COLUMN_thread_names_time_ns, row, &m->threads.at[thread]);
  }
}

/* A mapping that is there at a segment's start and was open before is the same one. */
void mic_merge_add_mappings(struct mic_merge *m) {
  for (uint64_t row = 0; row < m->cap->tables[MIC_TABLE_mappings].rows; row++) {
    uint64_t key[5] = {
      mic_merge_value(m, MIC_COLUMN_mappings_process, row),
      mic_merge_value(m, MIC_COLUMN_mappings_module, row),
      mic_merge_read(m, MIC_COLUMN_mappings_address, row),
      mic_merge_read(m, MIC_COLUMN_mappings_size, row),
      mic_merge_read(m, MIC_COLUMN_mappings_file_offset, row),
    };
    uint32_t id = mic_intern(&m->mappings, (const char *)key, sizeof key);
    bool known = id < m->mapping_rows.count;
    uint32_t old = known ? m->mapping_rows.at[id] : MIC_NONE;
    if (known && mic_merge_read(m, MIC_COLUMN_mappings_start_ns, row) == 0 && m->segment > 1 &&
        mic_merge_get(m, MIC_COLUMN_mappings_end_ns, old) == UINT64_MAX) {
      set_end(m, MIC_COLUMN_mappings_end_ns, old,
              mic_merge_value(m, MIC_COLUMN_mappings_end_ns, row));
    } else {
      old = mic_merge_append(m, MIC_TABLE_mappings, row);
      if (known)
        m->mapping_rows.at[id] = old;
      else
        *mic_vec_push(&m->mapping_rows) = old;
    }
    m->ids[MIC_TABLE_mappings][row] = old;
  }
}
