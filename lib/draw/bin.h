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
 * How many of n things have to share a place so that there are at most most
 * places: all but the last hold as many. even: a power of two, so that a
 * place holds whole nodes of ranks, or a node several places.
 *
 * n, most >= 1
 */
size_t ep_bin_size(size_t n, size_t most, bool even);

/* The places that n things take, so many in each. */
size_t ep_bin_count(size_t n, size_t each);

/*
 * The worst cell of each block of a matrix that is cut into blocks of
 * rper x cper cells; those of the last row and column may be smaller.
 *
 * v       [rows][cols] double, NaN: nothing there; rper, cper >= 1
 * low     the least is the worst, else the greatest; of equals the first
 * at      [ep_bin_count(rows, rper)][ep_bin_count(cols, cper)] written: index
 *         into v, SIZE_MAX if all are NaN
 * Cost: O(rows cols); no allocation.
 */
void ep_bin_blocks(const double *v, size_t rows, size_t cols, size_t rper,
                   size_t cper, bool low, size_t *at);

#endif
