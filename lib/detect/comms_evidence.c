/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comms_evidence.c - by how much each series of transfers changed, and how
 * sure that is; see comms.h.
 *
 * Means are of values within four standard deviations of the median (both
 * weighted by calls): a pause of the job is in one call of many. The variance of
 * a call is that of its series drawn towards that of all series of its class,
 * and towards what is known of healthy links [1] where there are few calls.
 *
 * [1] FALCON, arXiv 2410.12588: coefficient of variation 0.01 in a GPU, 0.02
 *     NVLink, 0.09 PCIe, 0.29 between hosts.
 */
#include "config.h"

#include "detect/comms_impl.h"

#include "base/mem.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

static const double cv_local = 0.09, cv_remote = 0.29;
static const double prior_calls = 2;   /* that cv is worth */
static const double class_calls = 20;  /* that the class is worth, at most */
static const double class_least = 3.5; /* scatters that count, of a class */
static const double drift = 0.01;      /* of a mean, whatever its calls */
/* of healthy links: log 1.27 / 2; of many that are seen to be alike */
static const double few_spread = 0.12, many_spread = 0.04;

enum { PAST_TIMES = 3, PEERS = 4, MANY_PEERS = 16 };

/* ==== Means of bins ==== */

static int by_v(const void *a, const void *b)
{
    const struct comms_bin *x = a, *y = b;

    return (x->v > y->v) - (x->v < y->v);
}

/* The median of v by calls; reorders. */
static double middle(struct comms_bin *b, size_t n, double calls)
{
    double sum = 0;

    qsort(b, n, sizeof *b, by_v);
    for (size_t i = 0; i < n; i++) {
        sum += b[i].calls;
        if (2 * sum > calls)
            return b[i].v;
        if (2 * sum == calls && i + 1 < n)
            return (b[i].v + b[i + 1].v) / 2;
    }
    return n ? b[n - 1].v : 0;
}

struct mean {
    double calls, v, squares, freedom;
};

static struct mean mean_of(struct comms_bin *b, size_t n)
{
    struct comms_bin off[COMMS_BINS];
    struct mean m = {0};
    double centre, cut, sum = 0;

    for (size_t i = 0; i < n; i++)
        m.calls += b[i].calls;
    if (!n)
        return m;
    centre = middle(b, n, m.calls);
    for (size_t i = 0; i < n; i++)
        off[i] = (struct comms_bin){
            .v = fabs(b[i].v - centre) * sqrt(b[i].calls), .calls = 1};
    cut = 4 * fmax(EP_MAD_TO_SIGMA * middle(off, n, (double)n), 0.005);
    for (size_t i = 0; i < n; i++) {
        double most = cut / sqrt(b[i].calls);

        b[i].v = centre + fmax(-most, fmin(most, b[i].v - centre));
        sum += b[i].v * b[i].calls;
    }
    m.v = sum / m.calls;
    for (size_t i = 0; i < n; i++)
        m.squares += b[i].calls * (b[i].v - m.v) * (b[i].v - m.v);
    m.freedom = (double)n - 1;
    return m;
}

/* ==== One series ==== */

static int32_t host_of(const struct comms_group *g, size_t i)
{
    return i < g->cap && g->member[i] ? comms_host(g->member[i]) : -1;
}

static bool is_remote(const struct comms_track *t)
{
    const struct comms_group *g = t->group;
    int32_t host = -1;

    if (t->src >= 0) {
        int32_t a = host_of(g, (size_t)t->src), b = host_of(g, (size_t)t->dst);

        return a >= 0 && b >= 0 && a != b;
    }
    for (size_t i = 0; i < g->cap; i++) {
        int32_t h = host_of(g, i);

        if (h >= 0 && host >= 0 && h != host)
            return true;
        host = h >= 0 ? h : host;
    }
    return false;
}

static void split(const struct comms_track *t, double since,
                  struct comms_evidence *e)
{
    struct comms_bin all[COMMS_BINS], now[COMMS_BINS], old[COMMS_BINS];
    size_t n = comms_bins(&t->past, all), nnow = 0, nold = 0;
    struct mean a, b;
    double until;

    for (size_t i = 0; i < n; i++)
        if (all[i].from >= since)
            now[nnow++] = all[i];
    /* three times as long before as since: for all series the same, so that a
       since that is told late is late for all of them; the median stands it */
    until = n ? since - PAST_TIMES * (all[n - 1].to - since) : 0;
    for (size_t i = 0; i < n; i++)
        if (all[i].to < since && all[i].to > t->mixed && all[i].to >= until)
            old[nold++] = all[i];
    a = mean_of(now, nnow);
    b = mean_of(old, nold);
    e->since = a.v;
    e->nsince = a.calls;
    e->before = b.v;
    e->nbefore = b.calls;
    e->squares = a.squares + b.squares;
    e->freedom = fmax(0, a.freedom) + fmax(0, b.freedom);
}

/*
 * It was slow already, by more than that could be noise: what is slow now may be
 * hidden behind that, and no change says nothing.
 */
static bool is_masked(const struct comms_evidence *e, double least)
{
    double best = (double)e->track->past.best;

    return e->before - best > least + 3 * sqrt(e->variance) / 4 &&
           e->y < 2 * e->se;
}

