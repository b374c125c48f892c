/* SPDX-License-Identifier: Apache-2.0 */
/* period_learn.c - the period at the end of a row of calls; see period.h. */
#include "config.h"

#include "base/mem.h"
#include "detect/period_impl.h"

#include <math.h>
#include <stdlib.h>

#define RUN_LEAST 24   /* calls: fewer may repeat by chance among holes */
#define GAPS_MAX 1024  /* calls whose gaps are looked at */
#define JUMPS 3        /* places to divide the gaps at that are tried */
#define JUMP_LEAST 0.5 /* of log gaps: 1.65 times */
#define GAP_LEAST 1e-9 /* s */
#define ACF_LEAST 0.5

/*
 * The longest suffix of x[0..n) that is some period three times or more, that
 * period into *period; 0 if there is none. fail is room for n + 1 numbers.
 */
static size_t longest_run(const uint64_t *x, size_t n, uint32_t *fail,
                          uint32_t *period)
{
    size_t best = 0, q = 0;

    fail[0] = fail[1] = 0;
    for (size_t m = 2; m <= n; m++) {
        uint64_t s = x[n - m];

        while (q && x[n - 1 - q] != s)
            q = fail[q];
        q += x[n - 1 - q] == s;
        fail[m] = (uint32_t)q;
        if ((m - q) * REPEATS <= m && m - q <= EP_PERIOD_MAX) {
            best = m;
            *period = (uint32_t)(m - q);
        }
    }
    return best;
}

static bool is_in(const uint64_t *w, uint32_t n, uint64_t bloom, uint64_t s)
{
    if (!(bloom & ep_bloom_bit(s)))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (w[i] == s)
            return true;
    return false;
}

/*
 * Have the calls been those of w, in whatever order, for long enough? Calls
 * that repeat inside an iteration are found out by what ends it.
 */
static bool held(const struct ep_period_call *v, size_t n, const uint64_t *w,
                 uint32_t period)
{
    double last = (double)NAN;
    uint64_t bloom = 0;
    size_t i;

    for (i = 0; i < period; i++)
        bloom |= ep_bloom_bit(w[i]);
    for (i = n; i > 0; i--) {
        const struct ep_period_call *c = &v[i - 1];

        /* mostly it is the call of a period later, of which that is known */
        if ((i - 1 + period >= n || c->symbol != v[i - 1 + period].symbol) &&
            !is_in(w, period, bloom, c->symbol))
            break;
        if (isnan(last))
            last = c->ts;
        if (last - c->ts >= EP_PERIOD_HOLD_S ||
            n - i + 1 >= EP_PERIOD_HOLD_CALLS)
            return true;
    }
    return false;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Autocorrelation at lag k, each factor with its own mean and variance. */
static double correlation(const double *g, size_t n, size_t k)
{
    double a = 0, b = 0, aa = 0, bb = 0, ab = 0;
    size_t m = n - k;

    for (size_t i = 0; i < m; i++) {
        a += g[i];
        b += g[i + k];
    }
    a /= (double)m;
    b /= (double)m;
    for (size_t i = 0; i < m; i++) {
        aa += (g[i] - a) * (g[i] - a);
        bb += (g[i + k] - b) * (g[i + k] - b);
        ab += (g[i] - a) * (g[i + k] - b);
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

/* The widest jumps among sorted values, as their middles; how many. */
static int find_jumps(const double *sorted, size_t n, double *at)
{
    double width[JUMPS];
    int k = 0;

    for (size_t i = REPEATS; i + REPEATS <= n; i++) {
        double jump = sorted[i] - sorted[i - 1];
        int place = k;

        if (jump < JUMP_LEAST)
            continue;
        while (place > 0 && width[place - 1] < jump)
            place--;
        if (place == JUMPS)
            continue;
        k += k < JUMPS;
        for (int j = k - 1; j > place; j--) {
            width[j] = width[j - 1];
            at[j] = at[j - 1];
        }
        width[place] = jump;
        at[place] = (sorted[i] + sorted[i - 1]) / 2;
    }
    return k;
}

/*
 * Calls of one kind: a period in the gaps before them. False if there is none.
 */
static bool learn_gaps(const struct ep_period_call *v, size_t n,
                       struct learned *out)
{
    double *g, *sorted, at[JUMPS];
    uint64_t *x;
    uint32_t *fail, period = 0;
    bool found = false;
    size_t m;

    m = n - 1 < GAPS_MAX ? n - 1 : GAPS_MAX;
    v += n - m - 1; /* the gap i is before v[i + 1] */
    for (size_t i = 0; i < m; i++)
        if (isnan(v[i + 1].ts - v[i].ts))
            return false;
    g = ep_calloc(2 * m, sizeof *g);
    sorted = g + m;
    x = ep_calloc(m, sizeof *x);
    fail = ep_calloc(m + 1, sizeof *fail);
    for (size_t i = 0; i < m; i++)
        g[i] = sorted[i] = log(fmax(v[i + 1].ts - v[i].ts, GAP_LEAST));
    qsort(sorted, m, sizeof *sorted, by_value);
    for (int j = 0, k = find_jumps(sorted, m, at); j < k && !found; j++) {
        for (size_t i = 0; i < m; i++)
            x[i] = g[i] > at[j];
        out->run = longest_run(x, m, fail, &period);
        found = out->run && period > 1 &&
                correlation(g + m - out->run, out->run, period) >= ACF_LEAST;
        out->split = exp(at[j]);
    }
    if (found) {
        out->gaps = true;
        out->calls = period;
    }
    free(g);
    free(x);
    free(fail);
    return found;
}

struct learned ep_period_learn(const struct ep_period_call *v, size_t n,
                               bool sure)
{
    struct learned out = {0, false, (double)NAN, 0};
    uint32_t *fail, period = 0;
    uint64_t *x;
    size_t run;

    if (n < REPEATS)
        return out;
    /* too early, whatever is in it (false if a time is not known) */
    if (!sure && n < EP_PERIOD_HOLD_CALLS &&
        v[n - 1].ts - v[0].ts < EP_PERIOD_HOLD_S)
        return out;
    x = ep_calloc(n, sizeof *x);
    fail = ep_calloc(n + 1, sizeof *fail);
    for (size_t i = 0; i < n; i++)
        x[i] = v[i].symbol;
    run = longest_run(x, n, fail, &period);
    if (run &&
        (sure || (run >= RUN_LEAST && held(v, n, x + n - period, period)))) {
        if (period != 1 || !learn_gaps(v + n - run, run, &out))
            out = (struct learned){period, false, (double)NAN, run};
    }
    free(x);
    free(fail);
    return out;
}
