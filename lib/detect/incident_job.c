/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incident_job.c - what the pace of the job adds to what its ranks show.
 *
 * A slower job is explained by an incident of ranks, if there is one that began
 * or grew with it and makes up for half of the change at least, in logarithms;
 * else by a rank that works longer, though not enough for its own test; else by
 * all that work longer alike; and if none does, by communication.
 */
#include "config.h"

#include "detect/incident.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Ranks of an incident that are asked how slow they are. */
#define ASKED 255

/* Between two levels of what grows. */
#define GROWS_STEPS 32

/* Standard errors by which a rank stands out that explains a slower job. */
#define STANDS_OUT 4

/*
 * Logarithm of what its ranks show more than was told, and than all others; the
 * survey says what.
 */
static double growth(struct ep_watch *w, const struct incident *in)
{
    size_t n = 0;

    for (size_t i = 0; i < in->n && i < ASKED; i++) {
        const struct series *s = in->link[i]->s;

        if (s->scope == EP_SCOPE_RANK && !isnan(w->survey[s->index]))
            w->work[n++] = w->survey[s->index];
    }
    return n ? ep_median(w->work, n) : 0;
}

/*
 * Does an incident explain that the job became slower by g? It began, or was
 * told to have grown, with the job; or it has grown since. What took many steps
 * to be found is dated no better than that. What grows is told in levels, and
 * not the same as those of the job: then the job is to be slower in all than it
 * is.
 */
static bool explains(struct ep_watch *w, const struct incident *in,
                     const struct suspicion *x, double g)
{
    int64_t at =
        in->held_turn == in->turn_step ? in->held_since : in->turn_step;
    int64_t since = x->c.since_step, off = llabs((long long)(at - since));
    int64_t age = x->step - since;
    bool with = at >= 0 && off < (age > NEAR_STEPS ? age : NEAR_STEPS);
    bool grows = in->shows && in->change.worsening && x->c.worsening &&
                 since >= in->turn_step && since - in->turn_step <= GROWS_STEPS;

    if (in->resting || !in->ep.open)
        return false;
    return (with ? log(in->gain) : growth(w, in)) >= SHARE * log(g) ||
           (grows && x->c.factor <= in->ep.factor);
}

static bool is_explained(struct ep_watch *w, struct job *job,
                         const struct suspicion *x, double g)
{
    struct incidents *all = &job->incidents;
    bool found = false;

    for (size_t i = 0; i < all->n; i++) {
        struct incident *in = all->v[i];

        if (in->ground != GROUND_JOB && explains(w, in, x, g)) {
            in->held_turn = in->turn_step;
            in->held_since = x->c.since_step;
            found = true;
        }
    }
    return found;
}

/* What the busy times of the ranks say of a change of the job. */
struct busy {
    struct series *worst;
    double top, common; /* factors; that of the worst, and of the median */
    size_t n;
};

/*
 * Ranks have come to longer micro-batches some time: by that factor they work
 * longer than when they were fastest, and are none the slower.
 */
static double longer(struct ep_watch *w, const struct job *job)
{
    size_t n = 0;

    for (size_t i = 0; i < job->ranks.n; i++) {
        const struct series *s = job->ranks.v[i];

        if (s->basis != BASIS_DUR && s->pace)
            w->work[n++] = s->shared > 0 ? s->shared : 1;
    }
    return n ? ep_median(w->work, n) : 1;
}

static struct busy ask_ranks(struct ep_watch *w, const struct job *job,
                             const struct ep_change *c)
{
    struct series like = {.basis = BASIS_BUSY};
    struct busy b = {NULL, 0, 1, 0};
    double top = (double)-INFINITY;

    if (!job->ranks.n)
        return b;
    b.common = exp(ep_incident_survey(w, job, &like, c, GROUND_JOB, w->survey));
    b.common /= longer(w, job);
    for (size_t i = 0; i < job->ranks.n; i++) {
        double y = w->survey[i];

        if (isnan(y))
            continue;
        b.n++;
        if (y > top) {
            top = y;
            b.worst = job->ranks.v[i];
        }
    }
    b.top = b.n > 1 ? exp(top) : b.common;
    return b;
}

