/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.c - leave-one-out medians and MADs of all n values in O(n log n).
 *
 * In sorted order, the median of the others depends on i only through where i
 * lies: below, at or above the middle. So there are at most three medians,
 * and for each of them the deviations are sorted once (a merge of the two
 * sides, outwards from the median) and the MAD without i read off in the same
 * way.
 */
#include "config.h"

#include "detect/peers.h"

#include "base/mem.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

/* The values in order, and room for their deviations from one centre. */
struct sorted {
    const double *y; /* [n] ascending */
    double *dev;     /* [n] ascending */
    size_t n;
    double centre; /* of dev */
};

static int compare(const void *pa, const void *pb)
{
    double a = *(const double *)pa;
    double b = *(const double *)pb;

    return (a > b) - (a < b);
}

/* Median of the ascending v[n] without one copy of x, which is in it; n > 1. */
static double median_without(const double *v, size_t n, double x)
{
    size_t m = n - 1; /* what is left */
    size_t k = m / 2;
    /* v[j] of what is left is v[j] before x, v[j + 1] from x on. */
    double hi = v[k] < x ? v[k] : v[k + 1];
    double lo;

    if (m % 2 == 1)
        return hi;
    lo = v[k - 1] < x ? v[k - 1] : v[k];
    return lo + (hi - lo) / 2;
}

/* Sort |y - centre| by merging outwards from the centre. */
static void set_centre(struct sorted *s, double centre)
{
    size_t lo = 0; /* y[0..lo) is below the centre */
    size_t hi = s->n;

    if (s->centre == centre)
        return;
    s->centre = centre;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (s->y[mid] < centre)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (size_t i = 0; i < s->n; i++) {
        bool left =
            hi >= s->n || (lo > 0 && centre - s->y[lo - 1] < s->y[hi] - centre);

        s->dev[i] = left ? centre - s->y[--lo] : s->y[hi++] - centre;
    }
}

