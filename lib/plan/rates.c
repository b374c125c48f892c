/* SPDX-License-Identifier: Apache-2.0 */
/* rates.c - see rates.h. */
#include "config.h"

#include "plan/rates.h"

#include "base/mem.h"
#include "base/stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct sample {
    double ts, pace;
    int64_t step;
};

struct reporter {
    struct sample *ring; /* [window]; NULL: has told no pace yet */
    size_t n, next;
    size_t fresh; /* samples since the last event was taken */
    int64_t group;
    double last_ts;
    double before; /* pace for want of samples since the cut; NaN: none */
    double factor; /* of the open episodes, 1 without one */
    bool shares;   /* has told mb */
};

struct episode {
    char *eid;
    size_t len;
    int64_t reporter, group;
    double factor;
};

/* What parts the samples. */
struct cut {
    double ts, since;
    int64_t step;
};

struct ep_rates {
    size_t ngroups, window;
    int64_t microbatches;
    struct reporter *reporters;
    size_t nreporters, reporters_cap;
    size_t sharing; /* reporters that have told mb */
    struct episode *episodes;
    size_t nepisodes, episodes_cap;
    struct cut cut;
    bool named;
    size_t fresh;  /* the largest of the reporters' */
    double *work;  /* [window] for medians */
    double *bases; /* [D] */
    double *factors;
    /* shares */
    int64_t *latest, *share; /* [D]; 0: not told */
    size_t told;
    int64_t sum;
    bool agreed;
    uint64_t apart; /* samples since the sum was M */
};

struct ep_rates *ep_rates_new(size_t groups, size_t window,
                              int64_t microbatches)
{
    struct ep_rates *r = ep_calloc(1, sizeof *r);

    r->ngroups = groups;
    r->window = window;
    r->microbatches = microbatches;
    r->cut = (struct cut){(double)-INFINITY, (double)-INFINITY, -1};
    r->work = ep_calloc(window, sizeof *r->work);
    r->bases = ep_calloc(groups, sizeof *r->bases);
    r->factors = ep_calloc(groups, sizeof *r->factors);
    r->latest = ep_calloc(groups, sizeof *r->latest);
    r->share = ep_calloc(groups, sizeof *r->share);
    return r;
}

void ep_rates_free(struct ep_rates *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->nreporters; i++)
        free(r->reporters[i].ring);
    for (size_t i = 0; i < r->nepisodes; i++)
        free(r->episodes[i].eid);
    free(r->reporters);
    free(r->episodes);
    free(r->work);
    free(r->bases);
    free(r->factors);
    free(r->latest);
    free(r->share);
    free(r);
}

/* ==== Samples ==== */

static bool is_since(const struct sample *x, const struct cut *c)
{
    /* Step numbers tell best, ranks' clocks differ; but they start again
     * after a restart, and what comes after the event is since it anyway. */
    if (c->step >= 0)
        return x->step >= c->step || x->ts >= c->ts;
    return x->ts >= c->since;
}

/*
 * Median pace of the samples since one cut and before another (NULL: to the
 * last); *n is their number, and the result is NaN if that is 0.
 */
static double median_between(const struct ep_rates *r, const struct reporter *p,
                             const struct cut *from, const struct cut *to,
                             size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct sample *x = &p->ring[i];

        if (is_since(x, from) && !(to && is_since(x, to)))
            r->work[(*n)++] = x->pace;
    }
    return ep_median(r->work, *n);
}

static struct reporter *find_reporter(struct ep_rates *r, int64_t i)
{
    if ((size_t)i >= r->nreporters) {
        size_t old = r->nreporters;

        r->nreporters = (size_t)i + 1;
        r->reporters = ep_grow(r->reporters, &r->reporters_cap, r->nreporters,
                               sizeof *r->reporters);
        for (; old < r->nreporters; old++)
            r->reporters[old] = (struct reporter){.group = -1,
                                                  .last_ts = (double)-INFINITY,
                                                  .before = (double)NAN,
                                                  .factor = 1};
    }
    return &r->reporters[i];
}

static void take_share(struct ep_rates *r, int64_t group, int64_t mb)
{
    if (r->latest[group] != mb) {
        r->told += r->latest[group] == 0;
        r->sum += mb - r->latest[group];
        r->latest[group] = mb;
    }
    if (r->told < r->ngroups || r->sum != r->microbatches) {
        r->apart++;
        return;
    }
    if (r->apart || !r->agreed)
        memcpy(r->share, r->latest, r->ngroups * sizeof *r->share);
    r->agreed = true;
    r->apart = 0;
}

static void raise_to(double *factor, double f)
{
    if (isnan(*factor) || f > *factor)
        *factor = f;
}

/* The reporter is of that group from now on: the group's episodes are its. */
static void join(const struct ep_rates *r, struct reporter *p,
                 const struct ep_rates_sample *s)
{
    double factor = (double)NAN;

    for (size_t i = 0; i < r->nepisodes; i++) {
        const struct episode *x = &r->episodes[i];

        if (x->reporter == s->reporter ||
            (x->reporter < 0 && x->group == s->group))
            raise_to(&factor, x->factor);
    }
    p->group = s->group;
    p->factor = isnan(factor) ? 1 : factor;
}

