/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_open.c - from what was asked for to sources: folders and host lists,
 * the order in which things are opened, and how much memory each may have.
 *
 * A merge needs all inputs at once. Their descriptors are shared (see
 * base/fdpool.h), and so is the room for buffers: beyond MANY inputs each has
 * its part of BUFFERS_BYTES, though not less than BUFFER_LEAST, since reading a
 * parked file again costs some microseconds. Without a merge one input is open
 * at a time.
 *
 * All URLs are on their way before the first is waited for: time-outs of dead
 * hosts pass together.
 */
#include "config.h"

#include "base/clock.h"
#include "base/hostlist.h"
#include "base/mem.h"
#include "base/url.h"
#include "record/stream_impl.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

enum { MANY = 32 };
#define BUFFERS_BYTES ((size_t)64 << 20)
#define BUFFER_LEAST ((size_t)16 << 10)
#define BUFFER_MOST ((size_t)128 << 10)

/* How often URLs that are waited for are looked at. */
#define POLL_EVERY 0.005 /* s */

/* One scrape has this share of the interval, and so long. If it were all of it
   one endpoint that hangs would make every round too long for the next. */
#define SCRAPE_SHARE 0.8
#define SCRAPE_MOST 10.0 /* s */
#define SCRAPE_LEAST 0.8 /* s */