/* How many of the ascending v[n] are <= x? */
static size_t count_upto(const double *v, size_t n, double x)
{
    size_t lo = 0;
    size_t hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (v[mid] <= x)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static double slowness(double x, enum ep_peers_better better)
{
    return better == EP_PEERS_HIGH ? -log(x) : log(x);
}

/* The verdict on one value y; s->centre is the median of the others. */
static void judge(const struct sorted *s, double y, double noise,
                  const struct ep_peers_config *c, struct ep_peer *out)
{
    double own = fabs(y - s->centre);
    double mad = median_without(s->dev, s->n, own);
    double spread = fmax(EP_MAD_TO_SIGMA * mad, c->noise_floor);
    double close = fmin(c->k * spread, log1p(c->min_change));

    out->factor = exp(y - s->centre);
    out->z = (y - s->centre) / hypot(spread, noise);
    out->support = count_upto(s->dev, s->n, close) - (own <= close);
    out->slow = out->factor >= 1 + c->min_change && out->z >= c->k;
    out->p = out->z > 0 ? erf(out->z / M_SQRT2) * (double)(out->support + 1) /
                              (double)(out->support + 2)
                        : 0;
}

static double mad_of(double *dev, const double *y, size_t n, double centre)
{
    struct sorted s = {.y = y, .dev = dev, .n = n, .centre = NAN};

    set_centre(&s, centre);
    return n % 2 ? dev[n / 2] : (dev[n / 2 - 1] + dev[n / 2]) / 2;
}

static double middle(const double *y, size_t n)
{
    return n % 2 ? y[n / 2] : (y[n / 2 - 1] + y[n / 2]) / 2;
}

/* Two groups, the slower no smaller? The widest gap at or below the middle. */
static void find_split(const struct sorted *s, const struct ep_peers_config *c,
                       struct ep_peers_summary *sum)
{
    size_t n = s->n;
    size_t cut = 0;
    double gap = 0;
    double fast;
    double slow;
    double spread;

    for (size_t k = (n + 3) / 4; k <= n / 2; k++)
        if (s->y[k] - s->y[k - 1] > gap) {
            gap = s->y[k] - s->y[k - 1];
            cut = k;
        }
    if (n < 3 || cut == 0 || gap < log1p(c->min_change))
        return;
    fast = middle(s->y, cut);
    slow = middle(s->y + cut, n - cut);
    spread = fmax(mad_of(s->dev, s->y, cut, fast),
                  mad_of(s->dev, s->y + cut, n - cut, slow));
    if (gap < c->k * fmax(EP_MAD_TO_SIGMA * spread, c->noise_floor))
        return;
    sum->split = true;
    sum->fast_group = cut;
    sum->split_gap = exp(slow - fast);
}

static enum ep_peers_doubt doubt(size_t n, bool split)
{
    if (n == 1)
        return EP_PEERS_ALONE;
    if (n == 2)
        return EP_PEERS_TWO;
    if (split)
        return EP_PEERS_SPLIT;
    return n == 3 ? EP_PEERS_THREE : EP_PEERS_SURE;
}

static int check(const struct ep_peers_input *in,
                 const struct ep_peers_config *c, struct ep_error *err)
{
    const double *noise = in->noise;

    if (!(c->min_change > 0 && c->min_change <= 10))
        return ep_error_set(err, EP_EDOM, "min_change is not in (0, 10]");
    if (!(c->k > 0 && isfinite(c->k)))
        return ep_error_set(err, EP_EDOM, "k is not positive");
    if (!(c->noise_floor > 0 && c->noise_floor <= 1))
        return ep_error_set(err, EP_EDOM, "noise floor is not in (0, 1]");
    for (size_t i = 0; i < in->n; i++) {
        if (!isfinite(in->x[i]) || in->x[i] <= 0)
            return ep_error_set(err, EP_EDOM,
                                "value %zu of the peers is not positive", i);
        if (noise && (!isfinite(noise[i]) || noise[i] < 0))
            return ep_error_set(err, EP_EDOM,
                                "noise %zu of the peers is negative", i);
    }
    return 0;
}

/* All values of one centre together: each centre is set up once only. */
static void judge_all(struct sorted *s, const struct ep_peers_input *in,
                      const struct ep_peers_config *c, struct ep_peer *out)
{
    double done = -INFINITY;

    /* Centres in ascending order: at most three rounds. */
    for (;;) {
        double next = INFINITY;

        for (size_t i = 0; i < s->n; i++) {
            double y = slowness(in->x[i], in->better);
            double centre = median_without(s->y, s->n, y);

            if (centre > done && centre < next)
                next = centre;
        }
        if (next == INFINITY)
            return;
        set_centre(s, next);
        for (size_t i = 0; i < s->n; i++) {
            double y = slowness(in->x[i], in->better);

            if (median_without(s->y, s->n, y) == next)
                judge(s, y, in->noise ? in->noise[i] : 0, c, &out[i]);
        }
        done = next;
    }
}

int ep_peers_compare(const struct ep_peers_input *in,
                     const struct ep_peers_config *config, struct ep_peer *out,
                     struct ep_peers_summary *summary, struct ep_error *err)
{
    static const struct ep_peers_config defaults = EP_PEERS_DEFAULTS;
    const struct ep_peers_config *c = config ? config : &defaults;
    size_t n = in->n;
    struct sorted s = {.n = n, .centre = NAN};
    double *y;
    int r = check(in, c, err);

    if (r)
        return r;
    *summary = (struct ep_peers_summary){.doubt = EP_PEERS_ALONE};
    if (n == 1)
        *out = (struct ep_peer){.factor = 1};
    if (n <= 1)
        return 0;
    y = ep_calloc(2 * n, sizeof *y);
    for (size_t i = 0; i < n; i++)
        y[i] = slowness(in->x[i], in->better);
    qsort(y, n, sizeof *y, compare);
    s.y = y;
    s.dev = y + n;
    find_split(&s, c, summary);
    s.centre = NAN;
    judge_all(&s, in, c, out);
    for (size_t i = 0; i < n; i++) {
        summary->n_slow += out[i].slow;
        if (summary->split)
            out[i].p = fmin(out[i].p, 0.5);
    }
    summary->doubt = doubt(n, summary->split);
    free(y);
    return 0;
}

const char *ep_peers_doubt_text(enum ep_peers_doubt doubt)
{
    switch (doubt) {
    case EP_PEERS_ALONE:
        return "no peer to compare with";
    case EP_PEERS_TWO:
        return "2 peers: the faster may be the odd one";
    case EP_PEERS_THREE:
        return "3 peers: two agree against one";
    case EP_PEERS_SPLIT:
        return "half of the peers or more may be slow, or the faster ones "
               "differ in kind";
    case EP_PEERS_SURE:
        break;
    }
    return "";
}
