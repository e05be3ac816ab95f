/* Faults inside of writes, for tests: preloaded into a process, this counts what changes files below one folder, and
 * at a chosen moment kills the process, or lets the disk be full from then on.
 *
 * It stands between all libraries and the system, so that what Arrow and SQLite write is reached, too, and dafh itself
 * has no hooks for tests. `faults.py` compiles and arms it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OFF, COUNT, KILL, FULL };
static volatile int mode = OFF;
static long calls, bytes, limit;
static char below[PATH_MAX];
static pid_t armed_in;

/* Watch changes below a folder from now on. kill: the process ends within call number `at`, a write after half of its
 * bytes. full: once `at` bytes were written, every write fails. */
void dafh_arm(int what, long at, const char *folder) {
    calls = bytes = 0;
    limit = at;
    snprintf(below, sizeof below, "%s/", folder);
    armed_in = getpid();
    mode = what;
}

long dafh_calls(void) { return calls; }
long dafh_bytes(void) { return bytes; }

static int under(const char *path) { return strncmp(path, below, strlen(below)) == 0; }

static int watched_path(int folder, const char *path) {
    char full[2 * PATH_MAX], base[PATH_MAX], link[64];
    if (mode == OFF || !path) return 0;
    if (path[0] == '/') return under(path);
    if (folder == AT_FDCWD) {
        if (!getcwd(base, sizeof base)) return 0;
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
        ssize_t n = readlink(link, base, sizeof base - 1);
        if (n < 0) return 0;
        base[n] = 0;
    }
    snprintf(full, sizeof full, "%s/%s", base, path);
    return under(full);
}

static int watched(int fd) {
    char link[64], path[PATH_MAX];
    if (mode == OFF) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return under(path);
}

/* Whether this call is the one to be killed in. */
static int is_last(void) {
    long number = __sync_add_and_fetch(&calls, 1);
    return mode == KILL && number == limit;
}

static void end(void) {
    kill(armed_in, SIGKILL);
    for (;;) pause();
}

static void before(void) {
    if (is_last()) end();
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* How many of `n` bytes may still be written; -1 and ENOSPC if none. */
static ssize_t room(size_t n) {
    if (mode != FULL) {
        __sync_add_and_fetch(&bytes, (long)n);
        return (ssize_t)n;
    }
    long left = limit - bytes;
    if (left <= 0 && n) {
        errno = ENOSPC;
        return -1;
    }
    ssize_t allowed = (long)n < left ? (ssize_t)n : (ssize_t)left;
    __sync_add_and_fetch(&bytes, allowed);
    return allowed;
}

#define WRITES(call) \
    if (!watched(fd)) return real(fd, data, n call); \
    if (is_last()) { \
        real(fd, data, n / 2 call); \
        end(); \
    } \
    ssize_t allowed = room(n); \
    return allowed < 0 ? -1 : real(fd, data, (size_t)allowed call)

#define AT , offset
ssize_t write(int fd, const void *data, size_t n) { REAL(write); WRITES(); }
ssize_t pwrite(int fd, const void *data, size_t n, off_t offset) { REAL(pwrite); WRITES(AT); }
ssize_t pwrite64(int fd, const void *data, size_t n, off64_t offset) { REAL(pwrite64); WRITES(AT); }

ssize_t writev(int fd, const struct iovec *parts, int n) {
    REAL(writev);
    if (!watched(fd)) return real(fd, parts, n);
    if (is_last()) {
        real(fd, parts, n / 2);
        end();
    }
    size_t total = 0;
    for (int i = 0; i < n; i++) total += parts[i].iov_len;
    ssize_t allowed = room(total);
    if (allowed < 0 || (size_t)allowed < total) {
        errno = ENOSPC;
        return -1;
    }
    return real(fd, parts, n);
}

int fsync(int fd) { REAL(fsync); if (watched(fd)) before(); return real(fd); }
int fdatasync(int fd) { REAL(fdatasync); if (watched(fd)) before(); return real(fd); }
int ftruncate(int fd, off_t n) { REAL(ftruncate); if (watched(fd)) before(); return real(fd, n); }
int ftruncate64(int fd, off64_t n) { REAL(ftruncate64); if (watched(fd)) before(); return real(fd, n); }

int rename(const char *from, const char *to) {
    REAL(rename);
    if (watched_path(AT_FDCWD, to)) before();
    return real(from, to);
}
int renameat(int a, const char *from, int b, const char *to) {
    REAL(renameat);
    if (watched_path(b, to)) before();
    return real(a, from, b, to);
}
int unlink(const char *path) { REAL(unlink); if (watched_path(AT_FDCWD, path)) before(); return real(path); }
int unlinkat(int folder, const char *path, int flags) {
    REAL(unlinkat);
    if (watched_path(folder, path)) before();
    return real(folder, path, flags);
}
int mkdir(const char *path, mode_t rights) {
    REAL(mkdir);
    if (watched_path(AT_FDCWD, path)) before();
    return real(path, rights);
}

/* Files that are made count as changes; after the call as well as before it, since an empty file is one, too. */
#define OPENS(name, folder, path, ...) \
    REAL(name); \
    int rights = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list more; \
        va_start(more, flags); \
        rights = va_arg(more, int); \
        va_end(more); \
    } \
    int counts = (flags & (O_CREAT | O_TRUNC)) && watched_path(folder, path); \
    int fd = real(__VA_ARGS__, flags, rights); \
    if (counts && fd >= 0) before(); \
    return fd

int open(const char *path, int flags, ...) { OPENS(open, AT_FDCWD, path, path); }
int open64(const char *path, int flags, ...) { OPENS(open64, AT_FDCWD, path, path); }
int openat(int folder, const char *path, int flags, ...) { OPENS(openat, folder, path, folder, path); }
int openat64(int folder, const char *path, int flags, ...) { OPENS(openat64, folder, path, folder, path); }
