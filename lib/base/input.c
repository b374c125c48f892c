/* SPDX-License-Identifier: Apache-2.0 */
/* input.c - see input.h. */
#include "config.h"

#include "base/input.h"

#include "base/ahead.h"
#include "base/gz.h"
#include "base/mem.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RAW_BYTES ((size_t)1 << 17)
#define HEAD_BYTES ((size_t)1 << 16)

/* Inputs that inflate on a thread of their own, at most. */
enum { THREADS_MAX = 16 };

static atomic_int threads; /* how many do */

struct ep_input {
    char *name;
    char *path; /* NULL for standard input */
    int fd;
    bool follow;
    char last;    /* the last byte that was read */
    bool sniffed; /* the first bytes were looked at */
    bool ended;   /* read(2) said 0 */
    bool failed;  /* an error was reported or is in late */
    struct ep_gz *gz;
    struct ep_ahead *ahead; /* inflates on a thread of its own */
    _Atomic uint64_t bytes; /* read from fd so far */
    uint64_t raw_offset;    /* file offset of raw[0] */
    size_t raw_at, raw_len;
    unsigned char *raw;
    char *head; /* what was peeked at; NULL once it was read */
    size_t head_at, head_len;
    struct ep_error late; /* code != 0: report it after the data */
    void (*on_wait)(void *ctx);
    void *on_wait_ctx;
};

struct ep_input *ep_input_open(const char *path, struct ep_error *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    char shown[200];
    struct ep_input *in;
    struct stat st;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    int errnum = errno;

    (void)ep_escape(shown, sizeof shown, path, strlen(path));
    if (fd >= 0 && !is_stdin && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        (void)close(fd);
        fd = -1;
        errnum = EISDIR;
    }
    if (fd < 0) {
        (void)ep_error_sys(err, errnum, "cannot open %s%s", shown,
                           *path == '-' ? " (options come before files)" : "");
        return NULL;
    }
    in = ep_calloc(1, sizeof *in);
    in->name = ep_strdup(is_stdin ? "stdin" : shown);
    in->path = is_stdin ? NULL : ep_strdup(path);
    in->fd = fd;
    in->raw = ep_calloc(1, RAW_BYTES);
    return in;
}

void ep_input_close(struct ep_input *in)
{
    if (!in)
        return;
    if (in->ahead)
        atomic_fetch_sub(&threads, 1);
    ep_ahead_stop(in->ahead);
    if (in->fd != STDIN_FILENO)
        (void)close(in->fd);
    ep_gz_free(in->gz);
    free(in->raw);
    free(in->head);
    free(in->name);
    free(in->path);
    free(in);
}

const char *ep_input_name(const struct ep_input *in)
{
    return in->name;
}

