/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs.h - from measurements of pairs, which ends and which links are slow.
 *
 * A transfer from i to j goes through i, the link and j; its time says nothing
 * of which of them is slow, those of other pairs do. With y the logarithm of
 * its time (or of 1 / bandwidth),
 *
 *     y_e = base_e + sum of x_f over the faults f that e goes through + noise
 *
 * where base_e is the link's own healthy past if that is known, else a
 * constant of its class (same transport, same size, ...), for healthy links of
 * one machine differ by 1.27 to 1.6 times [1]. A fault is an end, an end that
 * sends, an end that receives, a link, one direction of it, or all links of a
 * class against their past; x_f > 0, and faults are few. Searched is the set
 * of faults with the least
 *
 *     J = sum_e min((y_e - base_e - sum_f x_f)^2 / (2 sigma_e^2), T)
 *         + sum_f lambda_f,                           T = k^2 / 1.1
 *
 * with k at least sqrt(2 log n) + 1.2, since of more measurements more stand
 * out by chance: least squares on logarithms that a few odd measurements do
 * not move (a truncated loss), with a price for each fault: 0.5 T of a link,
 * 0.55 T of one direction, 0.75 T of an end, 0.8 T if it is slow in one
 * direction, 1.1 T for all. So one measurement has to stand out by k sigma to
 * be a fault, an end is blamed when two or more of its links are slow alike,
 * and what three of four links of an end show is not yet the end's. One fault
 * after the other is added, then each is tried against all others (as
 * orthogonal matching pursuit with replacement); on small graphs J is then
 * within 1 of the least of all. The constant of a class is that of the half
 * of its values that lie closest together [2], or of a faster group if that
 * gives a smaller J: nothing makes a link faster.
 *
 * What cannot be told. Faults that go through the same measurements cannot be
 * told from each other: a link and the end that has no other; on a ring that
 * is measured one way only, the link, its sender and its receiver. All of them
 * are given as candidates, and p is at most 1 / candidates. Without a past p is
 * also at most (s + 1) / (s + 2), s the number of measurements that agree with
 * the constant of the class, as in peers.h; and where all links are slow
 * alike, nothing is.
 *
 * The noise of a class is the length of its shortest half (corrected by
 * 1 + 8 / n, as simulation has it), mixed with what is usual for it: few values
 * do not tell.
 *
 * [1] Wu et al., "FALCON", arXiv 2410.12588, 2024. NOTE: differs: there a group
 *     of links is compared with the median of its kind.
 * [2] Rousseeuw, Leroy, "A robust scale estimator based on the shortest half",
 *     Statistica Neerlandica 42 (1988).
 */
#ifndef EP_DETECT_PAIRS_H
#define EP_DETECT_PAIRS_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* What healthy links of one machine differ by, see above. */
#define EP_PAIRS_UNLIKE_LEAST 1.27
#define EP_PAIRS_UNLIKE_MOST 1.6

#define EP_PAIRS_OTHERS 4 /* further candidates that are named */

struct ep_pairs_config {
    double min_change;  /* relative, in (0, 10] */
    double k;           /* sigmas, > 0 */
    double noise_floor; /* least relative noise, in (0, 1] */
};

#define EP_PAIRS_DEFAULTS                                                      \
    {                                                                          \
        .min_change = 0.10, .k = 3.5, .noise_floor = 0.01                      \
    }

/* One measurement, or the median of several of the same. */
struct ep_pair {
    uint32_t src, dst; /* < ends, not the same */
    uint32_t cls;      /* < classes */
    double y;          /* logarithm of its time, finite */
    double ref;        /* of the link's healthy past; NaN: not known */
    double noise;      /* relative, of y - ref; 0: not known */
    double unlike;     /* without ref: times that healthy links may differ,
                          >= 1 */
    double scatter;    /* usual noise of the class, > 0 */
};

struct ep_pairs_input {
    const struct ep_pair *v; /* [n] borrowed */
    size_t n;
    uint32_t ends, classes;
};

enum ep_pairs_kind {
    EP_PAIRS_END,      /* a */
    EP_PAIRS_SENDS,    /* a, when it sends */
    EP_PAIRS_RECEIVES, /* a, when it receives */
    EP_PAIRS_LINK,     /* between a and b, a < b */
    EP_PAIRS_WAY,      /* from a to b */
    EP_PAIRS_ALL,      /* all links of class a, against their past */
};

struct ep_pairs_thing {
    enum ep_pairs_kind kind;
    uint32_t a, b;
};

/* What is slower by more is a value that no link has. */
#define EP_PAIRS_FACTOR_MOST 1e100

struct ep_pairs_fault {
    struct ep_pairs_thing what;
    double factor;   /* times slower, 1 + min_change to EP_PAIRS_FACTOR_MOST */
    double p;        /* that it is slow, and not another candidate */
    size_t measured; /* measurements that go through it */
    size_t peers;    /* those of other links that agree with the base; of links
                        without a past only */
    size_t candidates; /* things that it may be as well, and itself */
    struct ep_pairs_thing other[EP_PAIRS_OTHERS];
};

struct ep_pairs_result {
    struct ep_pairs_fault *fault; /* [n] in the order of their finding */
    size_t n;
    double *base;   /* [in->n] logarithm of the healthy time; NaN if unknown */
    int32_t *blame; /* [in->n] index of the fault that explains most of a slow
                       measurement; -1: it is not slow by one */
};

/*
 * Find the faults of a round.
 *
 * config   NULL for the defaults
 * out      written; free with ep_pairs_result_free
 * Errors: EP_EDOM (a field out of its range; err names the measurement), out
 * is then untouched.
 * Cost: O(n) time per fault; with one of 1,000,000 measurements 2.3 s.
 * Allocates 120 n bytes and frees them.
 */
int ep_pairs_find(const struct ep_pairs_input *in,
                  const struct ep_pairs_config *config,
                  struct ep_pairs_result *out,
                  struct ep_error *err) EP_MUST_USE;

void ep_pairs_result_free(struct ep_pairs_result *r);

#endif
