/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bocd.h - Bayesian online change-point detection on a scalar series.
 *
 * R. P. Adams, D. J. C. MacKay, "Bayesian online changepoint detection",
 * arXiv 0710.3742 (2007) [1]. The run length r_t is the number of samples
 * since the last change. With constant hazard H ([1], eq. 3 and algorithm 1)
 *
 *     P(r_t = r + 1 | x_1..t)  ~  P(r_t-1 = r) pi_r(x_t) (1 - H)
 *     P(r_t = 0     | x_1..t)  ~  sum_r P(r_t-1 = r) pi_r(x_t) H
 *
 * where pi_r is the posterior predictive of the samples of run r: normal with
 * unknown mean and variance under a Normal-Gamma prior, hence Student's t
 * with 2 alpha_r degrees of freedom, location mu_r and squared scale
 * beta_r (kappa_r + 1) / (alpha_r kappa_r), and
 *
 *     mu'    = mu + (x - mu) / (kappa + 1)          kappa' = kappa + 1
 *     beta'  = beta + kappa (x - mu)^2 / (2 (kappa + 1))
 *     alpha' = alpha + 1/2
 *
 * Note that P(r_t = 0) = H at every t, whatever the data: a change shows in
 * the lagged mass P(r_t <= w), w = 2..4, or in a fall of the most probable
 * run length.
 *
 * Run lengths are capped: the last bin, window - 1, means "at least that
 * many" and carries the statistics of the last window - 1 samples.
 *
 * Only differences from a running mean are squared, so an offset of 1e6
 * costs no digits beyond those of the input; beta0 > 0 keeps the variance of
 * a constant series off zero.
 */
#ifndef EP_DETECT_BOCD_H
#define EP_DETECT_BOCD_H

#include "base/archive.h"
#include "base/err.h"

#include <stddef.h>

struct ep_bocd_config {
    double hazard;   /* H in (0, 1): one change in 1/H samples on average */
    double mu0;      /* prior mean, unit of the series */
    double kappa0;   /* > 0, weight of mu0 in samples */
    double alpha0;   /* > 0, weight of the prior variance in half samples */
    double beta0;    /* > 0, alpha0 times the prior variance, unit squared */
    unsigned window; /* run lengths kept, 2..EP_BOCD_MAX_WINDOW */
};

#define EP_BOCD_MAX_WINDOW 512

struct ep_bocd;

/*
 * A detector that has seen nothing. Free with ep_bocd_free. NULL with
 * EP_EDOM if a parameter is outside its range. Memory: 48 bytes per run
 * length and about 90.
 */
struct ep_bocd *ep_bocd_new(const struct ep_bocd_config *config,
                            struct ep_error *err);
void ep_bocd_free(struct ep_bocd *b);

/*
 * Prior mean for the runs that begin from now on. A caller that knows where
 * the series lies sets it there (empirical Bayes): far from the data, the
 * prior makes every new run improbable. Not finite or |mu0| > 1e100: ignored.
 */
void ep_bocd_set_mean(struct ep_bocd *b, double mu0);

/*
 * Take one sample. EP_EDOM if x is not finite or |x| > 1e100; the state is
 * then untouched.
 * Cost: O(window), one log and one exp per run length; no allocation.
 */
int ep_bocd_push(struct ep_bocd *b, double x) EP_MUST_USE;

/* P(r_t <= w); 1 if w reaches the last run length kept. Cost: O(w). */
double ep_bocd_mass(const struct ep_bocd *b, unsigned w);

/* The most probable run length (the shortest of equals). Cost: O(window). */
unsigned ep_bocd_map(const struct ep_bocd *b);

/*
 * P(r_t = r) for r = 0 .. return value - 1. The array is borrowed until the
 * next push.
 */
size_t ep_bocd_posterior(const struct ep_bocd *b, const double **prob);

/* Save or load what it has seen; b has to be of the same configuration. */
void ep_bocd_archive(struct ep_archive *a, struct ep_bocd *b);

#endif
