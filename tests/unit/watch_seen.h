/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_seen.h - a watch, and what it found, for the tests of watch.h.
 *
 * Findings are compared as text, one line each: kind, who, step, factor,
 * cause.
 */
#ifndef EP_WATCH_SEEN_H
#define EP_WATCH_SEEN_H

#include "base/buf.h"
#include "detect/watch.h"
#include "tap.h"

#include <inttypes.h>
#include <string.h>

#define MAX_EIDS 64

static struct ep_watch *w;
static struct ep_buf seen; /* the findings as text */
static char eids[MAX_EIDS][256];
static double hours[MAX_EIDS], sure[MAX_EIDS], factors[MAX_EIDS];
static char evidence[256];
static size_t n_seen;
static bool sane;

static inline void add_finding(struct ep_buf *b, const struct ep_finding *f)
{
    ep_buf_addf(b, "%s %s%s%s %" PRId64 " %.2f %s\n", ep_finding_names[f->kind],
                f->job ? f->job : "", f->job ? ":" : "", f->id ? f->id : "job",
                f->step, f->factor, f->cause);
}

static inline void on_finding(void *ctx, const struct ep_finding *f)
{
    (void)ctx;
    add_finding(&seen, f);
    sane = sane && isfinite(f->factor) && f->factor > 0 && f->p >= 0 &&
           f->p <= 1 && f->since <= f->ts && isfinite(f->ts);
    if (n_seen < MAX_EIDS) {
        (void)snprintf(eids[n_seen], sizeof eids[0], "%s", f->eid);
        hours[n_seen] = f->gpu_hours;
        sure[n_seen] = f->p;
        factors[n_seen] = f->factor;
    }
    n_seen++;
    (void)snprintf(evidence, sizeof evidence, "%s", f->evidence);
}

static inline void begin_with(const struct ep_watch_config *config)
{
    w = ep_watch_new(config, on_finding, NULL, NULL);
    ep_buf_init(&seen);
    n_seen = 0;
    sane = true;
}

static inline void begin(void)
{
    begin_with(NULL);
}

static inline void on_open(void *ctx, const struct ep_finding *f)
{
    add_finding(ctx, f);
    sane = sane && isnan(f->ts) && !f->evidence && f->eid;
}

static inline int still_open(const char *expect, int line)
{
    struct ep_buf b;
    int good;

    ep_buf_init(&b);
    ep_watch_open(w, on_open, &b);
    good = strcmp(b.ptr, expect) == 0;
    if (!good)
        printf("# line %d: still open, got:\n%s# expected:\n%s", line, b.ptr,
               expect);
    ep_buf_free(&b);
    return good;
}

#define open_are(expect) ok(still_open((expect), __LINE__))

/* The end of the input: what was found, and was all of it sound? */
static inline int findings_are(const char *expect, const char *what)
{
    int good;

    ep_watch_finish(w);
    good = strcmp(seen.ptr, expect) == 0 && sane;
    if (!good)
        printf("# %s (sane %d), got:\n%s# expected:\n%s", what, sane, seen.ptr,
               expect);
    return good;
}

static inline void end(void)
{
    ep_watch_free(w);
    ep_buf_free(&seen);
}

static inline struct ep_span span(const char *s)
{
    return (struct ep_span){s, s ? strlen(s) : 0};
}

/* How the next samples are told. */
static struct ep_watch_step step_as = {.rank = -1};

static inline int take_step(int64_t rank, double ts, int64_t step, double dur,
                            double busy, int64_t mb)
{
    struct ep_watch_step s = step_as;

    s.rank = rank;
    s.ts = ts;
    s.step = step;
    s.dur = dur;
    s.busy = busy;
    s.mb = mb;
    return ep_watch_step(w, &s, NULL);
}

/* How the next gauges are told. */
static struct ep_watch_gauge gauge_as = {.gpu_index = -1};

static inline int take_gauge(const char *name, int64_t rank, double ts,
                             double value, struct ep_error *err)
{
    struct ep_watch_gauge x = gauge_as;

    x.name = span(name);
    x.rank = rank;
    x.ts = ts;
    x.value = value;
    return ep_watch_gauge(w, &x, err);
}

static inline int take_share(int64_t rank, double ts, double value,
                             struct ep_error *err)
{
    return take_gauge("cpu_share", rank, ts, value, err);
}

static inline double ripple(int64_t rank, int64_t step)
{
    return 1 + 0.002 * (double)((step * 7 + rank) % 5 - 2);
}

#endif