/* Is what it shows more than its noise? Steps since the change: at least n. */
static bool stands_out(const struct series *s, double factor, int64_t n)
{
    double noise = ep_changepoint_noise(s->pace);

    return log(factor) * sqrt((double)(n > 1 ? n : 1)) >=
           STANDS_OUT * 1.2533 * (noise > 0 ? noise : 0);
}

/*
 * Was it slow in all of the job's slow steps, by half of that? A spike of some
 * is none.
 */
static bool lasts(const struct ep_watch *w, const struct series *s,
                  const struct suspicion *job, double factor)
{
    int window = (int)w->config.window;
    double usual = ep_changepoint_healthy(s->pace) / s->handicap *
                   ep_incident_effects(s, NULL);

    for (int i = 0; i < s->kept; i++) {
        const struct sample *x =
            &s->ring[(s->at + window - s->kept + i) % window];

        if (x->step >= job->c.since_step && x->ts >= s->job->restart_ts &&
            log(x->value / usual) < SHARE * log(factor))
            return false;
    }
    return true;
}

static void place_worst(struct ep_watch *w, struct series *s, double factor,
                        const struct suspicion *job)
{
    double healthy = ep_changepoint_healthy(s->pace) / s->handicap;
    struct suspicion x = *job;

    x.s = s;
    x.ground = GROUND_PACE;
    x.c.worsening = x.c.partial = false;
    x.c.factor = ep_incident_standing(s, &job->c, GROUND_PACE) / s->handicap;
    x.c.before = healthy;
    x.c.after = healthy * x.c.factor;
    x.excess = factor * ep_incident_effects(s, NULL) /
               (ep_incident_shared(s) * s->handicap);
    ep_incident_place(w, &x, w->survey);
}

/* It has no past to be held against: its peers' is that. */
static void place_newcomer(struct ep_watch *w, struct series *s, double factor,
                           const struct suspicion *job)
{
    struct suspicion x = *job;

    x.s = s;
    x.ground = GROUND_PEERS;
    x.c.worsening = x.c.partial = false;
    x.c.factor = x.excess = factor;
    x.c.after = ep_changepoint_level(s->pace);
    x.c.before = x.c.after / factor;
    x.doubt = NULL;
    s->peer.factor = factor;
    s->turn_ts = job->c.since_ts;
    s->turn_step = job->c.since_step;
    if (!ep_incident_absorb(w, &x))
        ep_incident_place(w, &x, NULL);
}

/* ==== The job's own incidents ==== */

void ep_incident_job_text(struct ep_watch *w, const struct ep_change *c)
{
    ep_buf_reset(&w->text);
    ep_buf_adds(&w->text, "step time ");
    ep_num_format_duration(&w->text, c->before);
    ep_buf_adds(&w->text, " -> ");
    ep_num_format_duration(&w->text, c->after);
}

static struct incident *find_own(const struct job *job, const char *cause)
{
    const struct incidents *all = &job->incidents;

    for (size_t i = 0; i < all->n; i++)
        if (all->v[i]->ground == GROUND_JOB && all->v[i]->kin == KIN_ALL &&
            strcmp(all->v[i]->ep.cause, cause) == 0)
            return all->v[i];
    return NULL;
}

/* The change of the job by itself, over what made it slow before. */
static double gain_of(const struct ep_change *c)
{
    return fmin(c->worsening ? c->after / c->before : c->factor, FACTOR_MOST);
}

