/* Record what a process does to the files whose names begin with TRACED, in order, for `power_loss.py` to replay.

   Loaded with LD_PRELOAD. Each record is a header and the bytes written. The name of a file is told by the kernel at
   every call, so that a descriptor that is used again cannot mislead us. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct header {
  char action; /* C created, W written, T truncated, S synced, U unlinked, D directory synced */
  char name[31]; /* what follows TRACED in the name of the file */
  int64_t offset;
  int64_t length;
};

static int trace = -1;
static char traced[4096];
static char directory[4096];

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("TRACED"), *to = getenv("TRACE");
  if (path == NULL || to == NULL || strlen(path) >= sizeof traced) return;
  strcpy(traced, path);
  strcpy(directory, path);
  *strrchr(directory, '/') = '\0';
  trace = open(to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static const char *rest_of(const char *path) {
  size_t length = strlen(traced);
  return trace >= 0 && strncmp(path, traced, length) == 0 && strlen(path + length) < 31 ? path + length : NULL;
}

/* Return the path behind a descriptor. */
static const char *path_of(int file, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, 4095);
  if (length < 0) length = 0;
  path[length] = '\0';
  return path;
}

static void record(char action, const char *name, int64_t offset, int64_t length, const void *data) {
  struct header header = {action, {0}, offset, length};
  strncpy(header.name, name, sizeof header.name - 1);
  /* One write: threads must not come between a header and its bytes. Not by way of our own functions. */
  size_t size = data == NULL ? 0 : (size_t)length;
  char *whole = malloc(sizeof header + size);
  memcpy(whole, &header, sizeof header);
  if (size) memcpy(whole + sizeof header, data, size);
  if (syscall(SYS_write, trace, whole, sizeof header + size) != (ssize_t)(sizeof header + size)) abort();
  free(whole);
}

static void record_file(char action, int file, int64_t offset, int64_t length, const void *data) {
  char path[4096];
  if (trace < 0 || file == trace) return;
  const char *name = rest_of(path_of(file, path));
  if (name != NULL) record(action, name, offset, length, data);
  else if (action == 'S' && strcmp(path, directory) == 0) record('D', "", 0, 0, NULL);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t pwrite64(int file, const void *data, size_t size, off64_t offset) {
  ssize_t written = REAL(pwrite64)(file, data, size, offset);
  if (written > 0) record_file('W', file, offset, written, data);
  return written;
}

ssize_t pwrite(int file, const void *data, size_t size, off_t offset) { return pwrite64(file, data, size, offset); }

ssize_t write(int file, const void *data, size_t size) {
  off_t offset = trace >= 0 ? lseek(file, 0, SEEK_CUR) : 0;
  ssize_t written = REAL(write)(file, data, size);
  if (written > 0) record_file('W', file, offset, written, data);
  return written;
}

int ftruncate64(int file, off64_t size) {
  int result = REAL(ftruncate64)(file, size);
  if (result == 0) record_file('T', file, size, 0, NULL);
  return result;
}

int ftruncate(int file, off_t size) { return ftruncate64(file, size); }

int fsync(int file) {
  int result = REAL(fsync)(file);
  if (result == 0) record_file('S', file, 0, 0, NULL);
  return result;
}

int fdatasync(int file) {
  int result = REAL(fdatasync)(file);
  if (result == 0) record_file('S', file, 0, 0, NULL);
  return result;
}

int unlink(const char *path) {
  const char *name = rest_of(path);
  int result = REAL(unlink)(path);
  if (result == 0 && name != NULL) record('U', name, 0, 0, NULL);
  return result;
}

static int open_and_record(__typeof__(&open64) real, const char *path, int flags, va_list more) {
  int mode = flags & O_CREAT ? va_arg(more, int) : 0;
  const char *name = rest_of(path);
  int is_new = name != NULL && (flags & O_CREAT) && access(path, F_OK) != 0;
  int file = real(path, flags, mode);
  if (is_new && file >= 0) record('C', name, 0, 0, NULL);
  return file;
}

int open64(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  int file = open_and_record(REAL(open64), path, flags, more);
  va_end(more);
  return file;
}

int open(const char *path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  int file = open_and_record((__typeof__(&open64))REAL(open), path, flags, more);
  va_end(more);
  return file;
}
