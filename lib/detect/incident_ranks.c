/* SPDX-License-Identifier: Apache-2.0 */
/* incident_ranks.c - ranks that became slow, together; see incident.h. */
#include "config.h"

#include "detect/incident.h"

#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

/* Standard errors by which a rank is slower than the others of its set. */
#define ON_TOP 4

/* Values at the ends of what a double holds have any ratio. */
static double bounded(double factor)
{
    return factor > FACTOR_MOST ? FACTOR_MOST : factor;
}

double ep_incident_standing(const struct series *s, const struct ep_change *c,
                            enum ground ground)
{
    if (ground == GROUND_PEERS)
        /* the slow and the fast have other peers: who is faster is not slow */
        return s->peer.factor > 0 ? fmax(1, s->peer.factor) : (double)NAN;
    return bounded(ep_watch_factor_since(s, c) * s->handicap);
}

double ep_incident_common(double *v, size_t n)
{
    /* one of them, and not between two: they may be far apart */
    double at = n > 1 ? (ceil(COMMON * (double)n) - 1) / (double)(n - 1) : 0;

    return ep_quantile(v, n, at);
}

static bool is_near(const struct incident *in, const struct ep_change *c)
{
    return in->ep.step >= 0 && c->since_step >= 0 &&
           llabs((long long)(in->ep.step - c->since_step)) < NEAR_STEPS;
}

double ep_incident_earlier(const struct series *s, const struct ep_change *c,
                           bool shared)
{
    double effects = 1;

    for (const struct link *l = s->links; l; l = l->next)
        if ((shared || l->in->kin != KIN_ALL) &&
            (!is_near(l->in, c) || (c->worsening && l->in->kin != KIN_RANK)))
            effects *= l->effect;
    return effects;
}

double ep_incident_survey(struct ep_watch *w, const struct job *job,
                          const struct series *like, const struct ep_change *c,
                          enum ground ground, double *y)
{
    double common;
    size_t n = 0;

    for (size_t i = 0; i < job->ranks.n; i++) {
        const struct series *r = job->ranks.v[i];

        y[i] = (double)NAN;
        if (!r->pace || (r->basis == BASIS_DUR) != (like->basis == BASIS_DUR))
            continue;
        y[i] = log(ep_incident_standing(r, c, ground) /
                   (ground == GROUND_JOB ? ep_incident_effects(r, NULL)
                                         : ep_incident_earlier(r, c, true)));
        if (!isnan(y[i]))
            w->work[n++] = y[i];
    }
    common = n ? ep_incident_common(w->work, n) : 0;
    for (size_t i = 0; i < job->ranks.n; i++)
        y[i] -= common;
    return common;
}

/* ==== More of what is known ==== */

static void wake_all(struct series *s, const struct ep_change *c)
{
    for (struct link *l = s->links; l; l = l->next)
        ep_incident_wake(l->in, c);
}

/* An incident of several ranks that s belongs to and is as slow as. */
static struct incident *belongs_to(const struct ep_watch *w,
                                   const struct series *s, double now)
{
    const struct incidents *all = &s->job->incidents;
    size_t left = s->scope == EP_SCOPE_RANK ? all->groups : 0;

    for (size_t i = 0; i < all->n && left; i++) {
        struct incident *in = all->v[i];

        if (in->kin == KIN_RANK || !in->like)
            continue;
        left--;
        if (in->n && ep_incident_akin(in->kin, s, in->like) &&
            now < in->ep.factor * (1 + w->config.pace.min_change))
            return in;
    }
    return NULL;
}

double ep_incident_shared(const struct series *s)
{
    double effects = 1;

    for (const struct link *l = s->links; l; l = l->next)
        if (l->in->kin == KIN_ALL)
            effects *= l->effect;
    return effects;
}

/*
 * What the test itself says of the rank that it found, less what all do, if that
 * was not told.
 */
static double own_standing(const struct suspicion *x)
{
    return bounded(
        x->ground == GROUND_PEERS
            ? x->c.factor
            : fmin(x->c.factor, x->excess * ep_incident_shared(x->s)) *
                  x->s->handicap);
}

/* The incident of this rank alone. */
static struct link *own_incident(const struct series *s)
{
    for (struct link *l = s->links; l; l = l->next)
        if (l->in->n == 1 && l->in->kin == KIN_RANK)
            return l;
    return NULL;
}

/*
 * Is a rank slower than the set it is in by more than its own scatter since,
 * and that of the few samples by which the set was told? Of pauses, the first
 * are not what a rank will have.
 */
static bool is_on_top(const struct ep_watch *w, const struct suspicion *x,
                      double more)
{
    const struct series *s = x->s;
    double v[EP_WATCH_WINDOW_MAX], mid, sigma;
    size_t n = 0;

    for (int i = 0; i < s->kept && i < w->config.window; i++)
        if (s->ring[i].ts >= x->c.since_ts)
            v[n++] = log(s->ring[i].value);
    mid = ep_median(v, n);
    sigma = EP_MAD_TO_SIGMA * ep_mad(v, n, mid);
    return !(log(more) <
             ON_TOP * 1.2533 * sigma *
                 sqrt(1.0 / (double)n + 1.0 / w->config.pace.confirm));
}

bool ep_incident_absorb(struct ep_watch *w, const struct suspicion *x)
{
    struct series *s = x->s;
    double now = own_standing(x), more;
    struct link *l = s->links;
    struct incident *in;

    if (!l) {
        in = belongs_to(w, s, now);
        if (!in)
            return false;
        ep_incident_join(in, s, now);
        ep_incident_wake(in, &x->c);
        return true;
    }
    more = now / ep_incident_effects(s, NULL);
    wake_all(s, &x->c);
    return more < 1 + w->config.pace.min_change ||
           (l->in->n > 1 && !is_on_top(w, x, more));
}

