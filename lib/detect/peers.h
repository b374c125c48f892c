/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.h - which of n devices or ranks of one kind is slow.
 *
 * Every value is compared with the others, itself left out. With y = log(x)
 * (its negative where higher is better, so that larger y is slower),
 *
 *     factor_i = exp(y_i - m_i),           m_i = median_{j != i} y_j
 *     z_i      = (y_i - m_i) / sigma_i
 *     sigma_i  = hypot(max(1.4826 median_{j != i} |y_j - m_i|, noise_floor),
 *                      noise_i)
 *     slow_i   = factor_i >= 1 + min_change and z_i >= k
 *
 * The median and the MAD resist up to half of the values (Hampel, "The
 * influence curve and its role in robust estimation", JASA 69, 1974); without
 * leaving i out, the deviation of one of two values would be part of its own
 * yardstick. MAD = 0 (most are equal) is what noise_floor is for.
 *
 * How sure:  p_i = (1 - tail(z_i)) (s_i + 1) / (s_i + 2), where tail is the
 * two-sided normal tail and s_i the number of others within k sigma of m_i,
 * or within min_change if that is less. The last factor is Laplace's rule of
 * succession: that the others are the healthy ones rests on s_i samples that
 * agree. Two values give at most 2/3, three at most 3/4. If the values are
 * split (below), p is at most 1/2.
 *
 * Split: the values form two groups, a gap of at least min_change and k times
 * the scatter within the groups between them, of which the slower holds half
 * of the values or more and the faster a quarter or more. Then either half
 * the devices are slow or the faster ones differ in kind; the values alone do
 * not say which. Slower values are marked slow only up to exactly half.
 */
#ifndef EP_DETECT_PEERS_H
#define EP_DETECT_PEERS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum ep_peers_better { EP_PEERS_LOW, EP_PEERS_HIGH };

struct ep_peers_config {
    double min_change;  /* relative, in (0, 10] */
    double k;           /* sigmas, > 0 */
    double noise_floor; /* least relative noise, in (0, 1] */
};

#define EP_PEERS_DEFAULTS                                                      \
    {                                                                          \
        .min_change = 0.10, .k = 3.5, .noise_floor = 0.01                      \
    }

/* Of one value. */
struct ep_peer {
    double factor;  /* times slower than the others; below 1: faster */
    double z;       /* robust deviation, > 0: slower */
    double p;       /* that it is slower than healthy peers; 0 if z <= 0 */
    size_t support; /* s: others that agree with each other */
    bool slow;
};

/* What limits the verdict as a whole; the first that applies. */
enum ep_peers_doubt {
    EP_PEERS_SURE,
    EP_PEERS_ALONE, /* n = 1: nothing to compare with */
    EP_PEERS_TWO,   /* n = 2: the faster may be the odd one */
    EP_PEERS_SPLIT, /* half or more may be slow */
    EP_PEERS_THREE, /* n = 3: two agree against one */
};

struct ep_peers_summary {
    size_t n_slow;
    bool split;
    size_t fast_group; /* if split: values in the faster group */
    double split_gap;  /* if split: slower / faster group, ratio of medians */
    enum ep_peers_doubt doubt;
};

/* The values to compare; all borrowed. */
struct ep_peers_input {
    const double *x;     /* [n] > 0 and finite, any unit */
    const double *noise; /* [n] relative standard deviation of each value's
                            measurement, finite and >= 0; NULL: none */
    size_t n;
    enum ep_peers_better better;
};

/*
 * Compare the values with each other.
 *
 * config   NULL for the defaults
 * out      [n], written, in the order of in->x
 * summary  written
 * n = 1 gives factor 1, z 0, p 0. n = 0 is allowed.
 * Returns 0, or EP_EDOM for a bad value, noise or config (err names the
 * index); out and summary are then untouched.
 * Cost: O(n log n) time; allocates 16 n bytes and frees them.
 */
int ep_peers_compare(const struct ep_peers_input *in,
                     const struct ep_peers_config *config, struct ep_peer *out,
                     struct ep_peers_summary *summary,
                     struct ep_error *err) EP_MUST_USE;

/*
 * The doubt in words, for people: "2 peers: the faster may be the odd one";
 * "" when there is none. A constant string.
 */
const char *ep_peers_doubt_text(enum ep_peers_doubt doubt);

#endif
