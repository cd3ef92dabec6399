/* line.c - read lines with libedit, pulled. */
#include "script/line.h"

#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/error.h"
#include "script/host.h"

enum { HISTORY_LINES = 2000 /* some hundred sessions; a file of under 200 KiB */ };

struct mic_line {
  EditLine *edit;
  History *history;
  char *history_path; /* NULL: not kept */
  char *prompt;
  char *start; /* what the next read begins with, or NULL */
  uint32_t back;
  char *text;
  uint32_t size, cursor;
  enum mic_line_event event; /* how the read ends */
};

static char *show_prompt(EditLine *edit) {
  struct mic_line *line = NULL;
  el_get(edit, EL_CLIENTDATA, &line);
  return line->prompt;
}

/* Bound to Tab: ends the read as a newline would, the line as it is. */
static unsigned char want_completion(EditLine *edit, int key) {
  (void)key;
  struct mic_line *line = NULL;
  el_get(edit, EL_CLIENTDATA, &line);
  line->event = MIC_LINE_COMPLETE;
  return CC_NEWLINE;
}

/* Bound to Ctrl-C, which is a key while a line is edited: libedit reads on after a first EINTR. */
static unsigned char drop_line(EditLine *edit, int key) {
  (void)key;
  struct mic_line *line = NULL;
  el_get(edit, EL_CLIENTDATA, &line);
  line->event = MIC_LINE_INTERRUPTED;
  fputs("^C\n", stdout);
  return CC_NEWLINE;
}

/* Bound to Ctrl-Z. */
static unsigned char stop_process(EditLine *edit, int key) {
  (void)key;
  el_set(edit, EL_PREP_TERM, 0);
  raise(SIGTSTP);
  el_set(edit, EL_PREP_TERM, 1);
  return CC_REDISPLAY;
}

static void bind_keys(EditLine *edit) {
  el_set(edit, EL_SETTY, "-d", "-isig", NULL);
  el_set(edit, EL_ADDFN, "want-completion", "Complete", want_completion);
  el_set(edit, EL_ADDFN, "drop-line", "Begin a new line", drop_line);
  el_set(edit, EL_ADDFN, "stop-process", "Stop the process", stop_process);
  el_set(edit, EL_BIND, "^I", "want-completion", NULL);
  el_set(edit, EL_BIND, "^C", "drop-line", NULL);
  el_set(edit, EL_BIND, "^Z", "stop-process", NULL);
  el_set(edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
}

/* libedit reads characters by the locale; names in captures are UTF-8. */
static void take_locale(void) {
  setlocale(LC_CTYPE, "");
  if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0) setlocale(LC_CTYPE, "C.UTF-8");
}

static void load_history(struct mic_line *line, const char *path) {
  HistEvent event;
  line->history = history_init();
  if (!line->history) return;
  history(line->history, &event, H_SETSIZE, HISTORY_LINES);
  history(line->history, &event, H_SETUNIQUE, 1);
  if (path) {
    line->history_path = mic_strndup(path, strlen(path));
    history(line->history, &event, H_LOAD, path);
  }
  el_set(line->edit, EL_HIST, history, line->history);
}

MIC_EXPORT int32_t mic_line_open(const char *history_path, struct mic_line **out) {
  *out = NULL;
  take_locale();
  errno = 0;
  EditLine *edit = el_init("microscope", stdin, stdout, stderr);
  if (!edit) return errno ? errno : ENOTTY;
  struct mic_line *line = mic_alloc(sizeof *line);
  line->edit = edit;
  line->prompt = mic_strndup("", 0);
  el_set(edit, EL_CLIENTDATA, line);
  el_set(edit, EL_PROMPT, show_prompt);
  el_set(edit, EL_EDITOR, "emacs");
  el_set(edit, EL_SIGNAL, 0);
  bind_keys(edit);
  load_history(line, history_path);
  *out = line;
  return 0;
}

static void keep_text(struct mic_line *line, const char *bytes, uint32_t size, uint32_t cursor) {
  free(line->text);
  line->text = mic_strndup(bytes, size);
  line->size = size;
  line->cursor = cursor < size ? cursor : size;
}

/* Typed for the user: the text, then as many steps to the left as `back` says. */
static void type_start(struct mic_line *line) {
  if (!line->start) return;
  size_t size = strlen(line->start);
  char *keys = mic_alloc(size + line->back + 1);
  memcpy(keys, line->start, size);
  memset(keys + size, 'B' - '@', line->back); /* Ctrl-B */
  el_push(line->edit, keys);
  free(keys);
  free(line->start);
  line->start = NULL;
}

MIC_EXPORT int32_t mic_line_read(struct mic_line *line, const char *prompt) {
  free(line->prompt);
  line->prompt = mic_strndup(prompt, strlen(prompt));
  line->event = MIC_LINE_TEXT;
  type_start(line);
  /* libedit takes the terminal only at the first key: what is typed as the prompt appears would be
   * echoed, and Ctrl-C would be a signal. */
  el_set(line->edit, EL_PREP_TERM, 1);
  int count = 0;
  const char *got = el_gets(line->edit, &count);
  /* A key of ours ends a read also where nothing was typed. */
  if (line->event != MIC_LINE_TEXT) {
    uint32_t typed = got && count > 0 ? (uint32_t)count : 0;
    const LineInfo *info = el_line(line->edit);
    keep_text(line, typed ? got : "", typed, (uint32_t)(info->cursor - info->buffer));
    return (int32_t)line->event;
  }
  if (!got || count <= 0) {
    int code = count < 0 && errno == EINTR ? MIC_LINE_INTERRUPTED : MIC_LINE_END;
    keep_text(line, "", 0, 0);
    el_reset(line->edit);
    return mic_host_interrupted() ? MIC_LINE_INTERRUPTED : code;
  }
  uint32_t size = (uint32_t)count;
  const LineInfo *info = el_line(line->edit);
  uint32_t cursor = (uint32_t)(info->cursor - info->buffer);
  bool whole = got[size - 1] == '\n';
  keep_text(line, got, whole ? size - 1 : size, cursor);
  return MIC_LINE_TEXT;
}

MIC_EXPORT const char *mic_line_text(const struct mic_line *line, uint32_t *size,
                                     uint32_t *cursor) {
  *size = line->size;
  if (cursor) *cursor = line->cursor;
  return line->text ? line->text : "";
}

MIC_EXPORT void mic_line_insert(struct mic_line *line, const char *text, uint32_t back) {
  free(line->start);
  line->start = mic_strndup(text, strlen(text));
  line->back = back;
}

MIC_EXPORT void mic_line_remember(struct mic_line *line, const char *text) {
  HistEvent event;
  if (!line->history || !*text) return;
  history(line->history, &event, H_ENTER, text);
  if (!line->history_path) return;
  mode_t before = umask(0177);
  history(line->history, &event, H_SAVE, line->history_path);
  umask(before);
}

MIC_EXPORT void mic_line_close(struct mic_line *line) {
  if (!line) return;
  el_end(line->edit);
  if (line->history) history_end(line->history);
  free(line->history_path);
  free(line->prompt);
  free(line->start);
  free(line->text);
  free(line);
}