/* All ranks work longer alike: they are its ranks. */
static void all_ranks(struct ep_watch *w, struct job *job,
                      const struct suspicion *x, const struct busy *b)
{
    struct incident *in = find_own(job, "all-ranks");
    double effect = gain_of(&x->c);

    if (in && in->resting) {
        ep_incident_wake(in, &x->c);
        return;
    }
    if (in)
        effect *= in->ep.factor;
    else
        in = ep_incident_new(job, KIN_ALL, GROUND_JOB, NULL);
    for (size_t i = 0; i < job->ranks.n; i++) {
        struct series *s = job->ranks.v[i];
        double more = exp(w->survey[i]) * b->common;
        struct link *l = ep_incident_link(in, s);

        if (isnan(more))
            continue;
        if (l)
            l->effect *= more;
        else
            ep_incident_join(in, s, more);
    }
    if (!in->ep.open && x->step - x->c.since_step + 1 < NEAR_STEPS) {
        in->change = x->c;
        in->recheck = x->c.since_step + NEAR_STEPS;
    }
    ep_incident_job_text(w, &x->c);
    ep_buf_addf(&w->text, ", median busy time of %zu ranks %.2fx", b->n,
                b->common);
    (void)ep_verdict_ranks(w, EP_SCOPE_JOB, job->ranks.v, job->ranks.n, &x->c,
                           NULL);
    ep_incident_tell(w, in, &x->c, "all-ranks", effect, x->now);
}

/* No rank explains it. */
static void communication(struct ep_watch *w, struct job *job,
                          const struct suspicion *x, const struct busy *b)
{
    const char *cause = b->n > 1 ? "communication" : "unknown";
    double effect = gain_of(&x->c);
    struct incident *in = find_own(job, cause);

    if (ep_incident_confirm(w, job, &x->c, effect, x->now))
        return;
    if (in && in->resting) {
        ep_incident_wake(in, &x->c);
        return;
    }
    if (!in) {
        in = ep_incident_new(job, KIN_ALL, GROUND_JOB, NULL);
        in->change = x->c;
        if (b->n > 1 && ep_incident_locate(w, in, effect, x->now))
            return;
        if (b->n > 1 && w->locate)
            ep_incident_set_seek(in, SEEK_STEPS);
    } else {
        effect *= in->ep.factor;
    }
    ep_incident_job_text(w, &x->c);
    if (b->n)
        ep_buf_addf(&w->text,
                    b->n == 1 ? ", busy time of the %zu rank known unchanged"
                              : ", busy time of %zu ranks unchanged",
                    b->n);
    ep_incident_tell(w, in, &x->c, cause, effect, x->now);
}

void ep_incident_recheck(struct ep_watch *w, struct job *job, int64_t step,
                         double now)
{
    double half = 1 + w->config.pace.min_change / 2;
    struct incident *in = find_own(job, "all-ranks");
    struct busy b;

    if (!in || in->resting || !in->recheck || step < in->recheck)
        return;
    in->recheck = 0;
    ep_incident_unlink(in); /* or it would explain what is asked */
    b = ask_ranks(w, job, &in->change);
    if (b.n < 2)
        return;
    if (b.common >= half) {
        for (size_t i = 0; i < job->ranks.n; i++)
            if (!isnan(w->survey[i]))
                ep_incident_join(in, job->ranks.v[i],
                                 exp(w->survey[i]) * b.common);
        return;
    }
    if (ep_incident_locate(w, in, in->ep.factor, now))
        return;
    if (w->locate)
        ep_incident_set_seek(in, SEEK_STEPS);
    ep_incident_job_text(w, &in->change);
    ep_buf_addf(&w->text, ", busy time of %zu ranks unchanged", b.n);
    ep_incident_tell(w, in, &in->change, "communication", in->ep.factor, now);
}

static void job_onset(struct ep_watch *w, struct job *job,
                      const struct suspicion *x)
{
    double half = 1 + w->config.pace.min_change / 2, g = gain_of(&x->c);
    double factor;
    struct busy b;
    struct series *s;

    b = ask_ranks(w, job, &x->c);
    if (is_explained(w, job, x, g))
        return;
    if (b.n > 1 && b.common >= half && b.top < half) {
        all_ranks(w, job, x, &b);
        return;
    }
    if (b.worst && b.top >= half && log(b.top) >= SHARE * log(g) &&
        stands_out(b.worst, b.top, x->step - x->c.since_step + 1) &&
        lasts(w, b.worst, x, b.top * b.common)) {
        place_worst(w, b.worst, b.top, x);
        (void)is_explained(w, job, x, g);
        return;
    }
    s = ep_verdict_newcomer(w, job, &factor);
    if (s && factor >= 1 + w->config.pace.min_change) {
        place_newcomer(w, s, factor, x);
        return;
    }
    communication(w, job, x, &b);
}

