/* SPDX-License-Identifier: Apache-2.0 */
/*
 * silence_job.h - a job that is played by a clock of its own: each rank works,
 * enters a call, and waits until all of its group have entered it. A rank can
 * be stopped before any call. Knows nothing of how hangs are found.
 */
#ifndef EP_SILENCE_JOB_H
#define EP_SILENCE_JOB_H

#include "base/buf.h"
#include "base/rng.h"
#include "detect/silence.h"
#include "detect/watch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define T0 1.7e9

/* ==== What is found ==== */

struct seen {
    char text[2048]; /* "missing rank=3 hang; relief rank=3 hang; " */
    char evidence[512], eid[128], last_eid[128];
    double since, ts, factor, p;
    int n, missing;
    bool bad; /* a field out of its range */
};

static inline void on_finding(void *ctx, const struct ep_finding *f)
{
    struct seen *s = ctx;
    size_t n = strlen(s->text);

    (void)snprintf(s->text + n, sizeof s->text - n, "%s%s %s %s", n ? "; " : "",
                   ep_finding_names[f->kind], f->id ? f->id : "job", f->cause);
    (void)snprintf(s->last_eid, sizeof s->last_eid, "%s", f->eid);
    if (f->kind == EP_FINDING_MISSING) {
        s->missing++;
        (void)snprintf(s->evidence, sizeof s->evidence, "%s", f->evidence);
        (void)snprintf(s->eid, sizeof s->eid, "%s", f->eid);
        s->since = f->since;
        s->ts = f->ts;
        s->factor = f->factor;
        s->p = f->p;
    }
    s->n++;
    s->bad |= !(f->factor >= 1) || !(f->p >= 0 && f->p <= 1) ||
              !(f->since <= f->ts) || !f->eid || !f->evidence;
}

static inline struct ep_span span(const char *s)
{
    return (struct ep_span){s, s ? strlen(s) : 0};
}

/* ==== A job that is played ==== */

#define RANKS 16
#define WIDE 4 /* ranks of a tensor-parallel group, and of a host */

enum telling {
    STEPS,   /* steps alone */
    ENTERED, /* calls, when they are entered */
    DONE,    /* calls, when they are over */
    COUNTED, /* as ENTERED, but without a seq */
};

struct play {
    struct ep_silence *s;
    struct seen seen;
    int ranks;
    enum telling telling;
    double work; /* s of a step; four calls of the row, one of the column */
    double t[RANKS];
    int64_t step[RANKS];
    bool stopped[RANKS];
    double gauges;        /* every so often; 0: none */
    unsigned quiet, mute; /* bit r: no gauges; no telemetry but gauges */
    int64_t pid;
    struct ep_rng rng;
    void (*before)(struct play *p); /* each sign; may be NULL */
};

static inline void begin(struct play *p, int ranks, enum telling telling,
                         double floor)
{
    struct ep_silence_config c = EP_SILENCE_DEFAULTS;

    memset(p, 0, sizeof *p);
    c.floor_s = floor;
    p->s = ep_silence_new(&c, on_finding, &p->seen, NULL);
    p->ranks = ranks;
    p->telling = telling;
    p->work = 1;
    p->pid = 7;
    for (int r = 0; r < RANKS; r++)
        p->t[r] = T0;
    ep_rng_seed(&p->rng, 1, 0);
}

static inline void sign(struct play *p, enum ep_sign_kind kind, int r,
                        double ts, const char *comm, int64_t number)
{
    char host[16];
    struct ep_sign x = {
        .kind = kind,
        .job = span("lm"),
        .comm = span(comm),
        .rank = r,
        .pid = kind == EP_SIGN_OTHER ? -1 : p->pid,
        .step = kind == EP_SIGN_STEP ? number : -1,
        .seq = p->telling == COUNTED || kind == EP_SIGN_STEP ? -1 : number,
        .nranks = -1,
        .ts = ts,
    };

    (void)snprintf(host, sizeof host, "n%d", r / WIDE);
    x.host = span(host);
    if (kind != EP_SIGN_OTHER && p->mute >> r & 1)
        return;
    if (p->before)
        p->before(p);
    if (ep_silence_take(p->s, &x, NULL) < 0)
        p->seen.bad = true;
}

