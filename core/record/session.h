/*
 * session.h - one recording, from options to a finished capture.
 *
 * A session runs three threads: a collector that owns the perf rings and copies records out, a
 * processor that owns the target and the capture, and the target's naming thread. The caller
 * pulls: mic_session_poll waits for the next event. SIGINT, SIGTERM and SIGHUP are taken by the
 * session (signalfd) from mic_session_new until mic_session_free and come as events.
 *
 * The usual life: new, start, poll until MIC_SESSION_DONE or MIC_SESSION_FAILED, free. The end of
 * what is recorded stops the recording. On
 * MIC_SESSION_INTERRUPTED or when it has had enough the caller says mic_session_stop and polls on.
 *
 * Owns:    the session owns its threads, the program it started and the unfinished capture; free
 *          ends them all: a started program that still runs is ended too.
 * Fails:   int functions return 0 or a MIC_E* code and fill *err.
 * Threads: one user at a time; one session a process at a time.
 */
#ifndef MIC_RECORD_SESSION_H
#define MIC_RECORD_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* ffi:begin */
enum mic_session_event_kind {
  MIC_SESSION_TICK = 0,        /* the timeout passed; the numbers are fresh */
  MIC_SESSION_INTERRUPTED = 1, /* a signal came: value is its number */
  MIC_SESSION_EXITED = 2,      /* what was recorded has ended: value is the exit status of the
                                  program the session started (128+N for signal N), 0 with pids */
  MIC_SESSION_DURATION = 3,    /* the duration asked for is over */
  MIC_SESSION_DONE = 4,        /* the capture is complete under its name */
  MIC_SESSION_FAILED = 5       /* it could not be recorded or written: mic_session_error says why */
};

enum mic_session_measure { MIC_MEASURE_CPU_CLOCK = 0, MIC_MEASURE_CYCLES = 1 };

enum mic_session_symbols { MIC_SYMBOLS_NOW = 0, MIC_SYMBOLS_LATER = 1 };

struct mic_record_options {
  uint32_t size;            /* sizeof(struct mic_record_options) */
  uint32_t measure;         /* enum mic_session_measure */
  uint64_t period;          /* ns of CPU time, or cycles, between samples */
  uint32_t stack_bytes;     /* of each stack that are copied: a multiple of 8, at most 65528 */
  uint32_t children;        /* 1: processes that the recorded ones fork are recorded too */
  uint32_t budget_permille; /* the recorder's own share of one CPU, in thousandths; 0: no bound */
  uint32_t keep_old;        /* 1: an older file of the output's name is kept as NAME.old */
  uint32_t symbols;         /* enum mic_session_symbols: when locations get their names */
  uint32_t keep_images;     /* 1: the parts of images that names and unwinding need are kept */
  uint64_t delay_ns;        /* sampling starts so long after the program did */
  uint64_t duration_ns;     /* and the recording ends so long after that; 0: at the end */
  uint64_t ring_bytes;      /* of each CPU's sample ring; 0: by rate and stack_bytes */
  uint64_t queue_bytes;     /* between collector and processor; 0: 64 MiB */
  const char *output;       /* the capture's path */
  const char *tape;         /* also keep what the kernel gave, to replay it; NULL: no */
  uint64_t whole_stacks;    /* 1: of stack copies the tape keeps all, not what unwinding needed */
  const char *const *argv;  /* the program and its arguments, NULL-terminated; NULL with pids */
  const uint32_t *pids;     /* processes to attach to */
  uint32_t pid_count;
  uint32_t setting_count;      /* settings kept in the capture: pairs of texts */
  const char *const *settings; /* key, value, key, value, ... */
};

struct mic_session_event {
  uint32_t kind; /* enum mic_session_event_kind */
  int32_t value;
};

/* Numbers for a live line and for what is printed in the end. */
struct mic_session_numbers {
  uint64_t elapsed_ns;       /* since sampling began */
  uint64_t samples;          /* processed */
  uint64_t lost_samples;     /* dropped by the kernel */
  uint64_t lost_records;     /* other records dropped by the kernel */
  uint64_t off_ns;           /* time with sampling off, all kinds */
  uint64_t off_queue_ns;     /* of that: the queue was full */
  uint64_t off_budget_ns;    /* of that: the budget */
  uint64_t bytes;            /* of the capture so far; after DONE its size */
  uint64_t startup_cpu_ns;   /* the recorder's own CPU time until the program ran */
  uint64_t running_cpu_ns;   /* while it ran */
  uint64_t finishing_cpu_ns; /* after it ended, until the capture was complete */
  uint64_t ring_bytes;       /* of a CPU's sample ring as the kernel allowed it */
  uint64_t ring_bytes_asked;
  uint64_t queue_peak_bytes; /* the most that waited in the queue */
  uint32_t pid;              /* of the started program */
  uint32_t threads;          /* seen so far */
};

struct mic_session;

int mic_session_new(const struct mic_record_options *options, struct mic_session **out,
                    struct mic_error *err);
/* Start the program or attach, and begin to sample. */
int mic_session_start(struct mic_session *session, struct mic_error *err);
/* The next event, or MIC_SESSION_TICK when timeout_ms passed without one. */
int mic_session_poll(struct mic_session *session, int32_t timeout_ms,
                     struct mic_session_event *event, struct mic_error *err);
/* Stop sampling, process what was recorded and write the capture. Polls go on to DONE or FAILED. */
void mic_session_stop(struct mic_session *session);
/* End the started program if it still runs: SIGTERM, and SIGKILL if that is not enough within five
 * seconds. *status is its exit status, 128+N if signal N ended it. */
int mic_session_end_program(struct mic_session *session, int32_t *status);
void mic_session_numbers(const struct mic_session *session, struct mic_session_numbers *out);
/* Why it failed, after MIC_SESSION_FAILED; code MIC_OK before and else. */
void mic_session_error(const struct mic_session *session, struct mic_error *out);
void mic_session_free(struct mic_session *session); /* NULL is fine */
/* ffi:end */

#endif
