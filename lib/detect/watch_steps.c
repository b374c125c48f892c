/* SPDX-License-Identifier: Apache-2.0 */
/* watch_steps.c - the steps of ranks, workers and jobs; see watch.h. */
#include "config.h"

#include "detect/watch_impl.h"

#include "base/mem.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Samples after a restart that say nothing about the pace. */
#define RESTART_WARMUP 3

double ep_watch_factor_since(const struct ep_watch *w, const struct series *s,
                             const struct ep_change *c)
{
    int64_t window = w->config.window;
    double v[EP_WATCH_WINDOW_MAX], peak = 0;
    int64_t have = s->steps < window ? s->steps : window;
    size_t n = 0;

    if (!s->pace)
        return (double)NAN;
    for (int64_t i = 0; i < have; i++)
        if (s->ring[i].step >= c->since_step) {
            v[n++] = s->ring[i].value;
            peak = fmax(peak, s->ring[i].value);
        }
    return (n && c->kind == EP_CHANGE_SPIKE ? peak : ep_median(v, n)) /
           ep_changepoint_healthy(s->pace);
}

double ep_watch_common_factor(struct ep_watch *w, const struct job *job,
                              const struct series *s, const struct ep_change *c,
                              size_t *n)
{
    size_t k = 0;

    for (size_t i = 0; i < job->nranks; i++) {
        const struct series *r = job->ranks[i];
        double f;

        if (r == s || (!s && r->basis == BASIS_DUR))
            continue;
        f = ep_watch_factor_since(w, r, c);
        if (!isnan(f))
            w->work[k++] = f;
    }
    if (n)
        *n = k;
    return ep_median(w->work, k);
}

/* Does the rest of the job show the change of s as well? */
static bool is_common(struct ep_watch *w, const struct series *s,
                      const struct ep_change *c)
{
    double common = ep_watch_common_factor(w, s->job, s, c, NULL);

    if (isnan(common))
        return false;
    return c->factor < (1 + w->config.pace.min_change) * common;
}

static void report_change(struct ep_watch *w, struct series *s,
                          const struct ep_change *c, double now)
{
    struct ep_finding f = {
        .kind = c->kind == EP_CHANGE_ONSET    ? EP_FINDING_ONSET
                : c->kind == EP_CHANGE_RELIEF ? EP_FINDING_RELIEF
                                              : EP_FINDING_SPIKE,
        .ts = now,
        .since = c->since_ts,
        .step = c->since_step,
        .factor = c->factor,
        .p = c->p,
        .gpu_hours = (double)NAN,
    };

    f.cause = s->scope == EP_SCOPE_JOB ? ep_verdict_job(w, s->job, c)
                                       : ep_verdict_rank(w, s, c);
    f.evidence = w->text.ptr;
    if (c->kind == EP_CHANGE_RELIEF) {
        f.cause = s->ep.cause;
        if (s->scope == EP_SCOPE_JOB && !c->partial) {
            size_t n = s->job->nranks ? s->job->nranks : 1;

            f.gpu_hours = s->job->lost * (double)n / 3600;
        }
    }
    ep_watch_report(w, s, c->kind == EP_CHANGE_SPIKE ? NULL : &s->ep, NULL, &f);
    if (c->kind == EP_CHANGE_RELIEF && !c->partial)
        s->ep.open = false;
}

static void consider(struct ep_watch *w, struct series *s,
                     const struct ep_change *c, double now)
{
    if (s->scope != EP_SCOPE_JOB) {
        /* what all ranks do is the job's affair */
        if (c->kind != EP_CHANGE_RELIEF && !c->worsening &&
            is_common(w, s, c)) {
            if (c->kind == EP_CHANGE_ONSET)
                s->muted = c->episode;
            return;
        }
        if (c->kind == EP_CHANGE_RELIEF && s->muted == c->episode)
            return;
        if (c->worsening && s->muted == c->episode) {
            if (is_common(w, s, c))
                return;
            s->muted = 0;
        }
    }
    report_change(w, s, c, now);
}

/* One more value of a series; dur is for the end of the interval. */
static int push(struct ep_watch *w, struct series *s, const struct sample *x,
                double end, struct ep_error *err)
{
    struct ep_change change[EP_CHANGEPOINT_MAX_EVENTS];
    int n = 0;

    if (!s->pace) {
        s->pace = ep_changepoint_new(&w->config.pace, err);
        if (!s->pace)
            return EP_EDOM;
        s->ring = ep_calloc((size_t)w->config.window, sizeof *s->ring);
    }
    if (s->unjudged > 0)
        s->unjudged--;
    else
        n = ep_changepoint_push(s->pace, x->ts, x->step, x->value, change);
    if (n < 0)
        return ep_error_set(err, EP_EDOM, "step time of 0");
    s->ring[s->steps % w->config.window] = *x;
    s->steps++;
    for (int i = 0; i < n; i++)
        consider(w, s, &change[i], end);
    return 0;
}

static void push_job(struct ep_watch *w, struct job *job,
                     const struct open_step *o)
{
    struct sample x = {o->step, o->ts, o->dur};
    struct series *s = job->own;
    double healthy;

    s->last_ts = o->ts;
    s->last_step = o->step;
    /* dur was checked when it came in */
    if (push(w, s, &x, o->end, NULL) < 0)
        return;
    healthy = ep_changepoint_healthy(s->pace);
    if (!s->ep.open)
        job->lost = 0;
    else if (o->dur > healthy)
        job->lost += o->dur - healthy;
    if (++job->since_peers >= w->config.window) {
        job->since_peers = 0;
        ep_watch_compare_ranks(w, job, o->end);
    }
}

