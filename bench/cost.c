/*
 * cost.c - run a command and write what it cost: cost FILE COMMAND [ARGS...].
 *
 * FILE gets "CPU_NS WALL_NS PEAK_RSS_KIB STATUS": CPU time in user and kernel of the command and
 * of those children of it that it waited for (wait4(2)).
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t ns_of(struct timeval t) {
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  uint64_t start_ns = now_ns();
  pid_t pid = fork();
  if (pid < 0) return 1;
  if (pid == 0) {
    execvp(argv[2], argv + 2);
    _exit(127);
  }
  int status;
  struct rusage used;
  while (wait4(pid, &status, 0, &used) != pid)
    if (errno != EINTR) return 1;
  uint64_t wall_ns = now_ns() - start_ns;
  int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  FILE *out = fopen(argv[1], "w");
  if (!out) return 1;
  fprintf(out, "%llu %llu %ld %d\n",
          (unsigned long long)(ns_of(used.ru_utime) + ns_of(used.ru_stime)),
          (unsigned long long)wall_ns, used.ru_maxrss, code);
  return fclose(out) == 0 ? code : 1;
}
