/* A library for LD_PRELOAD that intercepts a process's calls on the files of one folder: it numbers
 * and logs them, and makes one of them fail.
 *
 *   FAULT_FOLDER  the absolute path of the folder; calls on files outside it are ignored
 *   FAULT_LOG     a file that receives one line per call, separated by tabs:
 *                 number, name, result, errno, fault (1: injected failure), descriptor,
 *                 flags, offset, length, path, second path (of a rename; the text of a symlink)
 *   FAULT_DATA    a file that receives the bytes of all writes, concatenated
 *   FAULT_AT      the number of the call that fails, counted from 1
 *   FAULT_KIND    how it fails: an errno as a number; "short" (half of a write is written, other
 *                 calls succeed); "half" (the same, and the next write fails with ENOSPC); "kill"
 *                 (SIGKILL, after half of a write); "exit" (the same, with _exit)
 *   FAULT_LASTS   if set, all later calls fail as well, as on a removed or full disk
 *   FAULT_SIGNAL  the number of a signal that the process sends to itself once
 *   FAULT_STEP    the signal is sent when this step or a later one has been written to
 *                 metrics.jsonl, so that the moment does not depend on the machine
 *
 * A close that fails still closes the file, as on Linux. Reads are not counted; opening for reading
 * is.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kPath = 4096, kDescriptors = 1024 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const char* folder;
static size_t folder_length;
static long count, fault_at, signal_step;
static const char* kind = "";
static int fault_errno, lasts, now_full, signal_number, log_file = -1, data_file = -1;
static char* paths[kDescriptors]; /* paths of the open descriptors; null: not watched */

typedef struct {
  const char* name;
  long number;
  int fault; /* 0: no failure */
  int descriptor, flags;
  long offset, length;
  char path[kPath], second[kPath];
} Call;

