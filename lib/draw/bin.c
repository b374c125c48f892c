/* SPDX-License-Identifier: Apache-2.0 */
/* bin.c - see bin.h. */
#include "config.h"

#include "draw/bin.h"

#include <math.h>
#include <stdint.h>

size_t ep_bin_of(double v, double lo, double hi, size_t n)
{
    double at = (v - lo) / (hi - lo) * (double)n;

    if (!(at > 0))
        return 0;
    return at < (double)n ? (size_t)at : n - 1;
}

void ep_bin_m4(const double *x, const double *y, size_t n, double lo, double hi,
               struct ep_bin_m4 *col, size_t ncol)
{
    for (size_t i = 0; i < ncol; i++)
        col[i].n = 0;
    for (size_t i = 0; i < n; i++) {
        struct ep_bin_m4 *c = &col[ep_bin_of(x[i], lo, hi, ncol)];

        if (!c->n++) {
            c->first = c->last = c->min = c->max = i;
            continue;
        }
        if (x[i] < x[c->first])
            c->first = i;
        if (x[i] >= x[c->last])
            c->last = i;
        if (y[i] < y[c->min])
            c->min = i;
        if (y[i] > y[c->max])
            c->max = i;
    }
}

size_t ep_bin_size(size_t n, size_t most, bool even)
{
    size_t each = ep_bin_count(n, most), size = 1;

    while (even && size < each)
        size *= 2;
    return even ? size : each;
}

size_t ep_bin_count(size_t n, size_t each)
{
    return n / each + (n % each != 0);
}

void ep_bin_blocks(const double *v, size_t rows, size_t cols, size_t rper,
                   size_t cper, bool low, size_t *at)
{
    size_t bcols = ep_bin_count(cols, cper);

    for (size_t i = 0; i < ep_bin_count(rows, rper) * bcols; i++)
        at[i] = SIZE_MAX;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++) {
            size_t *best = &at[r / rper * bcols + c / cper], i = r * cols + c;

            if (isnan(v[i]))
                continue;
            if (*best == SIZE_MAX || (low ? v[i] < v[*best] : v[i] > v[*best]))
                *best = i;
        }
}
