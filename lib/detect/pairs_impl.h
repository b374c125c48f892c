/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pairs_impl.h - what the files of pairs share; for them alone.
 *
 *   pairs.c       the model: noise, constants; what was found, in words
 *   pairs_fit.c   things, and how well one explains what is left
 */
#ifndef EP_DETECT_PAIRS_IMPL_H
#define EP_DETECT_PAIRS_IMPL_H

#include "detect/pairs.h"

#include <stdbool.h>

/* Measurements by something: those of key i are at[i] .. at[i + 1] of list. */
struct pair_lists {
    uint32_t *at, *list;
};

/* A fault in the model. */
struct pair_fault {
    struct ep_pairs_thing what;
    double x;    /* log of its factor */
    double gain; /* fall of the loss by it, its price not taken off */
};

struct pair_model {
    const struct ep_pair *v;
    uint32_t n, ends, classes;
    double T, floor;
    double *r;     /* [n] y less its base, less the faults */
    double *sigma; /* [n] */
    double *least; /* [n] log of the least factor that counts */
    double *m;     /* [classes] constants, of links without a past */
    struct pair_lists out, in, pair, cls; /* cls: those with a past */
    uint32_t pairs;
    uint32_t *some; /* [n] room */
    double *room;   /* [n] */
    struct pair_fault *fault;
    size_t nfault, cap;
};

void ep_pair_lists_make(struct pair_model *s);
void ep_pair_lists_free(struct pair_model *s);

static inline double ep_pair_loss(const struct pair_model *s, uint32_t e,
                                  double r)
{
    double z = r / s->sigma[e], cost = z * z / 2;

    return cost < s->T ? cost : s->T;
}

double ep_pair_price(const struct pair_model *s, enum ep_pairs_kind kind);

/* Its measurements, how many; the list is borrowed until the next call. */
uint32_t ep_pair_cover(struct pair_model *s, const struct ep_pairs_thing *t,
                       const uint32_t **list);

/*
 * The best x of a thing for what is left, and its gain; 0 if it is less than
 * what counts.
 */
double ep_pair_fit(struct pair_model *s, const struct ep_pairs_thing *t,
                   double *x);

/* Call fn for each thing that may be, with its fit. */
void ep_pair_scan(struct pair_model *s,
                  void (*fn)(void *ctx, const struct pair_fault *f), void *ctx);

/* Take it off what is left, or (sign -1) put it back. */
void ep_pair_apply(struct pair_model *s, const struct pair_fault *f, int sign);

/* Add, replace, take away faults until nothing lowers J; that is J. */
double ep_pair_search(struct pair_model *s);

#endif
