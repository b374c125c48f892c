/* SPDX-License-Identifier: Apache-2.0 */
/* watch_steps.c - the steps of ranks, workers and jobs; see watch.h. */
#include "config.h"

#include "detect/incident.h"

#include "base/mem.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Samples after a restart that say nothing about the pace. */
#define RESTART_WARMUP 3

/* Others that are asked about a change; the median of more says the same. */
#define ASKED 255

#define STEP_MAX (INT64_C(1) << 53)

struct members *ep_watch_members(const struct series *s)
{
    return s->scope == EP_SCOPE_WORKER ? &s->job->workers : &s->job->ranks;
}

double ep_watch_factor_since(const struct series *s, const struct ep_change *c)
{
    double v[EP_WATCH_WINDOW_MAX], peak = 0;
    size_t n = 0;

    if (!s->pace)
        return (double)NAN;
    for (int i = 0; i < s->kept; i++) {
        const struct sample *x = &s->ring[i];

        /* workers count their own steps */
        if (s->scope == EP_SCOPE_WORKER
                ? x->ts >= c->since_ts
                : x->step >= c->since_step && x->ts >= s->job->restart_ts) {
            v[n++] = x->value;
            peak = fmax(peak, x->value);
        }
    }
    return (n && c->kind == EP_CHANGE_SPIKE ? peak : ep_median(v, n)) /
           ep_changepoint_healthy(s->pace);
}

/*
 * The i-th to be asked of n: all, or ASKED of them, spread evenly by the
 * golden ratio: without a period that could meet that of the machine.
 */
static size_t pick(size_t i, size_t n)
{
    if (n <= ASKED)
        return i;
    return (size_t)((((uint64_t)i * UINT32_C(2654435769) & UINT32_MAX) * n) >>
                    32);
}

/*
 * The factor by which another had become slow on its own before the change:
 * that it still is says nothing of what is new.
 */
static double already(const struct series *r, const struct ep_change *c)
{
    double own = r->ep.open && !r->peer.open && r->ep.since < c->since_ts
                     ? r->ep.factor
                     : 1;

    return fmax(own, ep_incident_earlier(r, c, false) / r->handicap);
}

/*
 * The factor of a change over what the others of the job show since then; they
 * have to tell the same kind of value: the step time of all grows when one is
 * slow. With no others it is the factor itself.
 */
static double excess_of(struct ep_watch *w, const struct series *s,
                        const struct ep_change *c)
{
    const struct members *m = ep_watch_members(s);
    size_t n = m->n < ASKED ? m->n : ASKED, k = 0;

    for (size_t i = 0; i < n; i++) {
        const struct series *r = m->v[pick(i, m->n)];
        double f;

        if (r == s || (r->basis == BASIS_DUR) != (s->basis == BASIS_DUR))
            continue;
        f = ep_watch_factor_since(r, c) / already(r, c);
        if (!isnan(f))
            w->work[k++] = f;
    }
    return k ? c->factor / ep_incident_common(w->work, k) : c->factor;
}

static void suspect(struct ep_watch *w, struct series *s,
                    const struct ep_change *c, double excess, double now)
{
    struct suspicion x = {
        .s = s,
        .c = *c,
        .excess = excess,
        .now = now,
        .step = s->last_step,
        .ground = s->scope == EP_SCOPE_JOB ? GROUND_JOB : GROUND_PACE,
    };

    if (c->kind == EP_CHANGE_ONSET && s->scope != EP_SCOPE_JOB) {
        if (!s->ep.open)
            s->ep.since = c->since_ts;
        s->ep.open = true;
        s->ep.factor = c->factor;
        s->ep.excess = excess;
    } else if (c->kind == EP_CHANGE_RELIEF && s->scope != EP_SCOPE_JOB) {
        s->ep.open = s->ep.open && c->partial;
        s->ep.factor = c->factor;
        s->ep.excess = excess;
    }
    ep_incident_suspect(w, &x);
}

/*
 * Keep the samples from a time on only: peers are to be compared by what a
 * rank does now, and its slow steps would count for a window more.
 */
static void forget_before(const struct ep_watch *w, struct series *s, double ts)
{
    struct sample v[EP_WATCH_WINDOW_MAX] = {{0, 0, 0, 0}};
    int window = (int)w->config.window, n = 0;

    for (int i = 0; i < s->kept; i++) {
        const struct sample *x =
            &s->ring[(s->at + window - s->kept + i) % window];

        if (x->ts >= ts)
            v[n++] = *x;
    }
    memcpy(s->ring, v, (size_t)n * sizeof *v);
    s->kept = n;
    s->at = n % window;
    s->hits = 0;
}

