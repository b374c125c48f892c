/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_stats.c - order statistics against a full sort, and hand-worked cases.
 */
#include "config.h"

#include "base/stats.h"

#include "tap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define N_MAX 3000

static uint64_t state = 20260101;

static double uniform(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15U);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double sorted_quantile(const double *v, size_t n, double q)
{
    double *s = malloc(n * sizeof *s);
    double h = (double)(n - 1) * q;
    size_t k = (size_t)floor(h);
    double r;

    memcpy(s, v, n * sizeof *s);
    qsort(s, n, sizeof *s, compare);
    r = k + 1 < n ? s[k] + (h - (double)k) * (s[k + 1] - s[k]) : s[n - 1];
    free(s);
    return r;
}

/* The i-th pattern of n values: random, few distinct, sorted, organ pipe. */
static void fill(double *v, size_t n, int pattern)
{
    for (size_t i = 0; i < n; i++) {
        double d = (double)i;

        switch (pattern) {
        case 0:
            v[i] = uniform() * 1e6 - 5e5;
            break;
        case 1:
            v[i] = floor(uniform() * 3);
            break;
        case 2:
            v[i] = d;
            break;
        case 3:
            v[i] = -d;
            break;
        default:
            v[i] = i < n / 2 ? d : (double)(n - i);
        }
    }
}

static void check_against_sort(void)
{
    static const double qs[] = {0, 0.1, 0.25, 0.5, 0.9, 1};
    double v[N_MAX];
    double w[N_MAX];
    double worst = 0;
    int permuted = 1;

    for (int t = 0; t < 1500; t++) {
        size_t n = 1 + (size_t)(uniform() * (t % 10 ? 60 : N_MAX - 1));
        double q = qs[t % 6];
        double sum = 0;

        fill(v, n, t % 5);
        memcpy(w, v, n * sizeof *v);
        worst =
            fmax(worst, fabs(ep_quantile(w, n, q) - sorted_quantile(v, n, q)));
        memcpy(w, v, n * sizeof *v);
        worst = fmax(worst, fabs(ep_median(w, n) - sorted_quantile(v, n, 0.5)));
        qsort(w, n, sizeof *w, compare);
        qsort(v, n, sizeof *v, compare);
        for (size_t i = 0; i < n; i++)
            sum += fabs(v[i] - w[i]);
        permuted &= sum == 0;
    }
    printf("# 1500 arrays, seed 20260101, largest difference %g\n", worst);
    near(worst, 0, 1e-9); /* one rounding of the interpolation at 5e5 */
    ok(permuted);
}

/* Killer sequences must not make it quadratic: this would take minutes. */
static void check_large(void)
{
    size_t n = 1000000;
    double *v = malloc(n * sizeof *v);

    for (size_t i = 0; i < n; i++)
        v[i] = i % 2 ? (double)i : (double)(n - i);
    ok(ep_median(v, n) > 0);
    for (size_t i = 0; i < n; i++)
        v[i] = 7;
    ok(ep_median(v, n) == 7);
    free(v);
}

int main(void)
{
    double odd[] = {5, 1, 9};
    double even[] = {4, 1, 3, 2};
    double mad[] = {1, 1, 2, 2, 4, 6, 9};
    double bad[] = {1, NAN, 3};
    double inf[] = {INFINITY, 1, INFINITY};
    double big[] = {1.7e308, 1.7e308, 1.6e308, 1.7e308};
    double quart[] = {1, 2, 3, 4};

    ok(ep_median(odd, 3) == 5);
    ok(ep_median(even, 4) == 2.5);
    ok(ep_mad(mad, 7, 2) == 1);
    ok(isnan(ep_median(bad, 3)));
    ok(isnan(ep_mad(bad, 3, 1)));
    ok(isnan(ep_quantile(bad, 3, 0.5)));
    ok(isnan(ep_median(odd, 0)));
    ok(isnan(ep_quantile(odd, 0, 0.5)));
    ok(isnan(ep_quantile(odd, 3, 1.01)));
    ok(isnan(ep_quantile(odd, 3, NAN)));
    ok(ep_median(inf, 3) == INFINITY);
    ok(ep_median(big, 4) == 1.7e308);
    near(ep_quantile(quart, 4, 0.25), 1.75, 1e-15);
    near(ep_quantile(quart, 4, 0.75), 3.25, 1e-15);
    near(EP_MAD_TO_SIGMA, 1 / 0.6744897501960817, 1e-15);
    check_against_sort();
    check_large();
    return tap_done();
}