/* ==== Classes ==== */

static int by_kind(const void *a, const void *b)
{
    const struct comms_evidence *x = a, *y = b;

    return (x->kind > y->kind) - (x->kind < y->kind);
}

/* n series of one class: their variances. */
static void pool(struct comms_evidence *e, size_t n)
{
    double cv = e->remote ? cv_remote : cv_local;
    double squares = prior_calls * cv * cv, freedom = prior_calls, common;

    for (size_t i = 0; i < n; i++) {
        squares += e[i].squares;
        freedom += e[i].freedom;
    }
    common = squares / freedom;
    freedom = fmin(freedom, class_calls);
    for (size_t i = 0; i < n; i++) {
        double all = freedom + e[i].freedom;

        /* wider, as Student's distribution is, for it is an estimate */
        e[i].variance = (freedom * common + e[i].squares) / all * (1 + 4 / all);
    }
}

/* Against their own past. */
static void against_past(struct comms_evidence *e, size_t n, double least)
{
    for (size_t i = 0; i < n; i++) {
        struct comms_evidence *x = &e[i];

        if (x->nbefore < 3 || x->nsince < 2)
            continue;
        x->y = x->since - x->before;
        x->se = sqrt(x->variance * (1 / x->nsince + 1 / x->nbefore) +
                     drift * drift);
        x->w = is_masked(x, least) ? 0 : 1 / (x->se * x->se);
    }
}

/*
 * Against the others of the class: the faster quarter, since what is wrong makes
 * slow and may be in half of them. Returns the scatter of healthy ones.
 */
static double against_class(struct comms_evidence *e, size_t n)
{
    double *v = ep_calloc(n, sizeof *v), centre, spread = 0;
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        e[i].since += comms_main(e[i].track)->ref;
        e[i].nbefore = 0;
        if (e[i].nsince >= 3)
            v[k++] = e[i].since;
    }
    if (k >= PEERS) {
        centre = ep_quantile(v, k, 0.25);
        for (size_t i = 0; i < k; i++)
            v[i] = fabs(v[i] - centre);
        spread = fmax(k < MANY_PEERS ? few_spread : many_spread,
                      EP_MAD_TO_SIGMA * ep_quantile(v, k, 0.25));
        for (size_t i = 0; i < n; i++) {
            if (e[i].nsince < 3)
                continue;
            e[i].before = centre;
            e[i].y = e[i].since - centre;
            e[i].se = sqrt(e[i].variance / e[i].nsince + spread * spread);
            e[i].w = 1 / (e[i].se * e[i].se);
        }
    }
    free(v);
    return spread;
}

/* ==== All ==== */

static size_t collect(const struct comms_job *j, double since,
                      struct comms_evidence *e, bool *past)
{
    size_t n = 0;

    *past = false;
    for (size_t i = 0; i < j->tracks; i++) {
        struct comms_evidence *x = &e[n];
        const struct comms_track *t = j->track[i];
        const struct comms_kind *k = comms_main(t);
        /* without a past: what there is since it is as it is */
        double from = since > j->first ? since : fmax(since, t->mixed);

        *x = (struct comms_evidence){.track = t};
        if (!k || t->group->mixed || t->mixed > from)
            continue;
        split(t, from, x);
        if (!(x->nsince > 0))
            continue;
        x->remote = is_remote(t);
        x->kind = k->key ^ (x->remote ? UINT64_C(1) << 63 : 0);
        *past = *past || x->nbefore >= 3;
        n++;
    }
    return n;
}

struct comms_evidence *comms_gather(const struct comms_job *j, double since_ts,
                                    size_t *n, double *least)
{
    double spread = 0;
    bool past;
    double since = isnan(since_ts) ? -(double)INFINITY : since_ts;
    struct comms_evidence *e = ep_calloc(j->tracks + 1, sizeof *e);

    *n = collect(j, since, e, &past);
    if (*n)
        qsort(e, *n, sizeof *e, by_kind);
    for (size_t i = 0, end; i < *n; i = end) {
        for (end = i + 1; end < *n && e[end].kind == e[i].kind;)
            end++;
        pool(e + i, end - i);
        if (past)
            against_past(e + i, end - i, j->all->least);
        else
            spread = fmax(spread, against_class(e + i, end - i));
    }
    *least = past ? 0 : fmax(j->all->least, class_least * spread);
    return e;
}

double ep_comms_level(struct ep_comms *c, struct ep_span job, double since_ts)
{
    const struct comms_job *j = comms_job(c, job);
    double now = 0, old = 0;
    struct comms_evidence *e;
    double classes;
    size_t n;

    if (!j)
        return (double)NAN;
    e = comms_gather(j, since_ts, &n, &classes);
    for (size_t i = 0; !(classes > 0) && i < n; i++) {
        double ref = comms_main(e[i].track)->ref;

        if (!(e[i].se > 0))
            continue;
        now += e[i].nsince * exp(ref + e[i].since);
        old += e[i].nsince * exp(ref + e[i].before);
    }
    free(e);
    return old > 0 ? now / old : (double)NAN;
}
