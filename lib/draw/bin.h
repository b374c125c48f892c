/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bin.h - fewer values than there are, with the extremes kept.
 *
 * A picture has a thousand columns and a trace a million steps. What must not
 * get lost is the one slow step or rank, so bins keep extremes, never means.
 */
#ifndef EP_DRAW_BIN_H
#define EP_DRAW_BIN_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What one column of pixels needs of a line: its first, least, greatest and
 * last point, in whatever order. Drawn so, a line colours the same pixels as
 * with all its points: U. Jugel et al., "M4: a visualization-oriented time
 * series data aggregation", PVLDB 7 (2014).
 */
struct ep_bin_m4 {
    size_t first, min, max, last; /* indices of points */
    size_t n;                     /* points; 0: none, the rest is undefined */
};

/*
 * Sort points into columns of equal width over [lo, hi].
 *
 * x, y    [n] double, not NaN; x need not be in order; what is outside of
 *         [lo, hi] is put into the end columns
 * col     [ncol] written
 * Cost: O(n + ncol); no allocation.
 */
void ep_bin_m4(const double *x, const double *y, size_t n, double lo, double hi,
               struct ep_bin_m4 *col, size_t ncol);

/* The bin of v in n bins of equal width over [lo, hi]; ends as above. */
size_t ep_bin_of(double v, double lo, double hi, size_t n);

/*
 * The worst cell of each block of a matrix that is cut into brows x bcols
 * blocks: block i of rows is [i rows / brows, (i + 1) rows / brows).
 *
 * v       [rows][cols] double, NaN: nothing there; brows <= rows, bcols <= cols
 * low     the least is the worst, else the greatest; of equals the first
 * at      [brows][bcols] written: index into v, SIZE_MAX if all are NaN
 * Cost: O(rows cols); no allocation.
 */
void ep_bin_blocks(const double *v, size_t rows, size_t cols, size_t brows,
                   size_t bcols, bool low, size_t *at);

#endif