static inline void gauges(struct play *p, double from, double to)
{
    int n = p->gauges > 0 ? (int)ceil((to - from) / p->gauges) : 0;

    for (int i = 0; i < n; i++)
        for (int r = 0; r < p->ranks; r++)
            if (!(p->quiet >> r & 1))
                sign(p, EP_SIGN_OTHER, r, from + i * p->gauges, NULL, -1);
}

/* One thing that is told; sorted by time. */
struct told {
    double ts;
    int r;
    enum ep_sign_kind kind;
    char comm[16];
    int64_t number;
};

static inline int by_ts(const void *a, const void *b)
{
    const struct told *x = a, *y = b;

    return (x->ts > y->ts) - (x->ts < y->ts);
}

/* Ranks first, first + stride, ... */
struct group {
    const char *kind;
    int first, stride, members;
};

/* A call of a group. */
static inline size_t enter(struct play *p, struct told *v, size_t n,
                           const struct group *g, int64_t seq)
{
    double end = 0;
    bool all = true;

    for (int i = 0; i < g->members; i++) {
        int r = g->first + i * g->stride;

        all &= !p->stopped[r];
        end = p->t[r] > end ? p->t[r] : end;
    }
    end += 0.01 * p->work;
    for (int i = 0; i < g->members; i++) {
        int r = g->first + i * g->stride;
        struct told x = {p->t[r], r, EP_SIGN_ENTERED, "", seq};

        (void)snprintf(x.comm, sizeof x.comm, "%s-%d", g->kind, g->first);
        if (p->telling == DONE) {
            x.kind = EP_SIGN_CALL;
            x.ts = end;
        } else if (p->telling == COUNTED) {
            x.kind = EP_SIGN_CALL;
        }
        if (!p->stopped[r] && p->telling != STEPS &&
            (all || p->telling != DONE))
            v[n++] = x;
        if (!all)
            p->stopped[r] = true; /* it waits */
        p->t[r] = end;
    }
    return n;
}

/* One step of all; who is given stops before a call of it, 0..4; -1: nobody. */
static inline void play_step(struct play *p, int who, int where)
{
    struct told v[RANKS * 8];
    int64_t step = p->step[0];
    size_t n = 0;
    double from = p->t[0];

    for (int call = 0; call < 5; call++) {
        if (call == where && who >= 0)
            p->stopped[who] = true;
        for (int r = 0; r < p->ranks; r++)
            if (!p->stopped[r])
                p->t[r] += p->work / 5 * (1 + 0.1 * ep_rng_uniform(&p->rng));
        for (int g = 0; call < 4 && g < p->ranks / WIDE; g++)
            n = enter(p, v, n, &(struct group){"tp", g * WIDE, 1, WIDE},
                      step * 4 + call);
        for (int g = 0; call == 4 && g < WIDE; g++)
            n = enter(p, v, n, &(struct group){"dp", g, WIDE, p->ranks / WIDE},
                      step);
    }
    for (int r = 0; r < p->ranks; r++) {
        if (!p->stopped[r])
            v[n++] = (struct told){p->t[r], r, EP_SIGN_STEP, "", step};
        p->step[r]++;
    }
    gauges(p, from, p->t[0]);
    qsort(v, n, sizeof *v, by_ts);
    for (size_t i = 0; i < n; i++)
        sign(p, v[i].kind, v[i].r, v[i].ts, *v[i].comm ? v[i].comm : NULL,
             v[i].number);
}

static inline void play(struct play *p, int steps)
{
    for (int i = 0; i < steps; i++)
        play_step(p, -1, 0);
}

static inline double latest(const struct play *p)
{
    double t = T0;

    for (int r = 0; r < p->ranks; r++)
        t = p->t[r] > t ? p->t[r] : t;
    return t;
}

/* Nothing happens for so long: gauges only, and the wall clock if live. */
static inline void rest(struct play *p, int s, bool live)
{
    double from = latest(p);

    for (int t = 1; t <= s; t++) {
        gauges(p, from + t, from + t + (p->gauges > 0 ? p->gauges / 2 : 1));
        if (live)
            ep_silence_tick(p->s, from + t);
    }
    for (int r = 0; r < p->ranks; r++)
        p->t[r] = from + s;
}

static inline void go_on(struct play *p)
{
    memset(p->stopped, 0, sizeof p->stopped);
}

static inline void end(struct play *p)
{
    ep_silence_finish(p->s);
    ep_silence_free(p->s);
}

#endif
