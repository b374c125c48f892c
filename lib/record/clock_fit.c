/* SPDX-License-Identifier: Apache-2.0 */
/* clock_fit.c - see clock_fit.h. */
#include "config.h"

#include "record/clock_fit.h"

#include "base/mem.h"
#include "base/rng.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* A rate takes at least so many windows. */
#define WINDOWS_MAX 32
#define WINDOWS_MIN 8

/* A rate is significant from so many standard errors on; with n windows, the
   error being known no better than they allow, from 1 + FEW / (n - 2) times as
   many, which is about what Student's t has for the same probability. */
#define SIGNIFICANT 4
#define FEW 6.0

/* Times are no better than that: ts is a double. */
#define RESOLUTION 2.5e-7 /* s */

/* Once all are known: rounds with rates, rounds with the final rates. */
#define ROUNDS 6
#define LAST_ROUNDS 4

/* The median of n values with this MAD has a standard error of
   sqrt(pi / 2) sigma / sqrt(n). */
#define MEDIAN_ERROR (1.2533141373155003 * EP_MAD_TO_SIGMA)

/* Where a reading is in its event. */
struct place {
    double value;
    uint32_t reading;
};

struct fit {
    struct ep_clock_reading *r; /* [n] by host, then y */
    size_t n, nevents, nhosts;
    size_t *host;         /* [nhosts + 1] where a host's readings begin */
    size_t *event;        /* [nevents + 1] where an event's begin, in at */
    uint32_t *at;         /* [n] readings by event */
    double *away;         /* [n] from the others of its event; NaN: none */
    uint32_t *known;      /* [nevents] hosts with a line */
    struct place *places; /* [most] of one event */
    double *t, *d, *v;    /* [n] room for one host or event */
    double *rate_error;   /* [nhosts] of rate, see FEW; inf: no rate */
    struct ep_clock_line *lines;
};

static int by_host(const void *pa, const void *pb)
{
    const struct ep_clock_reading *a = pa, *b = pb;

    if (a->host != b->host)
        return a->host < b->host ? -1 : 1;
    if (a->y != b->y)
        return a->y < b->y ? -1 : 1;
    return (a->event > b->event) - (a->event < b->event);
}

/* Begins of groups of equal numbers from their counts in first[1..n]. */
static void sum_up(size_t *first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        first[i + 1] += first[i];
}

static void index_readings(struct fit *f)
{
    size_t *fill = ep_calloc(f->nevents + 1, sizeof *fill);

    qsort(f->r, f->n, sizeof *f->r, by_host);
    for (size_t i = 0; i < f->n; i++) {
        f->host[f->r[i].host + 1]++;
        f->event[f->r[i].event + 1]++;
    }
    sum_up(f->host, f->nhosts);
    sum_up(f->event, f->nevents);
    memcpy(fill, f->event, (f->nevents + 1) * sizeof *fill);
    for (size_t i = 0; i < f->n; i++)
        f->at[fill[f->r[i].event]++] = (uint32_t)i;
    free(fill);
}

double ep_clock_line_correct(const struct ep_clock_line *line, double y)
{
    if (!line->known)
        return y;
    return y - line->offset - line->rate * (y - line->t0);
}

double ep_clock_line_ahead(const struct ep_clock_line *line)
{
    return line->offset / (1 - line->rate);
}

/* ==== Groups ==== */

