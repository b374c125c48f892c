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

void ep_bin_blocks(const double *v, size_t rows, size_t cols, size_t brows,
                   size_t bcols, bool low, size_t *at)
{
    for (size_t i = 0; i < brows * bcols; i++)
        at[i] = SIZE_MAX;
    for (size_t br = 0; br < brows; br++)
        for (size_t r = br * rows / brows; r < (br + 1) * rows / brows; r++)
            for (size_t bc = 0; bc < bcols; bc++)
                for (size_t c = bc * cols / bcols; c < (bc + 1) * cols / bcols;
                     c++) {
                    size_t *best = &at[br * bcols + bc], i = r * cols + c;

                    if (isnan(v[i]))
                        continue;
                    if (*best == SIZE_MAX ||
                        (low ? v[i] < v[*best] : v[i] > v[*best]))
                        *best = i;
                }
}