/*
 * Report what a rank or worker does, and leave out what all do: an episode
 * that all share is muted. What then comes on top is the rank's own, until
 * the rank is back among the others; so is what it does before. *c may be
 * changed.
 */
static void consider(struct ep_watch *w, struct series *s, struct ep_change *c,
                     double now)
{
    double least = 1 + w->config.pace.min_change;
    double more = 1 + w->config.pace.min_change / 2;
    double excess = excess_of(w, s, c);
    bool muted = s->muted && s->muted == c->episode;
    bool common = excess < least;

    if (c->kind == EP_CHANGE_SPIKE) {
        if (!common)
            suspect(w, s, c, excess, now);
        return;
    }
    if (c->kind == EP_CHANGE_ONSET) {
        if (!c->worsening || muted) {
            s->muted = common ? c->episode : 0;
            if (!c->worsening || common)
                s->shared = common ? ep_watch_shared(s, c, excess) : 1;
            if (common)
                return;
        } else if (common && s->ep.open) {
            /* the others have come to it: longer sequences, and a relief */
            c->kind = EP_CHANGE_RELIEF;
            c->partial = true;
        } else if (excess < more * s->ep.excess) {
            return;
        }
    }
    if (c->kind == EP_CHANGE_RELIEF) {
        forget_before(w, s, c->since_ts);
        if (!s->ep.open && !s->links)
            return;
        if (s->ep.open && c->partial && common) {
            /* as slow as the others: no straggler any more */
            c->partial = false;
            c->factor = excess;
            s->muted = c->episode;
        } else if (s->ep.open && c->partial && excess * more > s->ep.excess) {
            return;
        }
    }
    if (c->factor != excess && s->shared > 0)
        c->factor /= s->shared;
    suspect(w, s, c, excess, now);
}

int ep_watch_push(struct ep_watch *w, struct series *s, const struct sample *x,
                  double end, struct ep_error *err)
{
    struct ep_change change[EP_CHANGEPOINT_MAX_EVENTS];
    int n;

    if (!s->pace) {
        s->pace = ep_changepoint_new(&w->config.pace, err);
        if (!s->pace)
            return EP_EDOM;
        free(s->ring);
        s->ring = ep_calloc((size_t)w->config.window, sizeof *s->ring);
    }
    if (s->unjudged > 0) {
        s->unjudged--;
        return 0;
    }
    n = ep_changepoint_push(s->pace, x->ts, x->step, x->value, change);
    if (n < 0)
        return ep_error_set(err, EP_EDOM, "step time out of range");
    s->missed = 0;
    s->ring[s->at++] = *x;
    if (s->at == w->config.window)
        s->at = 0;
    if (s->kept < w->config.window)
        s->kept++;
    for (int i = 0; i < n; i++)
        if (s->scope == EP_SCOPE_JOB)
            suspect(w, s, &change[i], change[i].factor, end);
        else
            consider(w, s, &change[i], end);
    return 0;
}

void ep_watch_push_job(struct ep_watch *w, struct job *job,
                       const struct ep_work_step *o, double now)
{
    struct sample x = {o->step, o->ts, o->dur, o->work.one};
    struct series *s = job->own;

    s->last_step = o->step;
    job->incidents.devices = o->n;
    /* dur was checked when it came in */
    if (ep_watch_push(w, s, &x, now, NULL) < 0)
        return;
}

/* What was found in a step that no rank will tell any more. */
static void judge_step(struct ep_watch *w, struct job *job, int64_t step,
                       double now)
{
    ep_incident_judge(w, job, step);
    if (job->incidents.seeking)
        ep_incident_seek(w, job, now);
    if (job->incidents.n)
        ep_incident_recheck(w, job, step, now);
    ep_incident_listen(w, job, now);
    ep_incident_step(w, job, step, now);
    ep_incident_ask(w, job, step, now);
}

/* Pass on all open steps below a number, lowest first. */
static void close_steps(struct ep_watch *w, struct job *job, int64_t below)
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
        if (!job->told)
            ep_watch_job_step(w, job, least, (int)(least - job->open), NULL);
        job->closed = least->step;
        least->n = 0;
        judge_step(w, job, job->closed, least->end);
    }
}