/* ==== Relief ==== */

/* Have its ranks sent anything since? */
static bool is_gone(const struct incident *in, const struct ep_change *c)
{
    for (size_t i = 0; i < in->n; i++)
        if (in->link[i]->s->last_ts >= c->since_ts)
            return false;
    return in->n > 0;
}

/* Do the tests of its ranks tell of its end? */
static bool tells_itself(const struct incident *in)
{
    if (in->ground == GROUND_PEERS)
        return true;
    for (size_t i = 0; i < in->n; i++)
        if (in->link[i]->s->ep.open)
            return true;
    return false;
}

static void job_relief(struct ep_watch *w, struct job *job,
                       const struct suspicion *x)
{
    struct incidents *all = &job->incidents;

    for (size_t i = all->n; i-- > 0;) {
        struct incident *in;

        if (i >= all->n)
            continue; /* what is judged may end others */
        in = all->v[i];
        if (in->resting)
            continue;
        if (in->ground == GROUND_JOB || is_gone(in, &x->c)) {
            ep_incident_job_text(w, &x->c);
            (void)ep_incident_over(w, in, &x->c, x->c.factor, x->now);
        } else if (!tells_itself(in)) {
            ep_incident_review(w, in, x);
        }
    }
}

/* Partly back, and no rank is: which of the job's own has the effect? */
static void job_ease(struct ep_watch *w, struct job *job,
                     const struct suspicion *x)
{
    struct incidents *all = &job->incidents;
    struct incident *best = NULL;
    double fall = x->c.before / x->c.after, least = (double)INFINITY, factor;

    if (all->ease_step >= 0 &&
        llabs((long long)(all->ease_step - x->c.since_step)) <=
            w->config.window)
        return;
    for (size_t i = 0; i < all->n; i++) {
        struct incident *in = all->v[i];
        double off = fabs(log(in->ep.factor / fall));

        /* what has ranks is over when they say so */
        if (in->ground == GROUND_JOB && !in->n && !in->resting && off < least) {
            best = in;
            least = off;
        }
    }
    if (!best)
        return;
    factor = best->ep.factor / fall;
    ep_incident_job_text(w, &x->c);
    if (factor < 1 + w->config.pace.min_change)
        (void)ep_incident_over(w, best, &x->c, fmax(factor, 1), x->now);
    else
        ep_incident_ease(w, best, &x->c, factor, x->now);
}

static void job_spike(struct ep_watch *w, struct job *job,
                      const struct suspicion *x)
{
    struct ep_finding f = {
        .kind = EP_FINDING_SPIKE,
        .ts = x->now,
        .since = x->c.since_ts,
        .step = x->c.since_step,
        .factor = x->c.factor,
        .p = x->c.p,
        .gpu_hours = (double)NAN,
    };

    /* that of a rank is its cause */
    if (job->incidents.spike_step >= 0 &&
        llabs((long long)(job->incidents.spike_step - x->c.since_step)) <= 1)
        return;
    f.cause = ep_verdict_job(w, job, &x->c);
    f.evidence = w->text.ptr;
    ep_watch_report(w, job->own, NULL, NULL, &f);
}

void ep_incident_judge_job(struct ep_watch *w, struct job *job,
                           const struct suspicion *x)
{
    if (x->c.kind == EP_CHANGE_SPIKE)
        job_spike(w, job, x);
    else if (x->c.kind == EP_CHANGE_ONSET)
        job_onset(w, job, x);
    else if (x->c.partial)
        job_ease(w, job, x);
    else
        job_relief(w, job, x);
}