static uint32_t find(uint32_t *parent, uint32_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* Number the groups of hosts that events join; returns how many. Only events
   of two hosts count: a host alone is in no group. */
static size_t join(struct fit *f)
{
    uint32_t *parent = ep_calloc(f->nhosts + 1, sizeof *parent);
    size_t groups = 0;

    for (uint32_t h = 0; h < f->nhosts; h++)
        parent[h] = h;
    for (size_t e = 0; e < f->nevents; e++)
        for (size_t i = f->event[e] + 1; i < f->event[e + 1]; i++) {
            uint32_t a = find(parent, f->r[f->at[i - 1]].host);
            uint32_t b = find(parent, f->r[f->at[i]].host);

            parent[a < b ? b : a] = a < b ? a : b;
            f->lines[f->r[f->at[i]].host].n++;
            f->lines[f->r[f->at[i - 1]].host].n++;
        }
    for (uint32_t h = 0; h < f->nhosts; h++) {
        uint32_t root = find(parent, h);

        if (!f->lines[h].n)
            continue;
        f->lines[h].group =
            root == h ? (uint32_t)groups++ : f->lines[root].group;
    }
    free(parent);
    return groups;
}

/* In each group the host with the most readings is the clock to begin with. */
static void seed(struct fit *f, size_t groups)
{
    uint32_t *best = ep_calloc(groups + 1, sizeof *best);

    memset(best, 0xff, (groups + 1) * sizeof *best);
    for (uint32_t h = 0; h < f->nhosts; h++) {
        uint32_t *b = &best[f->lines[h].group];

        if (f->lines[h].n && (*b == NONE || f->lines[h].n > f->lines[*b].n))
            *b = h;
    }
    for (uint32_t h = 0; h < f->nhosts; h++) {
        struct ep_clock_line *l = &f->lines[h];

        if (!l->n)
            continue;
        l->known = best[l->group] == h;
        l->t0 = (f->r[f->host[best[l->group]]].y +
                 f->r[f->host[best[l->group] + 1] - 1].y) /
                2;
    }
    free(best);
}

/* ==== One round ==== */

static int by_value(const void *pa, const void *pb)
{
    const struct place *a = pa, *b = pb;

    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return (a->reading > b->reading) - (a->reading < b->reading);
}

/*
 * The middle one of the m ordered values of v without v[without] (m: all of
 * them). Of two middle ones upper says which. One of the values, never a mean:
 * of m + 1 values that differ by chance only, each is then as often below as
 * above the middle of the others, however skewed chance is, and hosts in
 * events of few and of many are not torn apart.
 */
static double middle(const struct place *v, size_t m, size_t without,
                     bool upper)
{
    size_t others = without < m ? m - 1 : m;
    size_t j = others % 2 || upper ? others / 2 : others / 2 - 1;

    return v[j < without ? j : j + 1].value;
}

/* How far readings are from the middle of the others that are known. */
static void place_event(struct fit *f, size_t e)
{
    uint64_t x = e;
    bool upper = ep_splitmix64(&x) & 1;
    size_t m = 0;

    for (size_t i = f->event[e]; i < f->event[e + 1]; i++) {
        const struct ep_clock_reading *r = &f->r[f->at[i]];
        const struct ep_clock_line *l = &f->lines[r->host];

        f->away[f->at[i]] = (double)NAN;
        if (l->known)
            f->places[m++] =
                (struct place){ep_clock_line_correct(l, r->y), f->at[i]};
    }
    f->known[e] = (uint32_t)m;
    qsort(f->places, m, sizeof *f->places, by_value);
    for (size_t i = 0; m > 1 && i < m; i++)
        f->away[f->places[i].reading] =
            f->places[i].value - middle(f->places, m, i, upper);
    for (size_t i = f->event[e]; m && i < f->event[e + 1]; i++)
        if (!f->lines[f->r[f->at[i]].host].known)
            f->away[f->at[i]] =
                f->r[f->at[i]].y - middle(f->places, m, m, upper);
}

static void place_events(struct fit *f)
{
    for (size_t e = 0; e < f->nevents; e++)
        place_event(f, e);
}

/*
 * How far a host's readings are from its line so far, in order of y: how many.
 * All hosts of an event move at once, so that each goes its share of the way
 * only, (m - 1) / m: of two hosts each half of it.
 */
static size_t gather(struct fit *f, uint32_t h)
{
    size_t n = 0;

    for (size_t i = f->host[h]; i < f->host[h + 1]; i++) {
        double m = f->known[f->r[i].event];

        if (isnan(f->away[i]))
            continue;
        f->t[n] = f->r[i].y - f->lines[h].t0;
        f->d[n++] = f->lines[h].known ? f->away[i] * (m - 1) / m : f->away[i];
    }
    return n;
}

/* Median slope of all pairs of n <= WINDOWS_MAX points in order of t. */
static double theil_sen(const double *t, const double *d, size_t n)
{
    double slopes[WINDOWS_MAX * (WINDOWS_MAX - 1) / 2];
    size_t m = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            if (t[j] > t[i])
                slopes[m++] = (d[j] - d[i]) / (t[j] - t[i]);
    return m ? ep_median(slopes, m) : 0;
}

/* Slope of the m points in t and d, and its standard error. Within a window
   the slope has to be small against the noise, or the median is one value's. */
static double fit_rate(struct fit *f, size_t m, double *error)
{
    size_t n = m < WINDOWS_MAX ? m : WINDOWS_MAX;
    double t[WINDOWS_MAX], d[WINDOWS_MAX], mean = 0, sum = 0;
    double rate, sigma;

    *error = (double)INFINITY;
    if (n < WINDOWS_MIN)
        return 0;
    for (size_t w = 0; w < n; w++) {
        size_t from = m * w / n, to = m * (w + 1) / n;

        memcpy(f->v, f->t + from, (to - from) * sizeof *f->v);
        t[w] = ep_median(f->v, to - from);
        memcpy(f->v, f->d + from, (to - from) * sizeof *f->v);
        d[w] = ep_median(f->v, to - from);
        mean += t[w] / (double)n;
    }
    rate = theil_sen(t, d, n);
    for (size_t w = 0; w < n; w++)
        f->v[w] = d[w] - rate * t[w];
    sigma = EP_MAD_TO_SIGMA * ep_mad(f->v, n, ep_median(f->v, n));
    sigma = hypot(sigma, RESOLUTION) * (1 + FEW / (double)(n - 2));
    for (size_t w = 0; w < n; w++)
        sum += (t[w] - mean) * (t[w] - mean);
    if (sum > 0)
        *error = sigma / sqrt(sum);
    return sum > 0 ? rate : 0;
}

/* Move a host's line to its readings, its rate too unless that is final. */
static void fit_line(struct fit *f, uint32_t h, bool rates)
{
    struct ep_clock_line *l = &f->lines[h];
    size_t m = gather(f, h);

    if (m == 0)
        return;
    if (rates) {
        double more = fit_rate(f, m, &f->rate_error[h]);

        for (size_t i = 0; i < m; i++)
            f->d[i] -= more * f->t[i];
        l->rate += more;
    }
    l->offset += ep_median(f->d, m);
    l->n = m;
    l->known = true;
}

/* Go out from the hosts that are known until there are no more. */
static void grow(struct fit *f)
{
    bool more = true;
    bool *before = ep_calloc(f->nhosts + 1, sizeof *before);

    while (more) {
        more = false;
        place_events(f);
        for (uint32_t h = 0; h < f->nhosts; h++)
            before[h] = f->lines[h].known;
        for (uint32_t h = 0; h < f->nhosts; h++) {
            if (before[h] || !f->lines[h].n)
                continue;
            fit_line(f, h, true);
            more |= f->lines[h].known;
        }
    }
    free(before);
}

/* ==== The reference ==== */

/*
 * Make the lines of a group relative to line ref. With s = y - t0 the common
 * time is T = t0 + (1 - rate) s - offset, and ref's own reading at that time is
 * t0 + (T - t0 + offset_ref) / (1 - rate_ref).
 */
static void relate(struct ep_clock_line *l, const struct ep_clock_line *ref)
{
    double g = 1 / (1 - ref->rate);

    l->offset = g * (l->offset - ref->offset);
    /* 1 - g (1 - rate) without the difference of numbers near 1 */
    l->rate = g * (l->rate - ref->rate);
}

/* Hosts of a group, collected in members[m]: of those with 2/3 of the most
   readings or more, the one nearest to the median. */
static uint32_t choose(struct fit *f, const uint32_t *members, size_t m)
{
    double offset, rate, span, least = (double)INFINITY;
    uint32_t best = members[0];
    uint64_t most = 0;

    for (size_t i = 0; i < m; i++)
        f->v[i] = f->lines[members[i]].offset;
    offset = ep_median(f->v, m);
    for (size_t i = 0; i < m; i++) {
        f->v[i] = f->lines[members[i]].rate;
        if (f->lines[members[i]].n > most)
            most = f->lines[members[i]].n;
    }
    rate = ep_median(f->v, m);
    for (size_t i = 0; i < m; i++) {
        const struct ep_clock_line *l = &f->lines[members[i]];
        double away;

        span =
            f->r[f->host[members[i] + 1] - 1].y - f->r[f->host[members[i]]].y;
        away = fabs(l->offset - offset) + fabs(l->rate - rate) * span / 2;
        if (away < least && l->n >= most / 3 * 2) {
            least = away;
            best = members[i];
        }
    }
    return best;
}

/* Relative to reference ref; what is then no significant rate is none. */
static void settle(struct fit *f, const uint32_t *members, size_t m,
                   uint32_t ref)
{
    const struct ep_clock_line to = f->lines[ref];
    double t0 = (f->r[f->host[ref]].y + f->r[f->host[ref + 1] - 1].y) / 2;

    for (size_t i = 0; i < m; i++) {
        uint32_t h = members[i];
        struct ep_clock_line *l = &f->lines[h];

        relate(l, &to);
        l->offset += l->rate * (t0 - l->t0);
        l->t0 = t0;
        l->reference = h == ref;
        if (!(fabs(l->rate) >
              SIGNIFICANT * hypot(f->rate_error[h], f->rate_error[ref])))
            l->rate = 0;
    }
}

/* Offsets relative to the reference again, after a round without rates. */
static void pin(struct fit *f, size_t groups)
{
    double *zero = ep_calloc(groups + 1, sizeof *zero);

    for (size_t h = 0; h < f->nhosts; h++)
        if (f->lines[h].reference)
            zero[f->lines[h].group] = f->lines[h].offset;
    for (size_t h = 0; h < f->nhosts; h++)
        if (f->lines[h].known)
            f->lines[h].offset -= zero[f->lines[h].group];
    free(zero);
}

/* Choose each group's reference and make its lines relative to that. */
static void choose_all(struct fit *f, size_t groups)
{
    uint32_t *members = ep_calloc(f->nhosts + 1, sizeof *members);
    size_t *first = ep_calloc(groups + 2, sizeof *first);

    /* by group: first[g + 1] goes from the begin of group g to its end */
    for (uint32_t h = 0; h < f->nhosts; h++)
        if (f->lines[h].known)
            first[f->lines[h].group + 2]++;
    sum_up(first, groups + 1);
    for (uint32_t h = 0; h < f->nhosts; h++)
        if (f->lines[h].known)
            members[first[f->lines[h].group + 1]++] = h;
    for (size_t g = 0; g < groups; g++) {
        const uint32_t *its = members + first[g];
        size_t m = first[g + 1] - first[g];

        settle(f, its, m, choose(f, its, m));
    }
    free(first);
    free(members);
}

/* ==== The whole ==== */

/* How far single readings are from the line. */
static void measure_spread(struct fit *f, uint32_t h)
{
    struct ep_clock_line *l = &f->lines[h];
    size_t m = 0;

    for (size_t i = f->host[h]; i < f->host[h + 1]; i++)
        if (!isnan(f->away[i]))
            f->d[m++] = f->away[i];
    l->n = m;
    l->spread = ep_mad(f->d, m, 0);
    l->error = MEDIAN_ERROR * fmax(l->spread, RESOLUTION) / sqrt((double)m);
}

static void run(struct fit *f, size_t groups)
{
    grow(f);
    for (int round = 0; round < ROUNDS; round++) {
        place_events(f);
        for (uint32_t h = 0; h < f->nhosts; h++)
            if (f->lines[h].known)
                fit_line(f, h, true);
    }
    choose_all(f, groups);
    for (int round = 0; round < LAST_ROUNDS; round++) {
        place_events(f);
        for (uint32_t h = 0; h < f->nhosts; h++)
            if (f->lines[h].known)
                fit_line(f, h, false);
        pin(f, groups);
    }
    place_events(f);
    for (uint32_t h = 0; h < f->nhosts; h++)
        if (f->lines[h].known)
            measure_spread(f, h);
}

size_t ep_clock_fit(struct ep_clock_reading *r, size_t n, size_t nevents,
                    size_t nhosts, struct ep_clock_line *lines)
{
    struct fit f = {
        .r = r, .n = n, .nevents = nevents, .nhosts = nhosts, .lines = lines};
    size_t most = n > nhosts ? n : nhosts, groups;

    memset(lines, 0, nhosts * sizeof *lines);
    if (n == 0)
        return 0;
    if (most < WINDOWS_MAX)
        most = WINDOWS_MAX;
    f.host = ep_calloc(nhosts + 1, sizeof *f.host);
    f.event = ep_calloc(nevents + 1, sizeof *f.event);
    f.at = ep_calloc(n + 1, sizeof *f.at);
    f.away = ep_calloc(n, sizeof *f.away);
    f.known = ep_calloc(nevents + 1, sizeof *f.known);
    f.places = ep_calloc(nhosts, sizeof *f.places);
    f.t = ep_calloc(most, sizeof *f.t);
    f.d = ep_calloc(most, sizeof *f.d);
    f.v = ep_calloc(most, sizeof *f.v);
    f.rate_error = ep_calloc(nhosts + 1, sizeof *f.rate_error);
    index_readings(&f);
    groups = join(&f);
    seed(&f, groups);
    run(&f, groups);
    free(f.host);
    free(f.event);
    free(f.at);
    free(f.away);
    free(f.known);
    free(f.places);
    free(f.t);
    free(f.d);
    free(f.v);
    free(f.rate_error);
    return groups;
}
