/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_work.c - the values of ranks and jobs by the work in them; see work.h
 * and watch.h.
 *
 * The work of a job's step is the (lower) median over its ranks. Its largest would
 * explain a replica that is given more than the others, its sum a part of that;
 * both have to be found. What varies from step to step is judged by the
 * largest, since the others wait for that rank.
 */
#include "config.h"

#include "detect/watch_impl.h"

#include "base/mem.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum unit { UNIT_NONE, UNIT_MB, UNIT_TOKENS, UNIT_FLOPS };

/* What a step tells of its work; UNIT_NONE: nothing. */
static enum unit unit_of(const struct ep_watch_step *x)
{
    if (x->flops > 0)
        return UNIT_FLOPS;
    if (x->tokens > 0)
        return UNIT_TOKENS;
    return x->mb > 0 ? UNIT_MB : UNIT_NONE;
}

static double amount_of(const struct ep_watch_step *x, enum unit u)
{
    switch (u) {
    case UNIT_FLOPS:
        return x->flops;
    case UNIT_TOKENS:
        return x->tokens;
    case UNIT_MB:
        return x->mb > 0 ? (double)x->mb : 0;
    default:
        return 0;
    }
}

/* Work of one micro-batch; 0 if it is not told. */
static double one_of(const struct ep_watch_step *x)
{
    double all = x->flops > 0 ? x->flops : x->tokens;

    return x->mb > 0 && all > 0 && isfinite(all) ? all / (double)x->mb : 0;
}

void ep_watch_load_begin(struct job *job, int i)
{
    job->load[i].n = job->load[i].moved = 0;
    job->load[i].most = 0;
}

/* Are its calls others than when the job's phase began? */
static bool has_moved(struct series *s, int64_t phase)
{
    if (s->job_phase != s->job->phase || !s->phase) {
        s->job_phase = s->job->phase;
        s->phase = phase;
    }
    return s->phase != phase;
}

void ep_watch_load_add(struct series *s, int i, const struct ep_watch_step *x)
{
    struct job *job = s->job;
    struct load *l = &job->load[i];
    enum unit u = unit_of(x);
    double all;

    l->moved += x->phase && has_moved(s, x->phase);
    if (u > job->unit) { /* better than what the others have told so far */
        job->unit = u;
        for (int k = 0; k < OPEN_STEPS; k++)
            job->load[k].n = 0;
    }
    all = amount_of(x, job->unit);
    if (!(all > 0) || !isfinite(all))
        return;
    l->all = ep_grow(l->all, &l->cap, l->n + 2, sizeof *l->all);
    l->mb = ep_grow(l->mb, &l->mb_cap, l->n + 2, sizeof *l->mb);
    l->all[l->n] = all;
    l->mb[l->n++] = x->mb > 0 ? (double)x->mb : (double)NAN;
    l->most = fmax(l->most, all);
}

void ep_watch_free_loads(struct job *job)
{
    for (int i = 0; i < OPEN_STEPS; i++) {
        free(job->load[i].all);
        free(job->load[i].mb);
    }
}

/*
 * The lower of the two middle values of an even number: one replica of two that
 * is given more is not all. There is room for one more.
 */
static double lower_median(double *v, size_t n)
{
    if (n % 2 == 0)
        v[n++] = 0;
    return ep_median(v, n);
}

static void fill(struct job *job, const struct open_step *o, int i,
                 const struct ep_watch_step *x, struct ep_work_amount *out)
{
    job->phase += i >= 0 && job->load[i].moved * 2 > (size_t)o->n;
    out->phase = job->phase + 1; /* 0 is none */
    out->unit = job->unit;
    if (i < 0) {
        out->unit = unit_of(x);
        out->all = out->most = amount_of(x, out->unit);
        out->one = out->unit == UNIT_MB ? 0 : one_of(x);
        if (x->phase)
            out->phase = x->phase;
    } else if (job->load[i].n) {
        struct load *l = &job->load[i];
        double mb = lower_median(l->mb, l->n); /* NaN if one is */

        out->all = lower_median(l->all, l->n);
        out->most = l->most;
        out->one = out->unit == UNIT_MB || isnan(mb) ? 0 : out->all / mb;
        l->n = 0;
    }
    out->complete = out->unit == UNIT_FLOPS;
    if (!isfinite(out->all))
        out->all = out->most = out->one = 0;
}

void ep_watch_job_step(struct ep_watch *w, struct job *job,
                       const struct open_step *o, int i,
                       const struct ep_watch_step *x)
{
    struct ep_work_step s = {.step = o->step,
                             .n = o->n,
                             .ts = o->ts,
                             .end = o->end,
                             .dur = o->dur,
                             .scale = 1};
    struct ep_work_step out[EP_WORK_HOLD];
    uint32_t n;

    fill(job, o, i, x, &s.work);
    n = ep_work_push(&job->work, &s, out);
    for (uint32_t k = 0; k < n; k++)
        ep_watch_push_job(w, job, &out[k], o->end);
    ep_watch_early(w, &job->ranks, o->step, o->end);
    ep_watch_count_step(w, &job->ranks, w->config.window, o->end);
}

