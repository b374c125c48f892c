/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_live.c - a stream that is followed: inputs that grow, are replaced
 * and appear, and that must not wait for one that has fallen silent.
 *
 * An input that has nothing to say holds back the others for lateness seconds
 * after its last record; then it counts as silent until it speaks again. What
 * it says then may be late: it is delivered at once, and counted.
 */
#include "config.h"

#include "base/clock.h"
#include "base/url.h"
#include "record/stream_impl.h"

#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* How often inputs that wait are looked at, and folders. */
#define POLL_EVERY 0.02 /* s */
#define SCAN_EVERY 1.0  /* s */

/* How often the caller is told that there is nothing. */
#define WAIT_EVERY 1.0 /* s */

/* Paths that are remembered. */
enum { KNOWN_MAX = 1 << 20 };

static double now(void)
{
    return ep_clock_now(&ep_clock_mono);
}

/* Is the path new? It is known from now on. */
static bool is_new(struct live *l, const char *path)
{
    size_t before = ep_intern_count(l->known);

    return ep_intern_add(l->known, (struct ep_span){path, strlen(path)},
                         KNOWN_MAX) == (long)before;
}

/*
 * Is there something to open at path? Not if it is open already, be it under
 * the name that it had before it was rotated away. The number of a file that
 * was deleted is soon that of another, which is told by when it was made; a
 * file system that does not keep that (NFS) says 0.
 */
static bool is_unread(struct live *l, const char *path)
{
    bool fresh = is_new(l, path);
    struct statx st;
    char inode[128];

    if (statx(AT_FDCWD, path, 0, STATX_TYPE | STATX_INO | STATX_BTIME, &st) !=
            0 ||
        !S_ISREG(st.stx_mode))
        return fresh;
    (void)snprintf(inode, sizeof inode, "inode %x:%x %jx %jd.%u",
                   st.stx_dev_major, st.stx_dev_minor, (uintmax_t)st.stx_ino,
                   (intmax_t)st.stx_btime.tv_sec, st.stx_btime.tv_nsec);
    return is_new(l, inode) && fresh;
}

/*
 * Is it what log rotation compressed, NAME.1.gz or NAME-20261130.gz where NAME
 * is among the first paths known? Then all that is in it was read before.
 */
static bool is_rotated(struct live *l, const char *path, size_t first)
{
    size_t n = strlen(path);
    long id;

    if (n < 3 || strcmp(path + n - 3, ".gz") != 0)
        return false;
    n -= 3;
    id = ep_intern_add(l->known, (struct ep_span){path, n}, 0);
    if (id < 0) {
        while (n && strchr("0123456789-", path[n - 1]))
            n--;
        n -= n && path[n - 1] == '.';
        id = ep_intern_add(l->known, (struct ep_span){path, n}, 0);
    }
    return id >= 0 && (size_t)id < first;
}

/* Open a path: true unless it is not there. */
static bool open_path(struct ep_stream *s, const struct ep_path *path)
{
    int before = s->nsources;

    if (ep_stream_add(s, path) < 0)
        return false;
    if (s->nsources > before)
        s->sources[before]->heard = now();
    return true;
}

static void remember(struct ep_paths *absent, const char *path)
{
    struct ep_error err;

    if (ep_paths_add(absent, path, &err) < 0) {
        /* it has become a folder meanwhile: the next scan finds it again */
    }
}

/* Files that were not there: are they now? */
static void retry(struct ep_stream *s)
{
    struct ep_paths left = {0};

    for (size_t i = 0; i < s->live.absent.n; i++) {
        const struct ep_path *path = &s->live.absent.v[i];

        if (!open_path(s, path))
            remember(&left, path->path);
    }
    ep_paths_free(&s->live.absent);
    s->live.absent = left;
}

