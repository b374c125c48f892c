/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.h - which data-parallel group a global rank belongs to.
 *
 * Megatron-LM numbers the ranks of a job like the digits of a number: its
 * order string names the dimensions, the fastest first. With the default
 * "tp-cp-ep-dp-pp", tensor-parallel ranks are neighbours and pipeline stages
 * are furthest apart:
 *
 *     rank = tp + TP (cp + CP (dp + DP pp))        0 <= tp < TP, ...
 *
 * Expert parallelism has no ranks of its own among the dense layers that
 * shares are about: its groups lie within dp x cp, so that ep takes part
 * neither in this numbering nor in the number of ranks, TP CP DP PP.
 *
 * [1] Megatron-LM, arXiv 2104.04473, and its option
 *     --use-tp-pp-dp-mapping, which stands for "tp-cp-ep-pp-dp".
 */
#ifndef EP_PLAN_RANKS_H
#define EP_PLAN_RANKS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

/* Most ranks of a job. */
#define EP_RANKS_MAX ((int64_t)1 << 20)

/* Sizes of the dimensions, each >= 1. */
struct ep_ranks_sizes {
    int64_t tp, cp, dp, pp;
};

/* Read-only. */
struct ep_ranks {
    int64_t count;  /* ranks of the job: tp cp dp pp */
    int64_t stride; /* distance of the ranks of neighbouring groups */
    int64_t groups; /* dp */
};

/*
 * order   names of dimensions with '-' between them, the fastest first: tp,
 *         cp, ep, dp, pp, each at most once; one of size 1 may be left out.
 *         {NULL, 0}: the default
 * Errors, *k being untouched: EP_EFORMAT (order), EP_EDOM (a size below 1),
 * EP_ELIMIT (more than EP_RANKS_MAX ranks). The message is the reason only.
 */
int ep_ranks_init(struct ep_ranks *k, struct ep_span order,
                  const struct ep_ranks_sizes *sizes,
                  struct ep_error *err) EP_MUST_USE;

/* rank / stride mod groups; -1 for a rank that the job does not have. */
int64_t ep_ranks_group(const struct ep_ranks *k, int64_t rank);

/*
 * The group of one who gives its rank, its dp coordinate or both, -1 being
 * not given: dp wins. *group is -1 if neither is given. Errors: EP_EDOM for a
 * rank or dp that the job does not have. The message is the reason only.
 */
int ep_ranks_find(const struct ep_ranks *k, int64_t rank, int64_t dp,
                  int64_t *group, struct ep_error *err) EP_MUST_USE;

/*
 * rank and dp from key=value pairs such as "rank=3" or "dp=1,pp=0"; -1 for
 * what is not there. Errors: EP_EFORMAT, EP_ERANGE ("id: rank: not a number").
 */
int ep_ranks_parse(struct ep_span id, int64_t *rank, int64_t *dp,
                   struct ep_error *err) EP_MUST_USE;

#endif
