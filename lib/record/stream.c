/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - see stream.h. */
#include "config.h"

#include "record/stream.h"

#include "base/clock.h"
#include "base/mem.h"
#include "record/importers.h"
#include "record/stream_impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Failed inputs that are described one by one. */
#define FAILURES_TOLD 3

void ep_stream_complain(struct ep_stream *s, const struct ep_error *err)
{
    if (s->config.complain)
        s->config.complain(s->config.ctx, err);
}

bool ep_stream_stopped(const struct ep_stream *s)
{
    return s->config.stop && *s->config.stop;
}

int ep_stream_fail(struct ep_stream *s, const char *path,
                   const struct source *src, const struct ep_error *err)
{
    bool news = ep_stream_lost(s, path, src, err);

    if (!(s->config.interval > 0))
        news = ++s->failed <= FAILURES_TOLD;
    if (s->config.strict) {
        s->error = *err;
        return err->code;
    }
    if (news)
        ep_stream_complain(s, err);
    return 0;
}

/* A bad line or element of src (NULL: an event of the stream's own); err holds
   the bare reason. Returns as ep_stream_fail. */
static int bad_line(struct ep_stream *s, struct source *src,
                    struct ep_error *err)
{
    char place[sizeof err->msg];

    if (!src)
        (void)snprintf(place, sizeof place, "an event");
    else if (src->in.line.number)
        (void)snprintf(place, sizeof place, "%s:%llu", src->in.name,
                       (unsigned long long)src->in.line.number);
    else
        (void)snprintf(place, sizeof place, "%s: byte %llu", src->in.name,
                       (unsigned long long)src->in.offset);
    ep_stream_tally_bad(s, place, err->msg);
    if (src && src->format)
        src->format->bad++;
    (void)ep_error_prefix(err, "cannot use %s", place);
    s->bad++;
    if (s->config.strict) {
        s->error = *err;
        return err->code;
    }
    if (s->bad == 1)
        ep_stream_complain(s, err);
    return 0;
}

/* Reading src ended with rc. As ep_stream_fail. */
static int end_reading(struct ep_stream *s, struct source *src, int rc,
                       const struct ep_error *err)
{
    int code = 0;

    if (rc == 0)
        ep_stream_answered(s, src);
    else if (rc == EP_EFORMAT && !src->in.importer && src->found)
        s->passed_over++;
    else
        code = ep_stream_fail(s, src->path, src, err);
    ep_stream_end_source(s, src);
    return code;
}

/* The next good record of src into src->record: is there one? */
static bool advance(struct ep_stream *s, struct source *src)
{
    struct ep_error err;

    src->waiting = false;
    for (;;) {
        int rc = ep_source_next(&src->in, &src->record, &err);
        struct ep_stream_format *format = ep_stream_tally_format(s, src);

        if (rc == EP_EAGAIN) {
            src->waiting = true;
            return false;
        }
        if (rc == 0 || (rc < 0 && src->in.over)) {
            (void)end_reading(s, src, rc, &err);
            return false;
        }
        if (rc > 0) {
            format->records++;
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
    ep_stream_tally_init(s);
    s->scrape.begun = ep_clock_now(&ep_clock_mono);
    if (config->follow) {
        ep_stream_allow_files(SIZE_MAX);
        ep_stream_scan(s);
    } else {
        ep_stream_open_all(s);
    }
    return s;
}

void ep_stream_close(struct ep_stream *s)
{
    if (!s)
        return;
    ep_stream_close_all(s);
    ep_stream_scrape_free(s);
    ep_stream_tally_free(s);
    ep_intern_free(s->live.known);
    ep_paths_free(&s->live.absent);
    ep_ranks_map_free(s->ranks);
    free(s->heap);
    free(s->sources);
    free(s);
}

/* Let there be a record, or an event, if there will ever be one. */
static void refill(struct ep_stream *s)
{
    if (s->config.follow) {
        ep_stream_wait(s);
        return;
    }
    do {
        ep_stream_open_next(s);
    } while (!s->nheap && !s->error.code &&
             s->scrape.at == s->scrape.nchanges && ep_stream_next_round(s));
}

int ep_stream_next(struct ep_stream *s, const struct ep_record **r,
                   const struct ep_line **line, struct ep_error *err)
{
    struct source *top;

    if (s->delivered && !s->error.code)
        replace_top(s);
    s->delivered = false;
    if (!s->error.code)
        refill(s);
    if (s->error.code) {
        if (err)
            *err = s->error;
        return s->error.code;
    }
    if (line)
        *line = NULL;
    *r = ep_stream_event(s);
    if (*r)
        return 1;
    if (!s->nheap)
        return 0;
    s->delivered = true;
    top = s->heap[0];
    (void)ep_ranks_map_resolve(s->ranks, &top->record);
    *r = &top->record;
    if (line && top->in.importer == &ep_import_records)
        *line = &top->in.line;
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
    rc = bad_line(s, s->delivered ? s->heap[0] : NULL, &reason);
    if (rc < 0 && err)
        *err = s->error;
    return rc;
}

bool ep_stream_progress(const struct ep_stream *s, uint64_t *done,
                        uint64_t *total)
{
    *done = *total = s->ended_bytes;
    if (s->config.interval > 0)
        return false;
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
    for (size_t i = s->admitted; i < s->paths.n; i++) {
        struct stat st;

        if (stat(s->paths.v[i].path, &st) != 0)
            continue; /* it will fail */
        if (!S_ISREG(st.st_mode))
            return false;
        *total += (uint64_t)st.st_size;
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
    return s->inputs;
}

uint64_t ep_stream_late(const struct ep_stream *s)
{
    return s->live.late;
}

int ep_stream_failed(const struct ep_stream *s)
{
    const struct scrape *sc = &s->scrape;

    if (!(s->config.interval > 0))
        return s->failed;
    return sc->answered || !sc->names ? 0 : (int)ep_intern_count(sc->names);
}