/* Pass on all open steps below a number, lowest first. */
void ep_watch_close_steps(struct ep_watch *w, struct job *job, int64_t below)
{
    for (;;) {
        struct open_step *least = NULL;

        for (int i = 0; i < OPEN_STEPS; i++) {
            struct open_step *o = &job->open[i];

            if (o->n && o->step < below && (!least || o->step < least->step))
                least = o;
        }
        if (!least)
            return;
        push_job(w, job, least);
        job->closed = least->step;
        least->n = 0;
    }
}

/* A rank's step counts for the job's: the longest dur of all ranks. */
static void add_to_job(struct ep_watch *w, struct job *job,
                       const struct ep_watch_step *s)
{
    struct open_step *o = NULL;

    ep_watch_close_steps(w, job, s->step - OPEN_STEPS + 2);
    if (s->step <= job->closed)
        return; /* a rank that is late: the step was judged without it */
    for (int i = 0; i < OPEN_STEPS; i++)
        if (job->open[i].n && job->open[i].step == s->step)
            o = &job->open[i];
    for (int i = 0; i < OPEN_STEPS && !o; i++)
        if (!job->open[i].n)
            o = &job->open[i];
    if (!o)
        return;
    if (!o->n || s->dur > o->dur)
        o->dur = s->dur;
    if (!o->n || s->ts < o->ts)
        o->ts = s->ts;
    if (!o->n || s->ts + s->dur > o->end)
        o->end = s->ts + s->dur;
    o->step = s->step;
    o->n++;
    if ((size_t)o->n >= job->nranks)
        ep_watch_close_steps(w, job, s->step + 1);
}

/* What the values of this step are, and the value; 0 is no value. */
static enum basis value_of(const struct ep_watch_step *s, double *value)
{
    *value = s->dur;
    if (isnan(s->busy))
        return BASIS_DUR;
    if (s->mb < 0) {
        *value = s->busy;
        return BASIS_BUSY;
    }
    *value = s->mb ? s->busy / (double)s->mb : 0;
    return BASIS_PER_MB;
}

/* The step number fell: the job was restarted. */
static void restart(struct ep_watch *w, struct series *s, int64_t step)
{
    struct job *job = s->job;

    s->unjudged = RESTART_WARMUP;
    if (job->closed >= step && s->scope == EP_SCOPE_RANK) {
        ep_watch_close_steps(w, job, INT64_MAX);
        job->closed = -1;
        job->own->unjudged = RESTART_WARMUP;
    }
}

static int check_step(const struct series *s, const struct ep_watch_step *x,
                      double value, enum basis basis, struct ep_error *err)
{
    if (x->ts < s->last_ts)
        return ep_error_set(
            err, EP_EDOM, "time runs backwards by %.6g s (%s, step %lld)",
            s->last_ts - x->ts, *s->id ? s->id : "job", (long long)x->step);
    if (!(x->dur > 0) || (!(value > 0) && !(basis == BASIS_PER_MB && !x->mb)))
        return ep_error_set(err, EP_EDOM, "%s is 0",
                            x->dur > 0 ? "busy" : "dur");
    return 0;
}

int ep_watch_step(struct ep_watch *w, const struct ep_watch_step *x,
                  struct ep_error *err)
{
    struct job *job = ep_watch_job(w, x->job, err);
    struct series *s;
    struct sample sample = {.step = x->step, .ts = x->ts};
    enum basis basis = value_of(x, &sample.value);
    int rc;

    if (!job)
        return EP_ELIMIT;
    s = ep_watch_series(w, job, x->rank, x->worker, err);
    if (s && !job->own)
        job->own = ep_watch_series(w, job, -1, (struct ep_span){"", 0}, err);
    if (!s || !job->own)
        return EP_ELIMIT;
    rc = check_step(s, x, sample.value, basis, err);
    if (rc < 0)
        return rc;
    if (x->host.len && !s->host)
        s->host = ep_strndup(x->host.ptr, x->host.len);
    if (x->step < s->last_step)
        restart(w, s, x->step);
    if (s->scope == EP_SCOPE_JOB) {
        job->told = true;
        push_job(
            w, job,
            &(struct open_step){x->step, 1, x->ts, x->dur, x->ts + x->dur});
        return 0;
    }
    if (s->basis == BASIS_NONE)
        s->basis = basis;
    /* a step that tells something else than the others is not comparable */
    if (basis == s->basis && sample.value > 0)
        rc = push(w, s, &sample, x->ts + x->dur, err);
    s->last_ts = x->ts;
    s->last_step = x->step;
    if (rc == 0 && s->scope == EP_SCOPE_RANK && !job->told)
        add_to_job(w, job, x);
    return rc;
}

int ep_watch_cpu_share(struct ep_watch *w, struct ep_span job_name,
                       int64_t rank, double ts, double value,
                       struct ep_error *err)
{
    struct job *job;
    struct series *s;

    if (!(value >= 0) || rank < 0)
        return ep_error_set(err, EP_EDOM, "cpu_share of %g", value);
    job = ep_watch_job(w, job_name, err);
    if (!job)
        return EP_ELIMIT;
    s = ep_watch_series(w, job, rank, (struct ep_span){"", 0}, err);
    if (!s)
        return EP_ELIMIT;
    if (!s->shares)
        s->shares = ep_calloc(SHARES, sizeof *s->shares);
    s->shares[s->nshares++ % SHARES] = (struct sample){-1, ts, value};
    return 0;
}
