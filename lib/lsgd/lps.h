/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lps.h - a region's server (local parameter server) as a state machine.
 *
 * Pure: events in, messages and vector operations (vecop.h) out; no clock, no
 * files, no parameters. Rules of HALoS (arXiv 2506.04531, algorithm 1):
 *
 *     on g of a worker, in the order of arrival, without a barrier:
 *         optimiser step with g; version += 1
 *         if nothing is outstanding and version == merged_version + K:
 *             send u = snapshot - theta to the GPS, and do not wait
 *         the worker goes on at once from the current theta
 *     on the global parameters:
 *         theta = (1 - alpha) theta + alpha Theta; snapshot = theta
 *         merged_version = version
 *
 * Updates that arrive between a send and its merge are in no delta that is
 * ever sent (they live on in theta only, at weight 1 - alpha), though their
 * steps are credited: lost counts them, as they come. With carry the snapshot
 * keeps them for the next delta, and lost stays 0.
 *
 * One exchange is in flight at most. If K updates more have come by the time of
 * the merge, the next send is K updates after the merge all the same.
 */
#ifndef EP_LSGD_LPS_H
#define EP_LSGD_LPS_H

#include "lsgd/vecop.h"

/* Work that stands behind an update. */
struct ep_work {
    uint64_t updates; /* worker updates */
    uint64_t steps;   /* local steps */
    uint64_t tokens;
};

void ep_work_add(struct ep_work *sum, const struct ep_work *w);

struct ep_lps_config {
    struct ep_outer outer;
    uint64_t k;   /* K >= 1: updates from a merge to the next send */
    double alpha; /* weight of the global parameters, in [0, 1] */
    bool carry;
    bool q4;
};

/* Read-only for others. Copyable; nothing to free. */
struct ep_lps {
    struct ep_lps_config config;
    uint64_t t;       /* optimiser steps */
    uint64_t version; /* updates applied */
    uint64_t merged_version;
    uint64_t sent_version;   /* version at the last send */
    uint64_t exchange;       /* number of the last send; 0: none yet */
    bool outstanding;        /* sent and not yet merged */
    uint64_t global_version; /* GPS's, of the last merge */
    struct ep_work pending;  /* applied, and not credited to a send yet */
    struct ep_work sent;     /* credited to sends, summed */
    uint64_t lost;           /* updates that no delta will ever contain */
};

/* What an event leads to. */
struct ep_lps_effect {
    uint64_t staleness; /* of the delta: versions since its base */
    struct ep_vecop ops[2];
    size_t nops;
    bool send; /* send: exchange and work describe the message */
    uint64_t exchange;
    uint64_t base;       /* GPS version that the delta starts from */
    struct ep_work work; /* credited to the message: all since the last send */
};

/* EP_EDOM "NAME: reason". *l is then unchanged. */
int ep_lps_init(struct ep_lps *l, const struct ep_lps_config *config,
                struct ep_error *err) EP_MUST_USE;

/*
 * A worker's delta, computed from version base. EP_EDOM if base > version
 * ("cannot apply delta: its base is version ..."); nothing has changed then.
 * O(1).
 */
int ep_lps_delta(struct ep_lps *l, const struct ep_work *w, uint64_t base,
                 struct ep_lps_effect *out, struct ep_error *err) EP_MUST_USE;

/*
 * The GPS's reply to exchange x: its parameters (or with q4 the difference) at
 * its version. EP_EDOM if x is not the one outstanding; nothing has changed
 * then. O(1).
 */
int ep_lps_merge(struct ep_lps *l, uint64_t x, uint64_t global_version,
                 struct ep_lps_effect *out, struct ep_error *err) EP_MUST_USE;

/* Updates that are in theta but in no delta yet and may still be: those since
   the last merge, and with carry those since the last send. */
uint64_t ep_lps_pending_updates(const struct ep_lps *l);

#endif