bool ep_input_progress(const struct ep_input *in, uint64_t *done,
                       uint64_t *total)
{
    struct stat st;

    if (fstat(in->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    *done = in->bytes;
    *total = (uint64_t)st.st_size;
    return true;
}

void ep_input_on_wait(struct ep_input *in, void (*fn)(void *ctx), void *ctx)
{
    in->on_wait = fn;
    in->on_wait_ctx = ctx;
}

void ep_input_follow(struct ep_input *in)
{
    in->follow = true;
}

/*
 * At the end of a regular file: has it been replaced, or cut? Then go on in
 * the new one, or from the beginning, and return true.
 */
static bool turn_over(struct ep_input *in, const struct stat *old)
{
    struct stat st;
    int fd;

    if ((uint64_t)old->st_size < in->bytes) {
        in->bytes = 0;
        return lseek(in->fd, 0, SEEK_SET) == 0;
    }
    if (!in->path || stat(in->path, &st) != 0 || !S_ISREG(st.st_mode) ||
        (st.st_ino == old->st_ino && st.st_dev == old->st_dev))
        return false;
    fd = open(in->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    (void)close(in->fd);
    in->fd = fd;
    in->bytes = 0;
    return true;
}

/* As read_some below, but never waits: EP_EAGAIN. */
static ssize_t read_followed(struct ep_input *in, void *dst, size_t cap,
                             struct ep_error *err)
{
    struct pollfd p = {.fd = in->fd, .events = POLLIN};
    struct stat st;
    bool regular = fstat(in->fd, &st) == 0 && S_ISREG(st.st_mode);
    ssize_t n;

    if (!regular && poll(&p, 1, 0) == 0)
        return EP_EAGAIN;
    n = read(in->fd, dst, cap);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return EP_EAGAIN;
    if (n < 0) {
        in->failed = true;
        return ep_error_sys(err, errno, "cannot read %s", in->name);
    }
    in->bytes += (uint64_t)n;
    if (n > 0) {
        in->last = ((char *)dst)[n - 1];
    } else if (!regular) {
        in->ended = true;
    } else if (turn_over(in, &st) && in->last && in->last != '\n') {
        *(char *)dst = in->last = '\n';
        return 1;
    } else {
        return EP_EAGAIN;
    }
    return n;
}

/* read(2), whole of EINTR, with the hook called before it would block. */
static ssize_t read_some(struct ep_input *in, void *dst, size_t cap,
                         struct ep_error *err)
{
    if (in->follow)
        return read_followed(in, dst, cap, err);
    if (in->on_wait) {
        struct pollfd p = {.fd = in->fd, .events = POLLIN};

        if (poll(&p, 1, 0) == 0)
            in->on_wait(in->on_wait_ctx);
    }
    for (;;) {
        ssize_t n = read(in->fd, dst, cap);

        if (n >= 0) {
            in->ended = n == 0;
            in->bytes += (uint64_t)n;
            return n;
        }
        if (errno != EINTR) {
            in->failed = true;
            return ep_error_sys(err, errno, "cannot read %s", in->name);
        }
    }
}

/* Append to raw, behind what is not used yet. */
static int refill(struct ep_input *in, struct ep_error *err)
{
    ssize_t n;

    if (in->raw_at) {
        memmove(in->raw, in->raw + in->raw_at, in->raw_len - in->raw_at);
        in->raw_offset += in->raw_at;
        in->raw_len -= in->raw_at;
        in->raw_at = 0;
    }
    n = read_some(in, in->raw + in->raw_len, RAW_BYTES - in->raw_len, err);
    if (n < 0)
        return (int)n;
    in->raw_len += (size_t)n;
    return 0;
}

static int sniff(struct ep_input *in, struct ep_error *err)
{
    while (in->raw_len < 2 && !in->ended) {
        int rc = refill(in, err);

        if (rc < 0)
            return rc;
        if (in->raw_len && in->raw[0] != 0x1f)
            break;
    }
    in->sniffed = true;
    if (in->raw_len >= 2 && in->raw[0] == 0x1f && in->raw[1] == 0x8b) {
        in->gz = ep_gz_new(err);
        if (!in->gz) {
            in->failed = true;
            return ep_error_prefix(err, "cannot read %s", in->name);
        }
    }
    return 0;
}

static ssize_t read_plain(struct ep_input *in, void *dst, size_t cap,
                          struct ep_error *err)
{
    size_t left = in->raw_len - in->raw_at;

    if (!left)
        return in->ended ? 0 : read_some(in, dst, cap, err);
    if (left > cap)
        left = cap;
    memcpy(dst, in->raw + in->raw_at, left);
    in->raw_at += left;
    return (ssize_t)left;
}

/* Note damage at the current offset; it is reported once dst was taken. */
static int spoil(struct ep_input *in, int code)
{
    if (code == EP_ETRUNC)
        (void)ep_error_set(&in->late, code,
                           "compressed data end in the middle");
    in->failed = true;
    return ep_error_prefix(&in->late, "cannot read %s: byte %" PRIu64, in->name,
                           in->raw_offset + in->raw_at);
}

static ssize_t read_gz(struct ep_input *in, void *dst, size_t cap,
                       struct ep_error *err)
{
    size_t got = 0;

    while (!got && !in->late.code) {
        size_t used = in->raw_len - in->raw_at;
        int rc;

        got = cap;
        rc = ep_gz_step(in->gz, in->raw + in->raw_at, &used, dst, &got,
                        &in->late);
        in->raw_at += used;
        if (rc < 0) {
            (void)spoil(in, rc);
        } else if (!got && in->raw_at == in->raw_len) {
            if (in->ended) {
                if (ep_gz_whole(in->gz))
                    return 0;
                (void)spoil(in, EP_ETRUNC);
            } else if (refill(in, err) < 0) {
                return EP_ESYS;
            }
        }
    }
    if (got)
        return (ssize_t)got;
    if (err)
        *err = in->late;
    return in->late.code;
}

static ssize_t inflate_some(void *in, void *dst, size_t cap,
                            struct ep_error *err)
{
    return read_gz(in, dst, cap, err);
}

/* A compressed file is inflated ahead, where there is a CPU for it; a pipe is
   not: its thread could not be stopped while it waits for data. */
static void start_ahead(struct ep_input *in)
{
    struct stat st;

    if (fstat(in->fd, &st) != 0 || !S_ISREG(st.st_mode) ||
        ep_threads_allowed() < 2)
        return;
    if (atomic_fetch_add(&threads, 1) < THREADS_MAX)
        in->ahead = ep_ahead_start(inflate_some, in);
    if (!in->ahead)
        atomic_fetch_sub(&threads, 1);
}

static ssize_t read_any(struct ep_input *in, void *dst, size_t cap,
                        struct ep_error *err)
{
    if (in->ahead)
        return ep_ahead_read(in->ahead, dst, cap, err);
    if (in->failed && !in->late.code)
        return ep_error_set(err, EP_ESYS, "cannot read %s: it failed before",
                            in->name);
    if (!in->sniffed) {
        int rc = sniff(in, err);

        if (rc < 0)
            return rc;
        if (in->gz)
            start_ahead(in);
        if (in->ahead)
            return ep_ahead_read(in->ahead, dst, cap, err);
    }
    return in->gz ? read_gz(in, dst, cap, err) : read_plain(in, dst, cap, err);
}

ssize_t ep_input_peek(struct ep_input *in, const char **head,
                      struct ep_error *err)
{
    if (!in->head) {
        ssize_t n;

        in->head = ep_realloc(NULL, HEAD_BYTES, 1);
        n = read_any(in, in->head, HEAD_BYTES, err);
        if (n < 0) {
            free(in->head);
            in->head = NULL;
            return n;
        }
        in->head_len = (size_t)n;
    }
    *head = in->head;
    return (ssize_t)in->head_len;
}

ssize_t ep_input_read(struct ep_input *in, void *dst, size_t cap,
                      struct ep_error *err)
{
    size_t left = in->head_len - in->head_at;

    if (!left)
        return read_any(in, dst, cap, err);
    if (left > cap)
        left = cap;
    memcpy(dst, in->head + in->head_at, left);
    in->head_at += left;
    if (in->head_at == in->head_len) {
        free(in->head);
        in->head = NULL;
        in->head_at = in->head_len = 0;
    }
    return (ssize_t)left;
}
