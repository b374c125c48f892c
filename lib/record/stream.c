/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - see stream.h. */
#include "config.h"

#include "record/stream.h"

#include "base/mem.h"
#include "base/paths.h"
#include "record/importers.h"
#include "record/ranks_map.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

/* Failed inputs that are described one by one. */
#define FAILURES_TOLD 3

struct source {
    struct ep_source in;
    struct ep_record record; /* the next one to deliver */
    double ts;               /* its ts; -inf without one */
    bool ready;
};

struct ep_stream {
    struct ep_stream_config config;
    struct source *sources;
    int nsources;
    struct ep_paths paths;
    struct ep_ranks_map *ranks;
    uint64_t passed_over; /* files in folders that are of no known format */
    struct source **heap; /* those that are ready, the next one on top */
    int nheap;
    bool delivered; /* the top was, and has to advance before the next */
    uint64_t bad;
    uint64_t ended_bytes; /* of inputs that were read to their end */
    int failed;
    struct ep_error error; /* what ended a strict stream */
};

static void complain(struct ep_stream *s, const struct ep_error *err)
{
    if (s->config.complain)
        s->config.complain(s->config.ctx, err);
}

/* An input failed. Returns the code to end with, or 0 to go on. */
static int fail(struct ep_stream *s, const struct ep_error *err)
{
    s->failed++;
    if (s->config.strict) {
        s->error = *err;
        return err->code;
    }
    if (s->failed <= FAILURES_TOLD)
        complain(s, err);
    return 0;
}

/* A bad line or element; err holds the bare reason. As fail(). */
static int bad_line(struct ep_stream *s, const struct source *src,
                    struct ep_error *err)
{
    const struct ep_source *in = &src->in;

    if (in->line.number)
        (void)ep_error_prefix(err, "cannot use %s:%llu", in->name,
                              (unsigned long long)in->line.number);
    else
        (void)ep_error_prefix(err, "cannot use %s: byte %llu", in->name,
                              (unsigned long long)in->offset);
    s->bad++;
    if (s->config.strict) {
        s->error = *err;
        return err->code;
    }
    if (s->bad == 1)
        complain(s, err);
    return 0;
}

static void end_source(struct ep_stream *s, struct source *src)
{
    uint64_t done, total;

    if (ep_source_progress(&src->in, &done, &total))
        s->ended_bytes += total;
    ep_source_close(&src->in);
}

/* The next good record of src into src->record; ready says if there is one. */
static int advance(struct ep_stream *s, struct source *src)
{
    struct ep_error err;

    src->ready = false;
    for (;;) {
        int rc = ep_source_next(&src->in, &src->record, &err);

        if (rc == 0 || (rc < 0 && src->in.over)) {
            end_source(s, src);
            return rc < 0 ? fail(s, &err) : 0;
        }
        if (rc > 0) {
            ep_ranks_map_take(s->ranks, &src->record);
            src->ts = ep_record_num(&src->record, EP_K_TS);
            if (isnan(src->ts) || s->config.no_merge)
                src->ts = (double)-INFINITY;
            src->ready = true;
            return 0;
        }
        rc = bad_line(s, src, &err);
        if (rc < 0)
            return rc;
    }
}

/* Does a come out before b? Of equal times the first input's does. */
static bool before(const struct source *a, const struct source *b)
{
    return a->ts < b->ts || (a->ts == b->ts && a < b);
}

