/* Makes one call of the system fail: preloaded into a program by tests/faults/check.
 *
 *   OXB_FAULT=KIND         calls of that kind are counted
 *   OXB_FAULT_COUNT=FILE   gets their number when the program ends
 *   OXB_FAULT_OUT=FILE     what the program writes to its standard output and error
 *
 * The program stops before its main and reads numbers, one on a line, from its standard input. For each of them a copy of
 * the process goes on, in which the call of that number fails, as it would without memory, space or a disk (0: none does).
 * How it ended is told on standard output, as wait() does. A copy is made before there are threads, and saves the loading.
 *
 * Kinds: memory (malloc and its kin), open, read, write, map, sync, rename, thread. And clock: every reading of a clock
 * is off by up to a day, forwards and backwards; N is ignored. Calls of the C library to itself are not seen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum kind { MEMORY, OPEN, READ, WRITE, MAP, SYNC, RENAME, THREAD, CLOCK, KINDS };
static const char* const names[KINDS] = {"memory", "open",   "read",   "write", "map",
                                         "sync",   "rename", "thread", "clock"};

static int chosen = -1;
static long which = 0;
static atomic_long seen = 0;

enum { SECONDS = 60 };

/* The next number; -1: there is none. */
static long next_request(void) {
  char line[32];
  size_t length = 0;
  while (length + 1 < sizeof(line) && read(STDIN_FILENO, line + length, 1) == 1) {
    if (line[length] == '\n') {
      line[length] = '\0';
      return atol(line);
    }
    ++length;
  }
  return -1;
}

static void answer(int status) {
  char line[32];
  const int length = snprintf(line, sizeof(line), "%d\n", status);
  if (write(STDOUT_FILENO, line, (size_t)length) != length) _exit(1);
}

/* In the copy: what the parent shares with others is given up. A program that hangs ends by SIGALRM. */
static void prepare_copy(void) {
  const char* path = getenv("OXB_FAULT_OUT");
  const int in = open("/dev/null", O_RDONLY);
  const int out = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0) {
    _exit(126);
  }
  close(in);
  close(out);
  alarm(SECONDS);
}

/* Before main, after the loader: what happens earlier is not the program's. */
__attribute__((constructor)) static void begin(void) {
  const char* text = getenv("OXB_FAULT");
  if (text == NULL) return;
  int kind = -1;
  for (int i = 0; i < KINDS; ++i) {
    if (strcmp(text, names[i]) == 0) kind = i;
  }
  if (kind < 0) _exit(126);
  for (long n = next_request(); n >= 0; n = next_request()) {
    const pid_t copy = fork();
    if (copy < 0) _exit(126);
    if (copy == 0) {
      prepare_copy();
      which = n;
      chosen = kind;
      return;
    }
    int status = 0;
    while (waitpid(copy, &status, 0) < 0 && errno == EINTR) continue;
    answer(status);
  }
  _exit(0);
}

__attribute__((destructor)) static void end(void) {
  const char* path = getenv("OXB_FAULT_COUNT");
  const int kind = chosen;
  chosen = -1;
  if (path == NULL || kind < 0) return;
  FILE* file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%ld\n", atomic_load(&seen));
  fclose(file);
}

static int fails(enum kind kind, int code) {
  if (chosen != (int)kind) return 0;
  if (atomic_fetch_add(&seen, 1) + 1 != which) return 0;
  errno = code;
  return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t bytes) { return fails(MEMORY, ENOMEM) ? NULL : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) {
  return fails(MEMORY, ENOMEM) ? NULL : __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  return fails(MEMORY, ENOMEM) ? NULL : __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return fails(MEMORY, ENOMEM) ? NULL : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (fails(MEMORY, ENOMEM)) return ENOMEM;
  *out = __libc_memalign(alignment, bytes);
  return *out == NULL ? ENOMEM : 0;
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return fails(OPEN, EMFILE) ? -1 : REAL(open)(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return fails(OPEN, EMFILE) ? -1 : REAL(open64)(path, flags, mode);
}
FILE* fopen(const char* path, const char* mode) {
  return fails(OPEN, EMFILE) ? NULL : REAL(fopen)(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  return fails(OPEN, EMFILE) ? NULL : REAL(fopen64)(path, mode);
}

ssize_t read(int fd, void* data, size_t bytes) {
  return fails(READ, EIO) ? -1 : REAL(read)(fd, data, bytes);
}
ssize_t pread(int fd, void* data, size_t bytes, off_t at) {
  return fails(READ, EIO) ? -1 : REAL(pread)(fd, data, bytes, at);
}
ssize_t pread64(int fd, void* data, size_t bytes, off64_t at) {
  return fails(READ, EIO) ? -1 : REAL(pread64)(fd, data, bytes, at);
}
int fstat(int fd, struct stat* status) { return fails(READ, EIO) ? -1 : REAL(fstat)(fd, status); }

ssize_t write(int fd, const void* data, size_t bytes) {
  return fails(WRITE, ENOSPC) ? -1 : REAL(write)(fd, data, bytes);
}
ssize_t pwrite(int fd, const void* data, size_t bytes, off_t at) {
  return fails(WRITE, ENOSPC) ? -1 : REAL(pwrite)(fd, data, bytes, at);
}
ssize_t pwrite64(int fd, const void* data, size_t bytes, off64_t at) {
  return fails(WRITE, ENOSPC) ? -1 : REAL(pwrite64)(fd, data, bytes, at);
}
int ftruncate(int fd, off_t bytes) {
  return fails(WRITE, ENOSPC) ? -1 : REAL(ftruncate)(fd, bytes);
}
int ftruncate64(int fd, off64_t bytes) {
  return fails(WRITE, ENOSPC) ? -1 : REAL(ftruncate64)(fd, bytes);
}

void* mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t at) {
  return fails(MAP, ENOMEM) ? MAP_FAILED : REAL(mmap)(address, bytes, protection, flags, fd, at);
}
void* mmap64(void* address, size_t bytes, int protection, int flags, int fd, off64_t at) {
  return fails(MAP, ENOMEM) ? MAP_FAILED : REAL(mmap64)(address, bytes, protection, flags, fd, at);
}

int fsync(int fd) { return fails(SYNC, EIO) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fails(SYNC, EIO) ? -1 : REAL(fdatasync)(fd); }

int rename(const char* from, const char* to) {
  return fails(RENAME, EIO) ? -1 : REAL(rename)(from, to);
}
int linkat(int from_fd, const char* from, int to_fd, const char* to, int flags) {
  return fails(RENAME, EIO) ? -1 : REAL(linkat)(from_fd, from, to_fd, to, flags);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  if (fails(THREAD, EAGAIN)) return EAGAIN;
  return REAL(pthread_create)(thread, attributes, run, argument);
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int result = REAL(clock_gettime)(clock, now);
  if (chosen == CLOCK && result == 0) {
    /* Any number that differs from call to call. */
    const long call = atomic_fetch_add(&seen, 1);
    now->tv_sec += call * 7919 % 172800 - 86400;
    if (now->tv_sec < 0) now->tv_sec = 0;
  }
  return result;
}
