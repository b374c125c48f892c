/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - see stream.h. */
#include "config.h"

#include "record/stream.h"

#include "base/mem.h"
#include "record/importers.h"
#include "record/stream_impl.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

/* Failed inputs that are described one by one. */
#define FAILURES_TOLD 3

void ep_stream_complain(struct ep_stream *s, const struct ep_error *err)
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
        ep_stream_complain(s, err);
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
        ep_stream_complain(s, err);
    return 0;
}

static void end_source(struct ep_stream *s, struct source *src)
{
    uint64_t done, total;

    if (ep_source_progress(&src->in, &done, &total))
        s->ended_bytes += total;
    ep_source_close(&src->in);
}

/* Reading src ended with rc. As fail(). */
static int end_reading(struct ep_stream *s, struct source *src, int rc,
                       const struct ep_error *err)
{
    bool no_format = rc == EP_EFORMAT && !src->in.importer;

    end_source(s, src);
    if (no_format && src->found) {
        s->passed_over++;
        return 0;
    }
    return rc < 0 ? fail(s, err) : 0;
}

/* The next good record of src into src->record: is there one? */
static bool advance(struct ep_stream *s, struct source *src)
{
    struct ep_error err;

    src->waiting = false;
    for (;;) {
        int rc = ep_source_next(&src->in, &src->record, &err);

        if (rc == EP_EAGAIN) {
            src->waiting = true;
            return false;
        }
        if (rc == 0 || (rc < 0 && src->in.over)) {
            (void)end_reading(s, src, rc, &err);
            return false;
        }
        if (rc > 0) {
            ep_ranks_map_take(s->ranks, &src->record);
            if (s->config.correct)
                s->config.correct(s->config.correct_ctx, &src->record);
            src->ts = ep_record_num(&src->record, EP_K_TS);
            if (isnan(src->ts) || s->config.no_merge)
                src->ts = (double)-INFINITY;
            return true;
        }
        if (bad_line(s, src, &err) < 0)
            return false;
    }
}

/* Does a come out before b? Of equal times the first input's does. */
static bool before(const struct source *a, const struct source *b)
{
    return a->ts < b->ts || (a->ts == b->ts && a->order < b->order);
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

void ep_stream_feed(struct ep_stream *s, struct source *src)
{
    int i = s->nheap;

    if (!advance(s, src))
        return;
    s->heap =
        ep_grow(s->heap, &s->cap_heap, (size_t)i + 1, sizeof(struct source *));
    s->nheap++;
    for (; i > 0 && before(src, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = src;
}

/* The top was delivered: its input's next record, or another's on top. */
static void replace_top(struct ep_stream *s)
{
    struct source *src = s->heap[0];

    if (!advance(s, src)) {
        s->heap[0] = s->heap[--s->nheap];
        if (src->waiting)
            ep_stream_fell_silent(s, src);
    }
    if (s->nheap)
        sink(s, 0);
}

int ep_stream_add(struct ep_stream *s, const struct ep_path *path)
{
    struct source *src = ep_calloc(1, sizeof *src);
    struct ep_error err;
    int rc = s->config.follow
                 ? ep_source_follow(&src->in, path->path, s->config.from, &err)
                 : ep_source_open(&src->in, path->path, s->config.from,
                                  s->config.on_wait, s->config.ctx, &err);

    if (rc == 0) {
        src->order = s->nsources;
        src->found = path->found;
        src->waiting = true;
        s->sources = ep_grow(s->sources, &s->cap_sources,
                             (size_t)s->nsources + 1, sizeof(struct source *));
        s->sources[s->nsources++] = src;
        return 0;
    }
    free(src);
    if (s->config.follow && rc == EP_ESYS && err.sys_errno == ENOENT)
        return EP_ESYS;
    if (rc == EP_EFORMAT && path->found)
        s->passed_over++;
    else
        (void)fail(s, &err);
    return 0;
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

/* Everything that was asked for, as it is now. */
static void open_all(struct ep_stream *s)
{
    struct ep_error err;

    for (int i = 0; i < s->ngiven && !s->error.code; i++)
        if (ep_paths_add(&s->paths, s->given[i], &err) < 0)
            (void)fail(s, &err);
    allow_files(s->paths.n);
    for (size_t i = 0; i < s->paths.n && !s->error.code; i++)
        (void)ep_stream_add(s, &s->paths.v[i]);
    for (int i = 0; i < s->nsources && !s->error.code; i++)
        ep_stream_feed(s, s->sources[i]);
}

struct ep_stream *ep_stream_open(const char *const *paths, int n,
                                 const struct ep_stream_config *config)
{
    static const char *const just_stdin[] = {"-"};
    struct ep_stream *s = ep_calloc(1, sizeof *s);

    s->config = *config;
    s->ranks = ep_ranks_map_new();
    if (config->world)
        ep_ranks_map_world(s->ranks, config->world);
    s->given = n ? paths : just_stdin;
    s->ngiven = n ? n : 1;
    if (config->follow) {
        allow_files(SIZE_MAX / 2);
        ep_stream_scan(s);
    } else {
        open_all(s);
    }
    return s;
}

void ep_stream_close(struct ep_stream *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->nsources; i++) {
        end_source(s, s->sources[i]);
        free(s->sources[i]);
    }
    ep_intern_free(s->live.known);
    ep_paths_free(&s->live.absent);
    ep_paths_free(&s->paths);
    ep_ranks_map_free(s->ranks);
    free(s->heap);
    free(s->sources);
    free(s);
}

int ep_stream_next(struct ep_stream *s, const struct ep_record **r,
                   const struct ep_line **line, struct ep_error *err)
{
    struct source *top;

    if (s->delivered && !s->error.code)
        replace_top(s);
    s->delivered = false;
    if (s->config.follow && !s->error.code)
        ep_stream_wait(s);
    if (s->error.code) {
        if (err)
            *err = s->error;
        return s->error.code;
    }
    if (!s->nheap)
        return 0;
    s->delivered = true;
    top = s->heap[0];
    (void)ep_ranks_map_resolve(s->ranks, &top->record);
    *r = &top->record;
    if (line)
        *line = top->in.importer == &ep_import_records ? &top->in.line : NULL;
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
        const struct ep_source *in = &s->sources[i]->in;
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

int ep_stream_inputs(const struct ep_stream *s)
{
    return s->nsources;
}

uint64_t ep_stream_late(const struct ep_stream *s)
{
    return s->live.late;
}

int ep_stream_failed(const struct ep_stream *s)
{
    return s->failed;
}
