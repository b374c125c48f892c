/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.c - see input.h.
 *
 * The layers, from below: read_some (a descriptor that may be parked, or a
 * URL), raw and gz (what is compressed), read_any, and the head that was
 * looked at. What is not compressed goes from read_some into the caller's
 * memory.
 */
#include "config.h"

#include "base/input.h"

#include "base/ahead.h"
#include "base/fdpool.h"
#include "base/gz.h"
#include "base/mem.h"
#include "base/thread.h"
#include "base/url.h"

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
#define BUFFER_BYTES ((size_t)256 << 10)

/* A byte order mark. */
#define BOM "\xef\xbb\xbf"
enum { BOM_BYTES = 3 };

/* Inputs that inflate on a thread of their own, at most. */
enum { THREADS_MAX = 16 };

static atomic_int threads; /* how many do */

struct ep_input {
    char *name;
    struct ep_fdpool_file file;
    struct ep_url *url; /* instead of a file */
    bool follow;
    char last;    /* the last byte that was read */
    bool sniffed; /* the first bytes were looked at */
    bool begun;   /* and a mark before them was passed over */
    bool ended;   /* read(2) said 0 */
    bool failed;  /* an error was reported or is in late */
    struct ep_gz *gz;
    struct ep_ahead *ahead; /* inflates on a thread of its own */
    _Atomic uint64_t bytes; /* read so far; of a regular file: the offset */
    uint64_t raw_offset;    /* file offset of raw[0] */
    size_t raw_at, raw_len, raw_cap;
    unsigned char *raw; /* NULL until something is in it */
    char *head;         /* what was peeked at; NULL once it was read */
    size_t head_at, head_len;
    size_t mark; /* bytes of a byte order mark, before everything else */
    size_t buffer_bytes;
    struct ep_error late; /* code != 0: report it after the data */
    void (*on_wait)(void *ctx);
    void *on_wait_ctx;
    const volatile sig_atomic_t *stop; /* NULL: never */
};

/* The path as messages have it. */
static const char *shown(char *dst, size_t cap, const char *path)
{
    if (ep_url_is(path))
        return ep_url_shown(dst, cap, path);
    return ep_escape(dst, cap, path, strlen(path));
}

static int open_path(struct ep_input *in, const char *path,
                     const struct ep_url_limits *limits, struct ep_error *err)
{
    char text[200];

    if (strcmp(path, "-") == 0) {
        ep_fdpool_borrow(&in->file, STDIN_FILENO);
        return 0;
    }
    if (ep_url_is(path)) {
        in->url = ep_url_start(path, limits, err);
        return in->url ? 0 : EP_ESYS;
    }
    if (ep_fdpool_open(&in->file, path, err) == 0)
        return 0;
    if (err && *path == '-')
        (void)ep_error_sys(err, err->sys_errno,
                           "cannot open %s (options come before files)",
                           shown(text, sizeof text, path));
    else
        (void)ep_error_prefix(err, "cannot open %s",
                              shown(text, sizeof text, path));
    return EP_ESYS;
}

struct ep_input *ep_input_open_within(const char *path,
                                      const struct ep_url_limits *limits,
                                      struct ep_error *err)
{
    struct ep_input *in = ep_calloc(1, sizeof *in);
    char text[200];

    if (open_path(in, path, limits, err) < 0) {
        free(in);
        return NULL;
    }
    in->name = ep_strdup(
        strcmp(path, "-") == 0 ? "stdin" : shown(text, sizeof text, path));
    in->buffer_bytes = BUFFER_BYTES;
    in->raw_cap = RAW_BYTES;
    return in;
}

struct ep_input *ep_input_open(const char *path, struct ep_error *err)
{
    return ep_input_open_within(path, NULL, err);
}