static void fill_rank(const struct series *s, const struct ep_watch_step *x,
                      struct ep_work_amount *out)
{
    enum unit u = unit_of(x);
    double one = one_of(x);

    *out = (struct ep_work_amount){.unit = u, .phase = x->phase};
    out->complete = u == UNIT_FLOPS;
    if (s->basis == BASIS_PER_MB) {
        out->all = out->one = one;
    } else {
        out->all = amount_of(x, u);
        out->one = u == UNIT_MB ? 0 : one;
    }
    if (!isfinite(out->all))
        out->all = 0;
}

int ep_watch_rank_step(struct ep_watch *w, struct series *s, struct sample *v,
                       const struct ep_watch_step *x, double end,
                       struct ep_error *err)
{
    bool alone = x->phase || ep_watch_members(s)->n == 1;
    struct ep_work_step in = {
        .step = v->step, .ts = v->ts, .dur = v->value, .scale = 1};
    struct ep_work_step out[EP_WORK_HOLD];
    uint32_t n;

    v->work = one_of(x);
    fill_rank(s, x, &in.work);
    if (!alone && s->work && s->work->now.scale == 0 && !s->work->nheld) {
        free(s->work); /* it was alone for a moment: nothing was learned */
        s->work = NULL;
    }
    if (!s->work && !alone) {
        v->value = ep_work_steady(&s->slope, v->value, in.work.all);
        return ep_watch_push(w, s, v, end, err);
    }
    if (!s->work)
        s->work = ep_calloc(1, sizeof *s->work);
    if (!alone) /* others have come: they tell what is common */
        in.work = s->work->now.work;
    n = ep_work_push(s->work, &in, out);
    for (uint32_t i = 0; i < n; i++) {
        struct sample y = {out[i].step, out[i].ts, out[i].dur, out[i].work.one};
        int rc = ep_watch_push(w, s, &y, end, err);

        if (rc < 0)
            return rc;
    }
    return 0;
}

void ep_watch_forget_work(struct series *s)
{
    free(s->work);
    s->work = NULL;
    memset(&s->slope, 0, sizeof s->slope);
}

/* Median work of a micro-batch since a time or step, or before it. */
static double work_at(const struct series *s, double since_ts,
                      int64_t since_step, bool before)
{
    double v[EP_WATCH_WINDOW_MAX];
    size_t n = 0;

    for (int i = 0; i < s->kept; i++) {
        const struct sample *x = &s->ring[i];
        bool old = since_step >= 0 ? x->step < since_step : x->ts < since_ts;

        if (old == before && x->work > 0 && x->ts >= s->job->restart_ts)
            v[n++] = x->work;
    }
    return ep_median(v, n);
}

double ep_watch_work_factor_since(const struct series *s,
                                  const struct ep_change *c)
{
    return work_at(s, c->since_ts, c->since_step, false) /
           work_at(s, c->since_ts, c->since_step, true);
}

/* From this many ranks on one more or less does not move their median. */
#define MANY_PEERS 64

/* The median work of the others, or of all where they are many. */
static double work_of_peers(struct ep_watch *w, const struct series *s,
                            double since_ts)
{
    const struct members *m = ep_watch_members(s);
    struct job *job = s->job;
    bool many = m == &job->ranks && m->n >= MANY_PEERS;
    size_t n = 0;

    /* asked by each of many that are judged together */
    if (many && job->work_since.stamp == job->incidents.stamp &&
        job->work_since.since_ts == since_ts)
        return job->work_since.value;
    for (size_t i = 0; i < m->n; i++) {
        double x = m->v[i] == s && !many
                       ? (double)NAN
                       : work_at(m->v[i], since_ts, -1, false);

        if (!isnan(x))
            w->work[n++] = x;
    }
    if (!many)
        return ep_median(w->work, n);
    job->work_since.value = ep_median(w->work, n);
    job->work_since.stamp = job->incidents.stamp;
    job->work_since.since_ts = since_ts;
    return job->work_since.value;
}

double ep_watch_work_over_peers(struct ep_watch *w, const struct series *s,
                                double since_ts)
{
    double own = work_at(s, since_ts, -1, false);

    return isnan(own) ? own : own / work_of_peers(w, s, since_ts);
}

double ep_watch_shared(const struct series *s, const struct ep_change *c,
                       double excess)
{
    return ep_watch_work_factor_since(s, c) > 1 + EP_WORK_SAME
               ? c->factor / excess
               : 1;
}
