/*
 * main.c - feed files to a fuzzer's entry point, one run a file.
 *
 * Each argument is a file or a folder of files: the corpus that is kept with the fuzzer.
 * Prints how many were replayed; a crash or a sanitizer report ends the program.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    return 0;
  }
  uint8_t *data = NULL;
  size_t size = 0, room = 0, got;
  do {
    if (size == room) data = realloc(data, room = room ? room * 2 : 65536);
    if (!data) abort();
    got = fread(data + size, 1, room - size, file);
    size += got;
  } while (got > 0);
  fclose(file);
  /* An exact-size copy, so that a read past the end is a sanitizer report. */
  uint8_t *exact = realloc(data, size ? size : 1);
  LLVMFuzzerTestOneInput(exact ? exact : data, size);
  free(exact ? exact : data);
  return 1;
}

static int replay(const char *path) {
  struct stat st;
  if (stat(path, &st) != 0) {
    perror(path);
    return 0;
  }
  if (!S_ISDIR(st.st_mode)) return replay_file(path);
  struct dirent **entries;
  int count = scandir(path, &entries, NULL, alphasort), done = 0;
  for (int i = 0; i < count; i++) {
    char name[4096];
    if (entries[i]->d_name[0] != '.' &&
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name) < (int)sizeof name)
      done += replay(name);
    free(entries[i]);
  }
  if (count >= 0) free(entries);
  return done;
}

int main(int argc, char **argv) {
  int done = 0;
  for (int i = 1; i < argc; i++) done += replay(argv[i]);
  printf("replayed %d inputs\n", done);
  return done > 0 ? 0 : 1;
}