/* The rank alone, that has an incident of its own, is slower: it is worse. */
static bool is_worse(struct ep_watch *w, const struct suspicion *x)
{
    struct link *l = own_incident(x->s);

    if (!l)
        return false;
    l->effect *= own_standing(x) / ep_incident_effects(x->s, NULL);
    ep_incident_tell_ranks(w, l->in, x, NULL);
    return true;
}

/* ==== One more ==== */

static struct incident *find_same(const struct job *job,
                                  const struct where *where)
{
    const struct incidents *all = &job->incidents;

    for (size_t i = 0; i < all->n && where->kin != KIN_RANK; i++) {
        struct incident *in = all->v[i];

        if (in->kin == where->kin && in->n && in->like &&
            ep_incident_akin(in->kin, in->like, where->like))
            return in;
    }
    return NULL;
}

/* Does the change of rank i belong to what where says? */
static bool is_hit(const struct job *job, const struct where *where,
                   const double *y, size_t i, double least)
{
    return y[i] >= least &&
           ep_incident_akin(where->kin, job->ranks.v[i], where->like);
}

/*
 * An incident that began with this change and was taken for less: of one of
 * these ranks, and of no rank that is not among them.
 */
static struct incident *taken_for_less(const struct series *s,
                                       const struct where *where,
                                       const struct ep_change *c)
{
    for (struct link *l = s->links; l; l = l->next) {
        bool inside = is_near(l->in, c);

        for (size_t i = 0; inside && i < l->in->n; i++)
            inside =
                ep_incident_akin(where->kin, l->in->link[i]->s, where->like);
        if (inside)
            return l->in;
    }
    return NULL;
}

/*
 * The job's, of no known place, that began with this change: in the same step,
 * give or take what a median of so few can err.
 */
static struct incident *of_the_job(const struct job *job,
                                   const struct ep_change *c)
{
    const struct incidents *all = &job->incidents;

    for (size_t i = 0; i < all->n; i++)
        if (all->v[i]->ground == GROUND_JOB && all->v[i]->kin == KIN_ALL &&
            !all->v[i]->n && all->v[i]->turn_step >= 0 &&
            llabs((long long)(all->v[i]->turn_step - c->since_step)) <=
                SAME_STEPS)
            return all->v[i];
    return NULL;
}

/* The incidents that are part of in; *in may be one that was there. */
static struct incident *gather(struct ep_watch *w, const struct suspicion *x,
                               const struct where *where, const double *y)
{
    struct job *job = x->s->job;
    struct incident *in = NULL, *less;
    double least = y ? SHARE * y[x->s->index] : 0;

    for (size_t i = 0; y && i < job->ranks.n; i++) {
        if (!is_hit(job, where, y, i, least))
            continue;
        while ((less = taken_for_less(job->ranks.v[i], where, &x->c)) &&
               less != in) {
            if (in)
                ep_incident_fold(w, less, in, &x->c, x->now);
            else
                in = less;
        }
    }
    if (!in && x->ground == GROUND_PACE)
        in = of_the_job(job, &x->c);
    if (!in)
        return ep_incident_new(job, where->kin, x->ground, where->like);
    ep_incident_wake(in, &x->c);
    if (in->seek > 0)
        job->incidents.seeking--;
    in->seek = 0;
    in->ground = x->ground;
    ep_incident_set_kin(in, where->kin, where->like);
    return in;
}

/* How much slower than its past it was when its past was not known yet. */
static void set_handicap(struct series *s)
{
    double own =
        ep_changepoint_level(s->pace) / ep_changepoint_healthy(s->pace);

    s->handicap = fmax(1, s->peer.factor / (own > 0 ? own : 1));
    s->peer.open = true;
}

static void add_rank(struct incident *in, struct series *s, double effect,
                     bool on_top)
{
    struct link *l = ep_incident_link(in, s);

    if (l)
        l->effect = on_top ? l->effect * effect : effect;
    else
        ep_incident_join(in, s, effect);
    if (in->ground == GROUND_PEERS)
        set_handicap(s);
}

void ep_incident_place(struct ep_watch *w, const struct suspicion *x,
                       const double *y)
{
    struct job *job = x->s->job;
    struct where where = {KIN_RANK, KIN_RANK, x->s};
    struct incident *in;
    bool on_top;

    if (y && x->s->scope == EP_SCOPE_RANK && y[x->s->index] > 0)
        ep_incident_where(job, x->s, y,
                          x->c.since_step <= job->first_step + NEAR_STEPS,
                          &where);
    else
        y = NULL;
    if (where.kin == KIN_RANK && is_worse(w, x))
        return;
    in = find_same(job, &where);
    on_top = in && !is_near(in, &x->c);
    if (!in)
        in = gather(w, x, &where, y);
    if (where.kin == KIN_RANK || !y) {
        double effects = ep_incident_effects(x->s, in);

        add_rank(in, x->s,
                 effects > 1 ? own_standing(x) / effects
                             : x->excess * x->s->handicap,
                 false);
    } else {
        for (size_t i = 0; i < job->ranks.n; i++)
            if (is_hit(job, &where, y, i, SHARE * y[x->s->index]))
                add_rank(in, job->ranks.v[i], exp(y[i]), on_top);
    }
    ep_incident_tell_ranks(w, in, x, &where);
}