void ep_stream_allow_files(size_t n)
{
    struct rlimit limit;
    rlim_t want = n > SIZE_MAX / 4 ? SIZE_MAX / 2 : 2 * (rlim_t)n + 256;

    /* half of them are for files, see base/fdpool.h */
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < want) {
        limit.rlim_cur = limit.rlim_max < want ? limit.rlim_max : want;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* ==== One input ==== */

/* What one of n inputs that are open together may have; 0: the default. */
static size_t buffer_of(size_t n)
{
    size_t part = BUFFERS_BYTES / (n ? n : 1);

    if (n <= MANY)
        return 0;
    if (part < BUFFER_LEAST)
        return BUFFER_LEAST;
    return part > BUFFER_MOST ? BUFFER_MOST : part;
}

static struct ep_url_limits scrape_limits(double interval)
{
    struct ep_url_limits limits = EP_URL_LIMITS_SCRAPE;

    limits.total_s =
        fmin(fmax(SCRAPE_SHARE * interval, SCRAPE_LEAST), SCRAPE_MOST);
    if (limits.connect_s > limits.total_s)
        limits.connect_s = limits.total_s;
    return limits;
}

static struct ep_source_how how_to(struct ep_stream *s)
{
    return (struct ep_source_how){
        .from = s->config.from,
        .follow = s->config.follow,
        .buffer_bytes = s->config.no_merge ? 0 : buffer_of(s->paths.n),
        .on_wait = s->config.follow ? NULL : s->config.on_wait,
        .on_wait_ctx = s->config.ctx,
        .stop = s->config.stop,
        .give_up = s->config.follow ? ep_stream_give_up : NULL,
        .give_up_ctx = s,
    };
}

/* Open a path, or begin its transfer. 0 and *src, or an error. */
static int start(struct ep_stream *s, const struct ep_path *path,
                 struct source **src, struct ep_error *err)
{
    struct ep_source_how how = how_to(s);
    struct ep_url_limits limits;
    int rc;

    if (s->config.interval > 0) {
        limits = scrape_limits(s->config.interval);
        if (ep_stream_is_down(s, path->path))
            limits.retries = 0; /* do not let the others wait for it */
        how.limits = &limits;
    }
    *src = ep_calloc(1, sizeof **src);
    rc = ep_source_start(&(*src)->in, path->path, &how, err);
    if (rc < 0) {
        free(*src);
        *src = NULL;
        return rc;
    }
    (*src)->found = path->found;
    (*src)->path = s->config.follow ? NULL : path->path;
    return 0;
}

/* interval: let a URL answer. False if the stream is to stop. */
static bool await(struct ep_stream *s, struct source *src)
{
    const struct timespec t = {.tv_nsec = (long)(POLL_EVERY * 1e9)};
    bool flushed = false;

    while (ep_source_would_wait(&src->in)) {
        if (ep_stream_stopped(s))
            return false;
        if (!flushed && s->config.on_wait)
            s->config.on_wait(s->config.ctx);
        flushed = true;
        (void)nanosleep(&t, NULL);
    }
    return true;
}

void ep_stream_end_source(struct ep_stream *s, struct source *src)
{
    uint64_t done, total;

    if (ep_source_progress(&src->in, &done, &total))
        s->ended_bytes += total;
    ep_source_close(&src->in);
}

/* Of a started source choose the format; then it is one of sources. */
static bool admit(struct ep_stream *s, struct source *src)
{
    struct ep_source_how how = how_to(s);
    struct ep_error err;
    int rc;

    if (s->config.interval > 0 && !await(s, src)) {
        ep_source_close(&src->in);
        free(src);
        return false;
    }
    rc = ep_source_ready(&src->in, &how, &err);
    if (rc < 0) {
        if (rc == EP_EFORMAT && src->found)
            s->passed_over++;
        else
            (void)ep_stream_fail(s, src->path, src, &err);
        ep_source_close(&src->in);
        free(src);
        return false;
    }
    src->order = s->inputs++;
    src->waiting = true;
    s->sources = ep_grow(s->sources, &s->cap_sources, (size_t)s->nsources + 1,
                         sizeof(struct source *));
    s->sources[s->nsources++] = src;
    return true;
}

int ep_stream_add(struct ep_stream *s, const struct ep_path *path)
{
    struct source *src;
    struct ep_error err;
    int rc = start(s, path, &src, &err);

    if (rc == 0) {
        (void)admit(s, src);
        return 0;
    }
    if (s->config.follow && rc == EP_ESYS && err.sys_errno == ENOENT)
        return EP_ESYS;
    (void)ep_stream_fail(s, path->path, NULL, &err);
    return 0;
}

/* ==== All of them ==== */

static int expand_url(struct ep_stream *s, const char *url,
                      struct ep_error *err)
{
    struct ep_hostlist hosts = {0};
    int rc = ep_hostlist_expand(&hosts, url, err);

    for (size_t i = 0; i < hosts.n && rc == 0; i++)
        rc = ep_paths_add(&s->paths, hosts.v[i], err);
    ep_hostlist_free(&hosts);
    return rc;
}

static void expand(struct ep_stream *s)
{
    struct ep_error err;

    for (int i = 0; i < s->ngiven && !s->error.code; i++) {
        const char *path = s->given[i];
        int rc = ep_url_is(path) ? expand_url(s, path, &err)
                                 : ep_paths_add(&s->paths, path, &err);

        if (rc < 0)
            (void)ep_stream_fail(s, path, NULL, &err);
    }
}

/* To open a pipe is to wait for its writer: show what there is. */
static void before_open(const struct ep_stream *s, const char *path)
{
    struct stat st;

    if (s->config.no_merge && s->config.on_wait && stat(path, &st) == 0 &&
        !S_ISREG(st.st_mode))
        s->config.on_wait(s->config.ctx);
}

/* The path with that number: a URL is on its way already. */
static void open_path(struct ep_stream *s, size_t i)
{
    struct source *src = s->started[i];

    before_open(s, s->paths.v[i].path);
    s->started[i] = NULL;
    if (src)
        (void)admit(s, src);
    else if (!ep_url_is(s->paths.v[i].path))
        (void)ep_stream_add(s, &s->paths.v[i]);
}

static bool goes_on(const struct ep_stream *s)
{
    return !s->error.code && !(s->config.interval > 0 && ep_stream_stopped(s));
}

void ep_stream_open_all(struct ep_stream *s)
{
    struct ep_error err;

    expand(s);
    ep_stream_allow_files(s->paths.n);
    s->started = ep_calloc(s->paths.n + 1, sizeof(struct source *));
    for (size_t i = 0; i < s->paths.n && goes_on(s); i++) {
        const struct ep_path *path = &s->paths.v[i];

        if (ep_url_is(path->path) && start(s, path, &s->started[i], &err) < 0)
            (void)ep_stream_fail(s, path->path, NULL, &err);
    }
    if (s->config.no_merge)
        return;
    while (s->admitted < s->paths.n && goes_on(s))
        open_path(s, s->admitted++);
    for (int i = 0; i < s->nsources && !s->error.code; i++)
        ep_stream_feed(s, s->sources[i]);
}

static void free_sources(struct ep_stream *s)
{
    for (int i = 0; i < s->nsources; i++) {
        ep_stream_end_source(s, s->sources[i]);
        free(s->sources[i]);
    }
    s->nsources = 0;
    s->nheap = 0;
}

void ep_stream_open_next(struct ep_stream *s)
{
    while (!s->nheap && s->admitted < s->paths.n && goes_on(s)) {
        free_sources(s);
        open_path(s, s->admitted++);
        if (s->nsources)
            ep_stream_feed(s, s->sources[0]);
    }
}

void ep_stream_close_all(struct ep_stream *s)
{
    free_sources(s);
    for (size_t i = 0; i < s->paths.n && s->started; i++) {
        if (s->started[i])
            ep_source_close(&s->started[i]->in);
        free(s->started[i]);
    }
    free(s->started);
    s->started = NULL;
    s->admitted = 0;
    ep_paths_free(&s->paths);
}