void ep_input_close(struct ep_input *in)
{
    if (!in)
        return;
    if (in->ahead)
        atomic_fetch_sub(&threads, 1);
    ep_ahead_stop(in->ahead);
    ep_fdpool_close(&in->file);
    ep_url_close(in->url);
    ep_gz_free(in->gz);
    free(in->raw);
    free(in->head);
    free(in->name);
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

    *done = in->bytes;
    *total = in->file.size;
    if (in->url)
        return false;
    if (in->file.regular && !in->file.held) /* perhaps it is parked */
        return true;
    if (fstat(in->file.fd, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    *total = (uint64_t)st.st_size;
    return true;
}

void ep_input_on_wait(struct ep_input *in, void (*fn)(void *ctx), void *ctx)
{
    in->on_wait = fn;
    in->on_wait_ctx = ctx;
}

void ep_input_stop(struct ep_input *in, const volatile sig_atomic_t *stop)
{
    in->stop = stop;
}

int ep_input_follow(struct ep_input *in, struct ep_error *err)
{
    int rc;

    if (in->url)
        return ep_error_set(err, EP_EUSAGE,
                            "cannot follow %s: a URL can be read again and "
                            "again only (see tlmcat --interval)",
                            in->name);
    rc = ep_fdpool_hold(&in->file, 0, err);
    if (rc < 0)
        return ep_error_prefix(err, "cannot read %s", in->name);
    in->follow = true;
    return 0;
}

void ep_input_small(struct ep_input *in, size_t bytes)
{
    in->buffer_bytes = bytes;
}

size_t ep_input_buffer(const struct ep_input *in)
{
    return in->buffer_bytes;
}

bool ep_input_would_wait(struct ep_input *in)
{
    return in->url && !in->ended && !in->failed && ep_url_would_wait(in->url);
}

/* ==== Bytes as they are stored ==== */

/* read(2) into dst at the current place; parked or not. */
static ssize_t read_file(struct ep_input *in, void *dst, size_t cap,
                         struct ep_error *err)
{
    int fd = ep_fdpool_take(&in->file, in->bytes, err);
    ssize_t n;

    if (fd < 0) {
        in->failed = true;
        return ep_error_prefix(err, "cannot read %s", in->name), EP_ESYS;
    }
    do {
        n = in->file.regular && !in->follow
                ? pread(fd, dst, cap, (off_t)in->bytes)
                : read(fd, dst, cap);
    } while (n < 0 && errno == EINTR && !in->follow);
    if (n < 0)
        n = in->follow && (errno == EINTR || errno == EAGAIN)
                ? EP_EAGAIN
                : ep_error_sys(err, errno, "cannot read %s", in->name);
    in->failed = n < 0 && n != EP_EAGAIN;
    ep_fdpool_give(&in->file);
    if (n > 0)
        in->bytes += (uint64_t)n;
    return n;
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
        return lseek(in->file.fd, 0, SEEK_SET) == 0;
    }
    if (!in->file.path || stat(in->file.path, &st) != 0 ||
        !S_ISREG(st.st_mode) ||
        (st.st_ino == old->st_ino && st.st_dev == old->st_dev))
        return false;
    fd = open(in->file.path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ep_fdpool_replace(&in->file, fd);
    in->bytes = 0;
    return true;
}

/* As read_some below, but never waits: EP_EAGAIN. */
static ssize_t read_followed(struct ep_input *in, void *dst, size_t cap,
                             struct ep_error *err)
{
    struct pollfd p = {.fd = in->file.fd, .events = POLLIN};
    struct stat st;
    bool regular = fstat(in->file.fd, &st) == 0 && S_ISREG(st.st_mode);
    ssize_t n;

    if (!regular && poll(&p, 1, 0) == 0)
        return EP_EAGAIN;
    n = read_file(in, dst, cap, err);
    if (n < 0)
        return n;
    if (n > 0) {
        in->last = ((char *)dst)[n - 1];
    } else if (!regular || in->gz) { /* what is compressed is read once */
        in->ended = true;
    } else if (turn_over(in, &st) && in->last && in->last != '\n') {
        *(char *)dst = in->last = '\n';
        return 1;
    } else {
        return EP_EAGAIN;
    }
    return n;
}

/* How often the hook is called while a read waits. */
#define WAIT_MS 1000

/* Would a read have to wait for more than so long? Not of a regular file. */
static bool would_wait(const struct ep_input *in, int ms)
{
    struct pollfd p = {.fd = in->file.fd, .events = POLLIN};
    int n;

    if (in->url)
        return ms == 0 && ep_url_would_wait(in->url);
    if (in->file.regular)
        return false;
    n = poll(&p, 1, ms);
    return n == 0 || (n < 0 && errno == EINTR);
}

/* The next bytes, with the hook called before it would block. */
static ssize_t read_some(struct ep_input *in, void *dst, size_t cap,
                         struct ep_error *err)
{
    ssize_t n;

    if (in->follow)
        return read_followed(in, dst, cap, err);
    for (int ms = 0; in->on_wait && would_wait(in, ms); ms = WAIT_MS) {
        in->on_wait(in->on_wait_ctx);
        if (in->stop && *in->stop) {
            in->ended = true;
            return 0;
        }
    }
    if (in->url) {
        n = ep_url_read(in->url, dst, cap, err);
        in->failed = n < 0;
        if (n > 0)
            in->bytes += (uint64_t)n;
    } else {
        n = read_file(in, dst, cap, err);
    }
    in->ended = n == 0;
    return n;
}

/* ==== What is compressed ==== */

static void need_raw(struct ep_input *in)
{
    if (!in->raw)
        in->raw = ep_realloc(NULL, in->raw_cap, 1);
}

/* Append to raw, behind what is not used yet. */
static int refill(struct ep_input *in, struct ep_error *err)
{
    ssize_t n;

    need_raw(in);
    if (in->raw_at) {
        memmove(in->raw, in->raw + in->raw_at, in->raw_len - in->raw_at);
        in->raw_offset += in->raw_at;
        in->raw_len -= in->raw_at;
        in->raw_at = 0;
    }
    n = read_some(in, in->raw + in->raw_len, in->raw_cap - in->raw_len, err);
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
    if (in->raw_at == in->raw_len) {
        free(in->raw);
        in->raw = NULL;
        in->raw_at = in->raw_len = 0;
    }
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

    need_raw(in);
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
            } else {
                rc = refill(in, err);
                if (rc < 0)
                    return rc;
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
   not: its thread could not be stopped while it waits for data. Nor is one of
   many: its descriptor has to stay. */
static void start_ahead(struct ep_input *in)
{
    if (!in->file.regular || in->buffer_bytes < BUFFER_BYTES ||
        ep_threads_allowed() < 2 ||
        ep_fdpool_hold(&in->file, in->bytes, NULL) < 0)
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

/* ==== The first bytes ==== */

/* May what was read so far be the beginning of a mark? */
static bool may_be_mark(const struct ep_input *in)
{
    return !in->begun && in->head_len && in->head_len < BOM_BYTES &&
           memcmp(in->head, BOM, in->head_len) == 0;
}

/* Read the first bytes into head, and pass over a byte order mark. */
static int read_head(struct ep_input *in, struct ep_error *err)
{
    ssize_t n;

    if (!in->head)
        in->head = ep_realloc(NULL, HEAD_BYTES, 1);
    do {
        n = read_any(in, in->head + in->head_len, HEAD_BYTES - in->head_len,
                     err);
        if (n == EP_EAGAIN)
            return EP_EAGAIN;
        if (n < 0) {
            free(in->head);
            in->head = NULL;
            in->head_len = 0;
            return (int)n;
        }
        in->head_len += (size_t)n;
    } while (n > 0 && may_be_mark(in));
    if (!in->begun && in->head_len >= BOM_BYTES &&
        memcmp(in->head, BOM, BOM_BYTES) == 0)
        in->head_at = in->mark = BOM_BYTES;
    in->begun = true;
    return 0;
}

ssize_t ep_input_peek(struct ep_input *in, const char **head,
                      struct ep_error *err)
{
    if (!in->head || !in->begun) {
        int rc = read_head(in, err);

        if (rc < 0)
            return rc;
    }
    *head = in->head + in->head_at;
    return (ssize_t)(in->head_len - in->head_at);
}

static void drop_head(struct ep_input *in)
{
    free(in->head);
    in->head = NULL;
    in->head_at = in->head_len = 0;
}

void ep_input_rewind(struct ep_input *in)
{
    if (!in->file.regular || in->follow || in->ahead || in->failed ||
        !in->begun || (in->gz && in->mark))
        return;
    if (in->gz)
        ep_gz_restart(in->gz);
    drop_head(in);
    free(in->raw);
    in->raw = NULL;
    in->raw_at = in->raw_len = 0;
    in->raw_offset = in->mark;
    in->bytes = in->mark;
    in->ended = false;
    if (in->raw_cap > in->buffer_bytes / 2)
        in->raw_cap = in->buffer_bytes / 2;
}

ssize_t ep_input_read(struct ep_input *in, void *dst, size_t cap,
                      struct ep_error *err)
{
    size_t left;

    if (!in->begun) {
        int rc = read_head(in, err);

        if (rc < 0)
            return rc;
    }
    left = in->head_len - in->head_at;
    if (!left) {
        drop_head(in);
        return read_any(in, dst, cap, err);
    }
    if (left > cap)
        left = cap;
    memcpy(dst, in->head + in->head_at, left);
    in->head_at += left;
    if (in->head_at == in->head_len)
        drop_head(in);
    return (ssize_t)left;
}