static int check_sample(const struct ep_rates *r,
                        const struct ep_rates_sample *s, struct ep_error *err)
{
    if (s->reporter < 0 || s->reporter >= EP_RATES_REPORTERS_MAX)
        return ep_error_set(err, EP_EDOM, "reporter %" PRId64 " of %" PRId64,
                            s->reporter, EP_RATES_REPORTERS_MAX);
    if (s->group < 0 || (size_t)s->group >= r->ngroups)
        return ep_error_set(err, EP_EDOM, "group %" PRId64 " of %zu", s->group,
                            r->ngroups);
    if ((size_t)s->reporter < r->nreporters &&
        s->ts < r->reporters[s->reporter].last_ts)
        return ep_error_set(err, EP_EDOM,
                            "time runs backwards by %.6g s (step %" PRId64 ")",
                            r->reporters[s->reporter].last_ts - s->ts, s->step);
    if (s->mb > 0 && s->busy <= 0)
        return ep_error_set(err, EP_EDOM,
                            "busy is %g s with %" PRId64 " micro-batches",
                            s->busy, s->mb);
    return 0;
}

int ep_rates_sample(struct ep_rates *r, const struct ep_rates_sample *s,
                    struct ep_error *err)
{
    int rc = check_sample(r, s, err);
    struct reporter *p;

    if (rc < 0)
        return rc;
    p = find_reporter(r, s->reporter);
    if (p->group != s->group)
        join(r, p, s);
    p->last_ts = s->ts;
    if (s->mb <= 0)
        return 0;
    r->sharing += !p->shares;
    p->shares = true;
    take_share(r, s->group, s->mb);
    if (isnan(s->busy))
        return 0;
    if (!p->ring)
        p->ring = ep_calloc(r->window, sizeof *p->ring);
    p->ring[p->next] = (struct sample){
        .ts = s->ts, .pace = s->busy / (double)s->mb, .step = s->step};
    p->next = (p->next + 1) % r->window;
    p->n += p->n < r->window;
    if (++p->fresh > r->fresh)
        r->fresh = p->fresh;
    return 0;
}

size_t ep_rates_fresh(const struct ep_rates *r)
{
    return r->fresh;
}

/* ==== Events ==== */

static struct episode *find_episode(const struct ep_rates *r,
                                    struct ep_span eid)
{
    for (size_t i = 0; i < r->nepisodes; i++)
        if (r->episodes[i].len == eid.len &&
            (!eid.len || memcmp(r->episodes[i].eid, eid.ptr, eid.len) == 0))
            return &r->episodes[i];
    return NULL;
}

static void close_episode(struct ep_rates *r, struct episode *x)
{
    free(x->eid);
    *x = r->episodes[--r->nepisodes];
}

static void open_episode(struct ep_rates *r, struct episode *x,
                         const struct ep_rates_event *e)
{
    if (!x) {
        r->episodes = ep_grow(r->episodes, &r->episodes_cap, r->nepisodes + 1,
                              sizeof *r->episodes);
        x = &r->episodes[r->nepisodes++];
        x->eid = ep_strndup(e->eid.ptr, e->eid.len);
        x->len = e->eid.len;
    }
    x->reporter = e->reporter;
    x->group = e->group;
    x->factor = isnan(e->factor) ? 1 : e->factor;
}

/*
 * r->factors[g]: the largest factor of the episodes that name the group as a
 * whole, or (all) one of its reporters too; NaN without one.
 */
static void factors_of_groups(const struct ep_rates *r, bool all)
{
    for (size_t g = 0; g < r->ngroups; g++)
        r->factors[g] = (double)NAN;
    for (size_t i = 0; i < r->nepisodes; i++) {
        const struct episode *x = &r->episodes[i];

        if (x->group >= 0 && (all || x->reporter < 0))
            raise_to(&r->factors[x->group], x->factor);
    }
}

/*
 * Bring the reporters' factors in line with the episodes, and before with
 * them: the median of what lies between the last cut and this event.
 */
static void carry_over(struct ep_rates *r, const struct cut *to)
{
    factors_of_groups(r, false);
    for (size_t i = 0; i < r->nreporters; i++) {
        struct reporter *p = &r->reporters[i];
        size_t n;
        double m = median_between(r, p, &r->cut, to, &n);

        if (n)
            p->before = m;
        p->before /= p->factor; /* the healthy pace, until the end */
        p->factor = p->group >= 0 ? r->factors[p->group] : (double)NAN;
        p->fresh = 0;
    }
    for (size_t i = 0; i < r->nepisodes; i++)
        if (r->episodes[i].reporter >= 0)
            raise_to(&r->reporters[r->episodes[i].reporter].factor,
                     r->episodes[i].factor);
    for (size_t i = 0; i < r->nreporters; i++) {
        struct reporter *p = &r->reporters[i];

        if (isnan(p->factor))
            p->factor = 1;
        p->before *= p->factor;
    }
}

