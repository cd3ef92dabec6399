/* facts.c - rows of meta, sources and clocks. */
#include "record/facts.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"

static void fact(struct mic_writer *writer, const char *key, const char *value) {
  struct mic_meta_row row = {
    .key = mic_writer_text(writer, key),
    .value = mic_writer_text(writer, value),
  };
  mic_writer_meta(writer, &row);
}

static void number(struct mic_writer *writer, const char *key, int64_t value) {
  char text[24];
  snprintf(text, sizeof text, "%lld", (long long)value);
  fact(writer, key, text);
}

/* The arguments as a shell would take them, so that the line can be run again. */
static void command_fact(struct mic_writer *writer, const char *const *argv) {
  static const char plain[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
  MIC_VEC(char) line = {0};
  for (size_t i = 0; argv[i]; i++) {
    if (i) *mic_vec_push(&line) = ' ';
    bool quote = !*argv[i] || argv[i][strspn(argv[i], plain)];
    if (quote) *mic_vec_push(&line) = '\'';
    for (const char *c = argv[i]; *c; c++) {
      if (*c == '\'')
        for (const char *q = "'\\'"; *q; q++) *mic_vec_push(&line) = *q;
      *mic_vec_push(&line) = *c;
    }
    if (quote) *mic_vec_push(&line) = '\'';
  }
  *mic_vec_push(&line) = '\0';
  fact(writer, "command", line.at);
  mic_vec_free(&line);
}

static void pids_fact(struct mic_writer *writer, const struct mic_record_options *options) {
  MIC_VEC(char) line = {0};
  for (uint32_t i = 0; i < options->pid_count; i++) {
    char text[16];
    int size = snprintf(text, sizeof text, "%s%u", i ? "," : "", options->pids[i]);
    for (int c = 0; c < size; c++) *mic_vec_push(&line) = text[c];
  }
  *mic_vec_push(&line) = '\0';
  fact(writer, "attached", line.at);
  mic_vec_free(&line);
}

void mic_facts_start(struct mic_writer *writer, const struct mic_record_options *options) {
  struct utsname host;
  memset(&host, 0, sizeof host);
  uname(&host);
  fact(writer, "version", MIC_VERSION);
  fact(writer, "host", host.nodename);
  fact(writer, "kernel", host.release);
  fact(writer, "machine", host.machine);
  number(writer, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
  if (options->argv) {
    fact(writer, "program", options->argv[0]);
    command_fact(writer, options->argv);
  }
  if (options->pid_count) pids_fact(writer, options);
  bool cycles = options->measure == MIC_MEASURE_CYCLES;
  struct mic_sources_row source = {
    .name = mic_writer_text(writer, cycles ? "cycles" : "cpu-clock"),
    .unit = cycles ? MIC_UNIT_CYCLES : MIC_UNIT_CPU_NS,
    .period = options->period,
  };
  mic_writer_sources(writer, &source);
}

static uint32_t boot_id(struct mic_writer *writer) {
  char text[64] = "";
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file) {
    if (!fgets(text, sizeof text, file)) text[0] = '\0';
    fclose(file);
  }
  text[strcspn(text, "\n")] = '\0';
  return mic_writer_text(writer, text);
}

void mic_facts_end(struct mic_writer *writer, uint64_t start_ns, uint64_t duration_ns,
                   const struct mic_facts_program *program) {
  if (program) {
    number(writer, "exit_status", program->status);
    number(writer, "user_cpu_ns", (int64_t)program->user_ns);
    number(writer, "system_cpu_ns", (int64_t)program->system_ns);
  }
  struct mic_clocks_row row = {
    .monotonic_ns = start_ns,
    .realtime_ns = mic_clock_realtime_ns() - (mic_clock_ns() - start_ns),
    .duration_ns = duration_ns,
    .boot_id = boot_id(writer),
  };
  mic_writer_clocks(writer, &row);
}