static int open_log(const char* variable) {
  const char* const name = getenv(variable);
  if (!name) return -1;
  const int low =
      (int)syscall(SYS_openat, AT_FDCWD, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const int high = fcntl(low, F_DUPFD_CLOEXEC, 800); /* leaves low descriptors to the program */
  syscall(SYS_close, low);
  return high;
}

__attribute__((constructor)) static void start(void) {
  folder = getenv("FAULT_FOLDER");
  if (!folder) return;
  folder_length = strlen(folder);
  if (getenv("FAULT_AT")) fault_at = atol(getenv("FAULT_AT"));
  if (getenv("FAULT_KIND")) kind = getenv("FAULT_KIND");
  fault_errno = atoi(kind);
  lasts = getenv("FAULT_LASTS") != NULL;
  if (getenv("FAULT_SIGNAL")) signal_number = atoi(getenv("FAULT_SIGNAL"));
  if (getenv("FAULT_STEP")) signal_step = atol(getenv("FAULT_STEP"));
  log_file = open_log("FAULT_LOG");
  data_file = open_log("FAULT_DATA");
}

/* dlsym returns a data pointer; a union converts it to a function pointer in valid C. */
#define REAL(name, ...)                                    \
  ({                                                       \
    static union {                                         \
      void* found;                                         \
      __typeof__(&name) call;                              \
    } real;                                                \
    if (!real.found) real.found = dlsym(RTLD_NEXT, #name); \
    real.call(__VA_ARGS__);                                \
  })

/* ---- watched files ------------------------------------------------------------------------ */

static const char* path_of(int descriptor) {
  return descriptor >= 0 && descriptor < kDescriptors ? paths[descriptor] : NULL;
}

static void absolute(int at, const char* path, char* into) {
  char base[kPath] = "";
  if (path[0] == '/') {
    snprintf(into, kPath, "%s", path);
    return;
  }
  if (at == AT_FDCWD) {
    if (!getcwd(base, sizeof base)) base[0] = 0;
  } else if (path_of(at)) {
    snprintf(base, sizeof base, "%s", path_of(at));
  }
  if (snprintf(into, kPath, "%s/%s", base, path) >= kPath) into[0] = 0;
}

static int in_folder(const char* path) {
  return folder && strncmp(path, folder, folder_length) == 0 &&
         (path[folder_length] == '/' || path[folder_length] == 0);
}

/* ---- one call: number, fail, log ------------------------------------------------------------ */

/* Numbers a call and decides whether it must fail. The lock is held until end(). */
static void number(Call* call) {
  pthread_mutex_lock(&mutex);
  call->number = ++count;
  call->fault = fault_at > 0 && (count == fault_at || (lasts && count > fault_at));
}

static void die(void) {
  if (strcmp(kind, "exit") == 0) _exit(99);
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

static int ends_process(const Call* call) {
  return call->fault && (strcmp(kind, "kill") == 0 || strcmp(kind, "exit") == 0);
}

static void log_call(const Call* call, long result, int error) {
  char line[3 * kPath];
  const int length =
      snprintf(line, sizeof line, "%ld\t%s\t%ld\t%d\t%d\t%d\t%d\t%ld\t%ld\t%s\t%s\n", call->number,
               call->name, result, result < 0 ? error : 0, call->fault, call->descriptor,
               call->flags, call->offset, call->length, call->path, call->second);
  if (log_file >= 0 && length > 0) syscall(SYS_write, log_file, line, (size_t)length);
}

/* Called before a call other than a write: ends the process if requested; true if the call must
 * fail. */
static int fails(Call* call) {
  number(call);
  if (ends_process(call)) {
    log_call(call, -1, 0);
    die();
  }
  if (fault_errno == 0) call->fault = 0; /* "short" and "half" apply to writes only */
  return call->fault;
}

static long end(const Call* call, long result) {
  const int error = errno;
  log_call(call, result, error);
  pthread_mutex_unlock(&mutex);
  errno = error;
  return result;
}

static long failed(const Call* call) {
  errno = fault_errno;
  return end(call, -1);
}

/* ---- descriptors ---------------------------------------------------------------------------- */

static void remember(int descriptor, const char* path) {
  if (descriptor < 0 || descriptor >= kDescriptors) return;
  free(paths[descriptor]);
  paths[descriptor] = path ? strdup(path) : NULL;
}

static int open_at(int at, const char* path, int flags, mode_t mode) {
  Call call = {.name = "open", .descriptor = -1};
  call.flags = flags;
  absolute(at, path, call.path);
  if (!in_folder(call.path)) {
    const int descriptor = (int)syscall(SYS_openat, at, path, flags, mode);
    remember(descriptor, NULL);
    return descriptor;
  }
  if (fails(&call)) return (int)failed(&call);
  call.descriptor = (int)syscall(SYS_openat, at, path, flags, mode);
  remember(call.descriptor, call.path);
  return (int)end(&call, call.descriptor);
}

#define OPEN(name, parameters, at)                                  \
  int name parameters {                                             \
    va_list rest;                                                   \
    va_start(rest, flags);                                          \
    const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                   \
    return open_at(at, path, flags, mode);                          \
  }
OPEN(open, (const char* path, int flags, ...), AT_FDCWD)
OPEN(open64, (const char* path, int flags, ...), AT_FDCWD)
OPEN(openat, (int at, const char* path, int flags, ...), at)
OPEN(openat64, (int at, const char* path, int flags, ...), at)

#define CREAT(name)                                                     \
  int name(const char* path, mode_t mode) {                             \
    return open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode); \
  }
CREAT(creat)
CREAT(creat64)

static int flags_of(const char* mode) {
  const int plus = strchr(mode, '+') != NULL;
  if (mode[0] == 'r') return plus ? O_RDWR : O_RDONLY;
  return (plus ? O_RDWR : O_WRONLY) | O_CREAT | (mode[0] == 'a' ? O_APPEND : O_TRUNC);
}

/* The C++ library opens files with fopen and then calls write() on the descriptor. */
#define FOPEN(function)                                      \
  FILE* function(const char* path, const char* mode) {       \
    Call call = {.name = "open", .descriptor = -1};          \
    call.flags = flags_of(mode);                             \
    absolute(AT_FDCWD, path, call.path);                     \
    if (!in_folder(call.path)) return REAL(function, path, mode); \
    if (fails(&call)) {                                      \
      failed(&call);                                         \
      return NULL;                                           \
    }                                                        \
    FILE* const file = REAL(function, path, mode);           \
    call.descriptor = file ? fileno(file) : -1;              \
    remember(call.descriptor, call.path);                    \
    end(&call, call.descriptor);                             \
    return file;                                             \
  }
FOPEN(fopen)
FOPEN(fopen64)

static Call on_descriptor(const char* name, int descriptor) {
  Call call = {.name = name, .descriptor = -1};
  call.descriptor = descriptor;
  snprintf(call.path, kPath, "%s", path_of(descriptor));
  return call;
}

int close(int descriptor) {
  if (!path_of(descriptor)) return (int)syscall(SYS_close, descriptor);
  Call call = on_descriptor("close", descriptor);
  const int fail = fails(&call);
  remember(descriptor, NULL);
  const int result = (int)syscall(SYS_close, descriptor);
  return (int)(fail ? failed(&call) : end(&call, result));
}

int fclose(FILE* file) {
  const int descriptor = fileno(file);
  if (!path_of(descriptor)) return REAL(fclose, file);
  Call call = on_descriptor("close", descriptor);
  const int fail = fails(&call);
  remember(descriptor, NULL);
  const int result = REAL(fclose, file);
  return (int)(fail ? failed(&call) : end(&call, result));
}

/* Closing a directory listing is not counted, but frees the descriptor. */
int closedir(DIR* entries) {
  remember(dirfd(entries), NULL);
  return REAL(closedir, entries);
}

#define SYNC(function)                                           \
  int function(int descriptor) {                                 \
    if (!path_of(descriptor)) return REAL(function, descriptor); \
    Call call = on_descriptor("fsync", descriptor);              \
    if (fails(&call)) return (int)failed(&call);                 \
    return (int)end(&call, REAL(function, descriptor));          \
  }
SYNC(fsync)
SYNC(fdatasync)

#define TRUNCATE(function)                                               \
  int function(int descriptor, off_t length) {                           \
    if (!path_of(descriptor)) return REAL(function, descriptor, length); \
    Call call = on_descriptor("ftruncate", descriptor);                  \
    call.length = length;                                                \
    if (fails(&call)) return (int)failed(&call);                         \
    return (int)end(&call, REAL(function, descriptor, length));          \
  }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

/* ---- writes --------------------------------------------------------------------------------- */

/* offset < 0 means the current position. */
static ssize_t put(int descriptor, const char* bytes, size_t length, long offset) {
  return offset < 0 ? syscall(SYS_write, descriptor, bytes, length)
                    : syscall(SYS_pwrite64, descriptor, bytes, length, offset);
}

/* Called after a write: sends the signal if it wrote the record of FAULT_STEP or a later step. */
static void signal_at_step(const Call* call, const char* bytes, size_t length) {
  const char* const name = strrchr(call->path, '/');
  char record[kPath] = "";
  if (signal_number == 0 || !name || strcmp(name, "/metrics.jsonl") != 0) return;
  memcpy(record, bytes, length < kPath ? length : kPath - 1);
  const char* const step = strstr(record, "\"step\":");
  if (!step || atol(step + strlen("\"step\":")) < signal_step) return;
  const int error = errno, number = signal_number;
  signal_number = 0;
  raise(number);
  errno = error;
}

static ssize_t write_ours(int descriptor, const char* bytes, size_t length, long offset) {
  Call call = on_descriptor("write", descriptor);
  number(&call);
  if (now_full || (call.fault && fault_errno != 0)) {
    if (now_full) fault_errno = ENOSPC;
    call.fault = 1;
    now_full = 0;
    call.length = (long)length;
    return failed(&call);
  }
  now_full = call.fault && strcmp(kind, "half") == 0;
  if (call.fault && length > 1) length = length / 2;
  call.length = (long)length;
  const ssize_t result = put(descriptor, bytes, length, offset);
  call.offset = offset >= 0 ? offset : lseek(descriptor, 0, SEEK_CUR) - (result > 0 ? result : 0);
  if (data_file >= 0 && result > 0) syscall(SYS_write, data_file, bytes, (size_t)result);
  if (!ends_process(&call)) {
    end(&call, result);
    signal_at_step(&call, bytes, length);
    return result;
  }
  log_call(&call, result, errno);
  die();
  return -1;
}

ssize_t write(int descriptor, const void* bytes, size_t length) {
  if (!path_of(descriptor)) return syscall(SYS_write, descriptor, bytes, length);
  return write_ours(descriptor, bytes, length, -1);
}

#define PWRITE(name)                                                                \
  ssize_t name(int descriptor, const void* bytes, size_t length, off_t offset) {    \
    if (!path_of(descriptor)) return REAL(name, descriptor, bytes, length, offset); \
    return write_ours(descriptor, bytes, length, offset);                           \
  }
PWRITE(pwrite)
PWRITE(pwrite64)

ssize_t writev(int descriptor, const struct iovec* parts, int parts_count) {
  if (!path_of(descriptor)) return REAL(writev, descriptor, parts, parts_count);
  size_t length = 0;
  for (int i = 0; i < parts_count; ++i) length += parts[i].iov_len;
  char* const bytes = malloc(length + 1);
  length = 0;
  for (int i = 0; i < parts_count; length += parts[i++].iov_len)
    memcpy(bytes + length, parts[i].iov_base, parts[i].iov_len);
  const ssize_t result = write_ours(descriptor, bytes, length, -1);
  free(bytes);
  return result;
}

/* ---- names ---------------------------------------------------------------------------------- */

static int rename_at(int from_at, const char* from, int to_at, const char* to, unsigned flags) {
  Call call = {.name = flags & RENAME_EXCHANGE ? "exchange" : "rename", .descriptor = -1};
  call.flags = (int)flags;
  absolute(from_at, from, call.path);
  absolute(to_at, to, call.second);
  const int watched = in_folder(call.path) || in_folder(call.second);
  if (watched && fails(&call)) return (int)failed(&call);
  const long result = syscall(SYS_renameat2, from_at, from, to_at, to, flags);
  return (int)(watched ? end(&call, result) : result);
}

int rename(const char* from, const char* to) { return rename_at(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_at, const char* from, int to_at, const char* to) {
  return rename_at(from_at, from, to_at, to, 0);
}
int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) {
  return rename_at(from_at, from, to_at, to, flags);
}

int mkdirat(int at, const char* path, mode_t mode) {
  Call call = {.name = "mkdir", .descriptor = -1};
  absolute(at, path, call.path);
  const int watched = in_folder(call.path);
  if (watched && fails(&call)) return (int)failed(&call);
  const long result = syscall(SYS_mkdirat, at, path, mode);
  return (int)(watched ? end(&call, result) : result);
}
int mkdir(const char* path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int unlinkat(int at, const char* path, int flags) {
  Call call = {.name = flags & AT_REMOVEDIR ? "rmdir" : "unlink", .descriptor = -1};
  absolute(at, path, call.path);
  const int watched = in_folder(call.path);
  if (watched && fails(&call)) return (int)failed(&call);
  const long result = syscall(SYS_unlinkat, at, path, flags);
  return (int)(watched ? end(&call, result) : result);
}
int unlink(const char* path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char* path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

/* The C library's remove() would bypass this unlink and rmdir. */
int remove(const char* path) {
  const int result = unlink(path);
  return result < 0 && errno == EISDIR ? rmdir(path) : result;
}

int symlinkat(const char* target, int at, const char* path) {
  Call call = {.name = "symlink", .descriptor = -1};
  absolute(at, path, call.path);
  const int watched = in_folder(call.path);
  snprintf(call.second, kPath, "%s", target);
  if (watched && fails(&call)) return (int)failed(&call);
  const long result = syscall(SYS_symlinkat, target, at, path);
  return (int)(watched ? end(&call, result) : result);
}
int symlink(const char* target, const char* path) { return symlinkat(target, AT_FDCWD, path); }