static int check_event(const struct ep_rates *r, const struct ep_rates_event *e,
                       struct ep_error *err)
{
    if (e->reporter < -1 || e->reporter >= EP_RATES_REPORTERS_MAX)
        return ep_error_set(err, EP_EDOM, "reporter %" PRId64 " of %" PRId64,
                            e->reporter, EP_RATES_REPORTERS_MAX);
    if (e->group < -1 || e->group >= (int64_t)r->ngroups)
        return ep_error_set(err, EP_EDOM, "group %" PRId64 " of %zu", e->group,
                            r->ngroups);
    if (e->eid.len > EP_RATES_EID_MAX)
        return ep_error_set(err, EP_ELIMIT, "eid is longer than %d bytes",
                            EP_RATES_EID_MAX);
    if (e->onset && e->factor <= 0)
        return ep_error_set(err, EP_EDOM, "factor is %g", e->factor);
    return 0;
}

int ep_rates_event(struct ep_rates *r, const struct ep_rates_event *e,
                   struct ep_error *err)
{
    const struct cut cut = {e->ts, e->since, e->step};
    struct episode *x = find_episode(r, e->eid);
    int rc = check_event(r, e, err);

    if (rc < 0)
        return rc;
    if (e->onset && !x && r->nepisodes == EP_RATES_EPISODES_MAX)
        return ep_error_set(err, EP_ELIMIT, "more than %d open episodes",
                            EP_RATES_EPISODES_MAX);
    if (e->reporter >= 0)
        (void)find_reporter(r, e->reporter);
    if (e->onset)
        open_episode(r, x, e);
    else if (x)
        close_episode(r, x);
    r->named = r->named || e->reporter >= 0 || e->group >= 0;
    carry_over(r, &cut);
    if (cut.since > r->cut.since)
        r->cut = cut;
    r->fresh = 0;
    return 0;
}

int64_t ep_rates_group_of(const struct ep_rates *r, int64_t reporter)
{
    if (reporter < 0 || (uint64_t)reporter >= r->nreporters)
        return -1;
    return r->reporters[reporter].group;
}

bool ep_rates_named(const struct ep_rates *r)
{
    return r->named;
}

/* ==== Paces ==== */

/* What the reporters tell of their groups; r->bases gets pace / factor. */
static size_t measure(struct ep_rates *r, struct ep_rates_group *out)
{
    size_t told = 0;

    for (size_t g = 0; g < r->ngroups; g++)
        out[g] = (struct ep_rates_group){.source = EP_RATES_ASSUMED};
    for (size_t i = 0; i < r->nreporters; i++) {
        const struct reporter *p = &r->reporters[i];
        enum ep_rates_source source = EP_RATES_MEASURED;
        size_t n;
        double pace = median_between(r, p, &r->cut, NULL, &n);

        if (!n) {
            source = EP_RATES_BEFORE;
            pace = p->before;
        }
        if (!(pace > 0) || !(pace > out[p->group].pace))
            continue;
        told += out[p->group].source == EP_RATES_ASSUMED;
        out[p->group] = (struct ep_rates_group){pace, n, source};
        r->bases[p->group] = pace / p->factor;
    }
    return told;
}

/* Has an episode's reporter told any pace? */
static bool has_pace(const struct ep_rates *r, const struct episode *x)
{
    return (size_t)x->reporter < r->nreporters &&
           r->reporters[x->reporter].ring != NULL;
}

size_t ep_rates_paces(struct ep_rates *r, struct ep_rates_group *out)
{
    size_t told = measure(r, out), n = 0;
    double base = 1;

    for (size_t g = 0; g < r->ngroups; g++)
        if (out[g].source != EP_RATES_ASSUMED)
            r->bases[n++] = r->bases[g];
    if (n)
        base = ep_median(r->bases, n);
    factors_of_groups(r, true);
    for (size_t g = 0; g < r->ngroups; g++)
        if (out[g].source == EP_RATES_ASSUMED)
            out[g].pace = isnan(r->factors[g]) ? base : base * r->factors[g];
    /* the one that is named may be silent while others of its group tell */
    for (size_t i = 0; i < r->nepisodes; i++) {
        const struct episode *x = &r->episodes[i];

        if (x->reporter < 0 || x->group < 0 || has_pace(r, x))
            continue;
        if (base * x->factor > out[x->group].pace)
            out[x->group] = (struct ep_rates_group){.pace = base * x->factor,
                                                    .source = EP_RATES_ASSUMED};
    }
    return told;
}

enum ep_rates_told ep_rates_shares(const struct ep_rates *r, int64_t *share,
                                   size_t *groups, int64_t *sum)
{
    if (groups)
        *groups = r->told;
    if (sum)
        *sum = r->sum;
    if (!r->told)
        return EP_RATES_NONE;
    if (r->told < r->ngroups)
        return EP_RATES_SOME;
    if (!r->agreed || r->apart > (uint64_t)r->window * r->sharing)
        return EP_RATES_OTHER;
    memcpy(share, r->share, r->ngroups * sizeof *share);
    return EP_RATES_ALL;
}
