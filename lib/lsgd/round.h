/* SPDX-License-Identifier: Apache-2.0 */
/*
 * round.h - training by rounds with a barrier, as a state machine, pure like
 * lps.h: DiLoCo (arXiv 2311.08105; with equal or with dynamic numbers of local
 * steps), and with one local step per round and plain SGD of rate 1 on the
 * result, synchronous data parallel.
 *
 *     on the last of n clients' g:
 *         optimiser step with the mean of all; version += 1; all go on
 */
#ifndef EP_LSGD_ROUND_H
#define EP_LSGD_ROUND_H

#include "lsgd/lps.h"

/* Read-only for others. */
struct ep_round {
    struct ep_outer outer;
    uint64_t t;
    uint64_t version; /* rounds done */
    struct ep_work work;
    struct ep_work current; /* of the round that is open */
    bool *here;             /* [nclients], owned: has its delta come? */
    size_t nclients, arrived;
};

struct ep_round_effect {
    bool done; /* the round ended: ops hold ROUND; the driver gives
                            it the clients' deltas in the order of clients */
    struct ep_vecop ops[1];
    size_t nops;
};

int ep_round_init(struct ep_round *r, const struct ep_outer *outer,
                  size_t nclients, struct ep_error *err) EP_MUST_USE;
void ep_round_free(struct ep_round *r); /* all-zero allowed */

/*
 * EP_EDOM if client >= nclients or it has delivered in this round already;
 * nothing has changed then. O(1), O(nclients) at the end of a round.
 */
int ep_round_delta(struct ep_round *r, size_t client, const struct ep_work *w,
                   struct ep_round_effect *out,
                   struct ep_error *err) EP_MUST_USE;

#endif