/* A file that is not there yet is waited for; that is said once. */
static void wait_for(struct ep_stream *s, const char *path)
{
    struct ep_error err;
    char shown[200];

    (void)ep_error_set(&err, EP_EMISSING,
                       "cannot open %s: not there yet, waiting for it",
                       ep_escape(shown, sizeof shown, path, strlen(path)));
    ep_stream_complain(s, &err);
    remember(&s->live.absent, path);
}

/* May there be more of path: a file, a folder, or nothing yet? */
static bool may_grow(const char *path)
{
    struct stat st;

    return strcmp(path, "-") != 0 && !ep_url_is(path) &&
           (stat(path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
}

void ep_stream_scan(struct ep_stream *s)
{
    struct ep_paths paths = {0};
    struct ep_error err;
    size_t known;

    if (!s->live.known)
        s->live.known = ep_intern_new();
    retry(s);
    for (int i = 0; i < s->ngiven; i++) {
        if (ep_paths_add(&paths, s->given[i], &err) < 0 && !s->live.scanned)
            ep_stream_complain(s, &err);
        s->live.may_grow |= may_grow(s->given[i]);
    }
    known = ep_intern_count(s->live.known);
    for (size_t i = 0; i < paths.n && !s->error.code; i++)
        if (is_unread(&s->live, paths.v[i].path) &&
            !is_rotated(&s->live, paths.v[i].path, known) &&
            !open_path(s, &paths.v[i]))
            wait_for(s, paths.v[i].path);
    ep_paths_free(&paths);
    s->live.scanned = now();
}

void ep_stream_fell_silent(struct ep_stream *s, struct source *src)
{
    src->heard = now();
    if (src->heard + s->config.lateness > s->live.hold_until)
        s->live.hold_until = src->heard + s->config.lateness;
}

/* Look at the inputs that wait; returns how many are left. */
static int poll_inputs(struct ep_stream *s, double t)
{
    int alive = 0;

    s->live.hold_until = (double)-INFINITY;
    for (int i = 0; i < s->nsources; i++) {
        struct source *src = s->sources[i];

        if (src->waiting) {
            ep_stream_feed(s, src);
            if (!src->waiting)
                src->heard = t;
        }
        if (src->waiting &&
            src->heard + s->config.lateness > s->live.hold_until)
            s->live.hold_until = src->heard + s->config.lateness;
        alive += src->waiting || !src->in.over;
    }
    s->live.polled = t;
    return alive;
}

static void nap(void)
{
    const struct timespec t = {.tv_nsec = (long)(POLL_EVERY * 1e9)};

    (void)nanosleep(&t, NULL);
}

/* How long what is there may be read on once the stream is to stop. */
#define DRAIN_MOST 2.0 /* s */

bool ep_stream_give_up(void *ctx)
{
    struct ep_stream *s = ctx;

    if (!ep_stream_stopped(s))
        return false;
    if (!(s->live.stopped > 0))
        s->live.stopped = now();
    return now() - s->live.stopped > DRAIN_MOST;
}

/* The top is about to be delivered. */
static void note_delivery(struct ep_stream *s)
{
    double ts = s->heap[0]->ts;

    if (ts < s->live.last_ts && ts > (double)-INFINITY)
        s->live.late++;
    else
        s->live.last_ts = ts;
}

void ep_stream_wait(struct ep_stream *s)
{
    double waits = (double)-INFINITY; /* since on_wait was called */

    for (;;) {
        double t = now();

        if (t - s->live.scanned >= SCAN_EVERY)
            ep_stream_scan(s);
        if ((t - s->live.polled >= POLL_EVERY || !s->nheap) &&
            poll_inputs(s, t) == 0 && !s->live.may_grow)
            break;
        if (s->error.code || ep_stream_stopped(s))
            break;
        if (s->nheap && t >= s->live.hold_until)
            break;
        if (t - waits >= WAIT_EVERY && s->config.on_wait) {
            s->config.on_wait(s->config.ctx);
            waits = t;
        }
        nap();
    }
    if (s->nheap)
        note_delivery(s);
}