/*
 * No more steps of these will come. A step that less than half of the ranks
 * have told is not the job's.
 */
void ep_watch_end_steps(struct ep_watch *w, struct job *job)
{
    for (int i = 0; i < OPEN_STEPS; i++)
        if ((size_t)job->open[i].n * 2 < job->ranks.n)
            job->open[i].n = 0;
    close_steps(w, job, INT64_MAX);
}

/* The slot of a step. If none is free, the oldest step has waited enough. */
static struct open_step *open_step(struct ep_watch *w, struct job *job,
                                   int64_t step)
{
    struct open_step *v = job->open, *least = v, *most = v, *unused = NULL;

    for (int i = 0; i < OPEN_STEPS; i++) {
        if (!v[i].n)
            unused = &v[i];
        else if (v[i].step == step)
            return &v[i];
        if (v[i].step < least->step)
            least = &v[i];
        if (v[i].step > most->step)
            most = &v[i];
    }
    if (unused)
        return unused;
    if (least->step > step)
        least = most; /* numbers that nobody else came to: forget one */
    else
        close_steps(w, job, least->step + 1);
    least->n = 0;
    return least;
}

/*
 * A rank's step counts for the job's: the longest dur of all ranks. again:
 * the rank has told this step before.
 */
static void add_to_job(struct ep_watch *w, struct series *from,
                       const struct ep_watch_step *s, double end, bool again)
{
    struct job *job = from->job;
    struct open_step *o;

    close_steps(w, job, s->step - OPEN_STEPS + 2);
    if (s->step <= job->closed)
        return; /* a rank that is late: the step was judged without it */
    o = open_step(w, job, s->step);
    if (!o->n) {
        *o = (struct open_step){s->step, 0, s->ts, s->dur, end};
        ep_watch_load_begin(job, (int)(o - job->open));
    }
    if (!again)
        ep_watch_load_add(from, (int)(o - job->open), s);
    o->dur = fmax(o->dur, s->dur);
    o->ts = fmin(o->ts, s->ts);
    o->end = fmax(o->end, end);
    o->n += !again || !o->n;
    if ((size_t)o->n >= job->ranks.n)
        close_steps(w, job, s->step + 1);
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

/* The ring starts anew: what is in it does not compare with what comes. */
static void skip_warmup(struct series *s)
{
    s->unjudged = RESTART_WARMUP;
    s->kept = s->at = 0;
}

/* The step number fell by much: the rank, or the job, was restarted. */
static void restart(struct ep_watch *w, struct series *s,
                    const struct ep_watch_step *x)
{
    struct job *job = s->job;

    skip_warmup(s);
    free(s->host); /* perhaps it is elsewhere now */
    s->host = NULL;
    if (s->scope == EP_SCOPE_JOB) {
        ep_watch_end_steps(w, job);
        job->closed = job->first_step = -1;
        job->restart_ts = x->ts;
        job->ranks.steps = 0;
    }
    /* ranks that restart later are near the first one's step */
    if (s->scope == EP_SCOPE_RANK && !job->told &&
        job->closed - x->step >= OPEN_STEPS) {
        ep_watch_end_steps(w, job);
        job->closed = job->first_step = -1;
        job->restart_ts = x->ts;
        job->ranks.steps = 0;
        skip_warmup(job->own);
    }
}

/*
 * Is the value to be compared with those before? After some of another kind
 * the series starts anew with that kind.
 */
static bool same_basis(struct series *s, enum basis basis)
{
    if (s->basis == basis) {
        s->other = 0;
        return true;
    }
    if (s->basis != BASIS_NONE && ++s->other < EP_WATCH_OTHER)
        return false;
    ep_changepoint_free(s->pace);
    s->pace = NULL;
    ep_watch_forget_work(s);
    s->basis = basis;
    s->other = s->kept = s->at = s->unjudged = 0;
    s->hits = s->clean = 0;
    s->ep.open = s->peer.open = false;
    ep_incident_leave(s);
    s->handicap = 1;
    s->muted = 0;
    return true;
}

static int check_step(const struct ep_watch_step *x, double value,
                      enum basis basis, struct ep_error *err)
{
    if (!isfinite(x->ts) || !isfinite(x->dur) || isinf(x->busy))
        return ep_error_set(err, EP_EDOM, "a time is not finite");
    if (x->step < 0 || x->step > STEP_MAX)
        return ep_error_set(err, EP_EDOM, "step %lld is out of range",
                            (long long)x->step);
    if (!(x->dur > 0) || (!(value > 0) && !(basis == BASIS_PER_MB && !x->mb)))
        return ep_error_set(err, EP_EDOM, "%s is 0",
                            x->dur > 0 ? "busy" : "dur");
    return 0;
}

/* A step that the job tells itself. Its ranks need not be waited for then. */
static void take_job_step(struct ep_watch *w, struct job *job,
                          const struct ep_watch_step *x, double end)
{
    size_t n = job->ranks.n ? job->ranks.n : 1;
    struct open_step o = {x->step, (int64_t)n, x->ts, x->dur, end};

    if (!job->told)
        memset(job->open, 0, sizeof job->open);
    job->told = true;
    ep_watch_job_step(w, job, &o, -1, x);
    /* ranks that tell no steps any more are not waited for */
    if (!job->ranks.n)
        judge_step(w, job, x->step, end);
    else
        ep_incident_judge(w, job, x->step - OPEN_STEPS);
}

static void join(struct ep_watch *w, struct series *s)
{
    struct members *m = ep_watch_members(s);

    s->member = true;
    m->v = ep_grow(m->v, &m->cap, m->n + 1, sizeof(void *));
    m->v[m->n++] = s;
    s->index = m->n - 1;
    w->work = ep_grow(w->work, &w->work_cap, m->n, sizeof *w->work);
    w->survey = ep_grow(w->survey, &w->survey_cap, m->n, sizeof *w->survey);
}

/* The series of a sample, and of the job where it needs one; NULL: too many. */
static struct series *find(struct ep_watch *w, const struct ep_watch_step *x,
                           struct ep_error *err)
{
    struct job *job = ep_watch_job(w, x->job, err);
    struct series *s =
        job ? ep_watch_series(w, job, x->rank, x->worker, err) : NULL;

    if (s && !job->own && s->scope != EP_SCOPE_WORKER) {
        job->own = ep_watch_series(w, job, -1, (struct ep_span){"", 0}, err);
        if (!job->own)
            return NULL;
    }
    return s;
}

int ep_watch_step(struct ep_watch *w, const struct ep_watch_step *x,
                  struct ep_error *err)
{
    struct sample sample = {.step = x->step, .ts = x->ts};
    enum basis basis = value_of(x, &sample.value);
    double end = isfinite(x->ts + x->dur) ? x->ts + x->dur : x->ts;
    struct series *s;
    int rc = check_step(x, sample.value, basis, err);
    bool again;

    if (rc < 0)
        return rc;
    s = find(w, x, err);
    if (!s)
        return EP_ELIMIT;
    if (s->resumed &&
        (x->ts < s->old_ts || (x->ts == s->old_ts && x->step <= s->old_step))) {
        w->known++; /* taken before the state was saved */
        return 0;
    }
    if (x->ts < s->last_ts)
        return ep_error_set(
            err, EP_EDOM, "time runs backwards by %.6g s (%s, step %lld)",
            s->last_ts - x->ts, *s->id ? s->id : "job", (long long)x->step);
    again = x->step == s->last_step;
    if (again && x->ts == s->last_ts)
        return 0;
    if (s->last_step - x->step >= OPEN_STEPS)
        restart(w, s, x);
    s->last_ts = x->ts;
    s->last_step = x->step;
    if (s->scope == EP_SCOPE_JOB) {
        take_job_step(w, s->job, x, end);
        return 0;
    }
    if (!s->member)
        join(w, s);
    if (s->job->first_step < 0)
        s->job->first_step = x->step;
    if (x->host.len && !s->host)
        s->host = ep_strndup(x->host.ptr, x->host.len);
    if (x->place.known)
        s->place = x->place;
    /* without work there is a step, but no pace */
    if (sample.value > 0 && same_basis(s, basis))
        rc = ep_watch_rank_step(w, s, &sample, x, end, err);
    if (rc == 0 && s->scope == EP_SCOPE_RANK) {
        add_to_job(w, s, x, end, again);
        if (x->step <= s->job->closed) /* a rank that is late */
            ep_incident_judge(w, s->job, s->job->closed);
    }
    if (rc == 0 && s->scope == EP_SCOPE_WORKER)
        ep_watch_count_step(w, &s->job->workers,
                            w->config.window * (int64_t)s->job->workers.n, end);
    return rc;
}
