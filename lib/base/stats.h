/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h - order statistics: median, MAD, quantile.
 *
 * The one place where evenpace takes a median. All functions select in place
 * (quickselect), so they REORDER v; pass a copy if the order matters. None
 * allocates.
 *
 * NaN policy: a NaN among the values, or n = 0, gives NaN. Never an ordinary
 * number that silently ignores it. Infinities are ordinary values, ordered at
 * the ends; a median between -inf and +inf is NaN.
 */
#ifndef EP_BASE_STATS_H
#define EP_BASE_STATS_H

#include <stddef.h>

/* MAD of a normal distribution times this is its standard deviation. */
#define EP_MAD_TO_SIGMA 1.4826022185056018

/*
 * Median: the middle value, or the mean of the two middle ones.
 *
 * v       [n] double, reordered
 * Cost: O(n) expected, O(n log n) at worst.
 */
double ep_median(double *v, size_t n);

/*
 * Median absolute deviation, median_i |v[i] - centre|, unscaled (multiply by
 * EP_MAD_TO_SIGMA for a standard deviation).
 *
 * v       [n] double; overwritten by the deviations, reordered
 * centre  usually ep_median of the same values; same unit as v
 * Cost: as ep_median.
 */
double ep_mad(double *v, size_t n, double centre);

/*
 * Quantile q in [0, 1] with linear interpolation between order statistics:
 * h = (n - 1) q, v(floor h) + (h - floor h) (v(floor h + 1) - v(floor h)),
 * definition 7 of Hyndman and Fan, "Sample quantiles in statistical
 * packages", The American Statistician 50 (1996). q outside [0, 1] or NaN
 * gives NaN.
 *
 * v       [n] double, reordered
 * Cost: as ep_median.
 */
double ep_quantile(double *v, size_t n, double q);

#endif