/* The entry at i may be too late for its place: let it sink. */
static void sink(struct ep_stream *s, int i)
{
    struct source *src = s->heap[i];

    for (int child; (child = 2 * i + 1) < s->nheap; i = child) {
        if (child + 1 < s->nheap && before(s->heap[child + 1], s->heap[child]))
            child++;
        if (!before(s->heap[child], src))
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = src;
}

/* The first record of every input. */
static void fill_heap(struct ep_stream *s)
{
    s->heap = ep_calloc((size_t)s->nsources + 1, sizeof(struct source *));
    for (int i = 0; i < s->nsources && !s->error.code; i++) {
        (void)advance(s, &s->sources[i]);
        if (s->sources[i].ready)
            s->heap[s->nheap++] = &s->sources[i];
    }
    for (int i = s->nheap / 2 - 1; i >= 0; i--)
        sink(s, i);
}

/* The top was delivered: its input's next record, or another's on top. */
static void replace_top(struct ep_stream *s)
{
    (void)advance(s, s->heap[0]);
    if (!s->heap[0]->ready)
        s->heap[0] = s->heap[--s->nheap];
    if (s->nheap)
        sink(s, 0);
}

static void open_source(struct ep_stream *s, const struct ep_path *path)
{
    struct ep_source *in = &s->sources[s->nsources].in;
    struct ep_error err;
    int rc = ep_source_open(in, path->path, s->config.from, s->config.on_wait,
                            s->config.ctx, &err);

    if (rc == 0)
        s->nsources++;
    else if (rc == EP_EFORMAT && path->found)
        s->passed_over++;
    else
        (void)fail(s, &err);
}

/* Many inputs: as many open files as the system lets us have. */
static void allow_files(size_t n)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < n + 64) {
        limit.rlim_cur =
            limit.rlim_max < n + 64 ? limit.rlim_max : (rlim_t)n + 64;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

struct ep_stream *ep_stream_open(const char *const *paths, int n,
                                 const struct ep_stream_config *config)
{
    static const char *const just_stdin[] = {"-"};
    struct ep_stream *s = ep_calloc(1, sizeof *s);
    struct ep_error err;

    s->config = *config;
    s->ranks = ep_ranks_map_new();
    if (config->world)
        ep_ranks_map_world(s->ranks, config->world);
    if (n == 0) {
        paths = just_stdin;
        n = 1;
    }
    for (int i = 0; i < n && !s->error.code; i++)
        if (ep_paths_add(&s->paths, paths[i], &err) < 0)
            (void)fail(s, &err);
    allow_files(s->paths.n);
    s->sources = ep_calloc(s->paths.n + 1, sizeof *s->sources);
    for (size_t i = 0; i < s->paths.n && !s->error.code; i++)
        open_source(s, &s->paths.v[i]);
    fill_heap(s);
    return s;
}

void ep_stream_close(struct ep_stream *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->nsources; i++)
        end_source(s, &s->sources[i]);
    ep_paths_free(&s->paths);
    ep_ranks_map_free(s->ranks);
    free(s->heap);
    free(s->sources);
    free(s);
}

int ep_stream_next(struct ep_stream *s, const struct ep_record **r,
                   const struct ep_line **line, struct ep_error *err)
{
    if (s->delivered && !s->error.code)
        replace_top(s);
    s->delivered = false;
    if (s->error.code) {
        if (err)
            *err = s->error;
        return s->error.code;
    }
    if (!s->nheap)
        return 0;
    s->delivered = true;
    (void)ep_ranks_map_resolve(s->ranks, &s->heap[0]->record);
    *r = &s->heap[0]->record;
    if (line)
        *line = s->heap[0]->in.importer == &ep_import_records
                    ? &s->heap[0]->in.line
                    : NULL;
    return 1;
}

int ep_stream_reject(struct ep_stream *s, struct ep_error *err, const char *fmt,
                     ...)
{
    struct ep_error reason = {.code = EP_EFORMAT};
    va_list ap;
    int rc;

    va_start(ap, fmt);
    if (vsnprintf(reason.msg, sizeof reason.msg, fmt, ap) < 0)
        reason.msg[0] = '\0';
    va_end(ap);
    rc = bad_line(s, s->heap[0], &reason);
    if (rc < 0 && err)
        *err = s->error;
    return rc;
}

bool ep_stream_progress(const struct ep_stream *s, uint64_t *done,
                        uint64_t *total)
{
    *done = *total = s->ended_bytes;
    for (int i = 0; i < s->nsources; i++) {
        const struct ep_source *in = &s->sources[i].in;
        uint64_t d, t;

        if (!in->name)
            continue;
        if (!ep_source_progress(in, &d, &t))
            return false;
        *done += d;
        *total += t;
    }
    return true;
}

uint64_t ep_stream_bad(const struct ep_stream *s)
{
    return s->bad;
}

uint64_t ep_stream_passed_over(const struct ep_stream *s)
{
    return s->passed_over;
}

int ep_stream_failed(const struct ep_stream *s)
{
    return s->failed;
}
