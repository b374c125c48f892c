/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.c - order statistics by quickselect.
 *
 * Median-of-three pivots make sorted and constant input fast. A crafted
 * input can still defeat them, so after 2 log2(n) + 8 rounds without success
 * what is left is sorted: O(n log n) at worst (the idea of introselect,
 * Musser, "Introspective sorting and selection algorithms", 1997).
 */
#include "config.h"

#include "base/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static void swap(double *a, double *b)
{
    double t = *a;

    *a = *b;
    *b = t;
}

static int compare(const void *pa, const void *pb)
{
    double a = *(const double *)pa;
    double b = *(const double *)pb;

    return (a > b) - (a < b);
}

static bool has_nan(const double *v, size_t n)
{
    bool bad = false;

    for (size_t i = 0; i < n; i++)
        bad |= isnan(v[i]);
    return bad;
}

/* Small ranges: straight insertion is the fastest way to order them. */
static void insertion_sort(double *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        double x = v[i];
        size_t j = i;

        for (; j > 0 && v[j - 1] > x; j--)
            v[j] = v[j - 1];
        v[j] = x;
    }
}

/*
 * Hoare partition of v[lo..hi] about the median of three. Returns j with
 * v[lo..j] <= pivot <= v[j+1..hi], lo <= j < hi.
 */
static size_t partition(double *v, size_t lo, size_t hi)
{
    size_t mid = lo + (hi - lo) / 2;
    size_t i = lo;
    size_t j = hi;
    double pivot;

    if (v[mid] < v[lo])
        swap(&v[mid], &v[lo]);
    if (v[hi] < v[lo])
        swap(&v[hi], &v[lo]);
    if (v[hi] < v[mid])
        swap(&v[hi], &v[mid]);
    pivot = v[mid];
    for (;;) {
        while (v[i] < pivot)
            i++;
        while (v[j] > pivot)
            j--;
        if (i >= j)
            return j < hi ? j : hi - 1;
        swap(&v[i++], &v[j--]);
    }
}

/* Put the k-th smallest at v[k], smaller ones before it, larger after it. */
static void select_kth(double *v, size_t n, size_t k)
{
    size_t lo = 0;
    size_t hi = n - 1;
    unsigned rounds = 8;

    for (size_t m = n; m > 1; m /= 2)
        rounds += 2;
    while (hi - lo >= 16 && rounds-- > 0) {
        size_t j = partition(v, lo, hi);

        if (k <= j)
            hi = j;
        else
            lo = j + 1;
    }
    if (hi - lo < 16)
        insertion_sort(v + lo, hi - lo + 1);
    else
        qsort(v + lo, hi - lo + 1, sizeof *v, compare);
}

double ep_median(double *v, size_t n)
{
    size_t k = n / 2;
    double below;

    if (n == 0 || has_nan(v, n))
        return NAN;
    select_kth(v, n, k);
    if (n % 2 == 1)
        return v[k];
    below = v[0];
    for (size_t i = 1; i < k; i++)
        below = v[i] > below ? v[i] : below;
    return below == v[k] ? below : below / 2 + v[k] / 2;
}

double ep_mad(double *v, size_t n, double centre)
{
    for (size_t i = 0; i < n; i++)
        v[i] = fabs(v[i] - centre);
    return ep_median(v, n);
}

double ep_quantile(double *v, size_t n, double q)
{
    double h = (double)(n - 1) * q;
    size_t k;
    double above;

    if (n == 0 || !(q >= 0 && q <= 1) || has_nan(v, n))
        return NAN;
    k = (size_t)h;
    if (k >= n)
        k = n - 1;
    select_kth(v, n, k);
    if (h <= (double)k || k + 1 == n)
        return v[k];
    above = v[k + 1];
    for (size_t i = k + 2; i < n; i++)
        above = v[i] < above ? v[i] : above;
    return v[k] + (h - (double)k) * (above - v[k]);
}
