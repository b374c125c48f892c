/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares.h - mitigation S2: how many micro-batches each data-parallel group
 * should process per step.
 *
 * Legend: D groups (index i, the data-parallel index), M micro-batches per
 * step, m[i] the share of group i, t[i] its time per micro-batch, pp the
 * pipeline depth, b the block.
 *
 * A group with m micro-batches fills its pipeline once and then finishes one
 * micro-batch per t, so its step takes (m + pp - 1) t seconds, and the step
 * of the job lasts as long as that of its slowest group (the makespan):
 *
 *     minimise  max_i (m[i] + pp - 1) t[i]
 *     over      m[i] = b k[i], k[i] >= 1 integer, sum_i m[i] = M
 *
 * b = 1, or pp for an interleaved schedule (vpp > 1), which needs shares that
 * are multiples of the pipeline depth [2]. The loss does not change if the
 * gradients are averaged with the weights m[i] / M.
 *
 * [1] FALCON, arXiv 2410.12588, mitigation strategy S2.
 *     NOTE: differs from [1], which leaves the pipeline fill out and
 *     minimises the variance of the group times with a generic solver; least
 *     variance is not least makespan, and the makespan is what the job waits
 *     for. Here it is minimised exactly (see shares.c).
 * [2] Megatron-LM, arXiv 2104.04473, section 2.2.2.
 *
 * Pure functions: no state, no files, no clock.
 */
#ifndef EP_PLAN_SHARES_H
#define EP_PLAN_SHARES_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

/* Largest microbatches + pp - 1 and ngroups: products stay well conditioned
 * in a double, and sums of shares within an int64_t. */
#define EP_SHARES_MAX ((int64_t)1 << 50)

struct ep_shares_problem {
    size_t ngroups;       /* D >= 1 */
    const double *t;      /* [D] seconds per micro-batch; finite, > 0 */
    int64_t microbatches; /* M, of all groups together */
    int pp;               /* pipeline depth, >= 1 */
    int block;            /* b: 1, or pp for an interleaved schedule */
    const int64_t *now;   /* [D] current shares, each a positive multiple of
                             block; or NULL: even (ep_shares_even) */
};

struct ep_shares_result {
    double before;  /* makespan of now, seconds */
    double after;   /* makespan of the plan, seconds; <= before */
    double bound;   /* least makespan with real-valued shares >= block: what
                       no plan can beat, seconds; <= after */
    int64_t moved;  /* micro-batches that change group */
    size_t changed; /* groups whose share changes */
};

/*
 * The plan of least makespan and, among those, one that moves the fewest
 * micro-batches from now; both exactly, with the makespan as computed in
 * double (ep_shares_makespan). If now is optimal, the plan is now. What may
 * go to several groups goes to the one that would finish first, ties to the
 * lowest index: the same input gives the same plan on every machine.
 *
 * p       borrowed
 * share   [D] out; may be p->now; untouched on error
 * res     out, may be NULL; untouched on error
 * Errors: EP_EDOM for ngroups, pp or block < 1, t not finite or <= 0,
 *         M not a multiple of block or below one block per group, now with an
 *         entry that is not a positive multiple of block or with a sum other
 *         than M; EP_ERANGE if M + pp - 1 exceeds EP_SHARES_MAX or the time
 *         of all M micro-batches in one group overflows a double. The message
 *         names the group.
 * Cost:   O(D log D) for the last D blocks and at most 140 passes over t,
 *         however large M is; one allocation of 32 D bytes.
 */
int ep_shares_solve(const struct ep_shares_problem *p, int64_t *share,
                    struct ep_shares_result *res,
                    struct ep_error *err) EP_MUST_USE;

/*
 * M micro-batches as evenly as blocks allow; the first groups get the odd
 * ones.
 *
 * p       as for ep_shares_solve; t and now are not read
 * share   [D] out; untouched on error
 * Errors: as ep_shares_solve, those of t and now excepted.
 * Cost:   O(D)
 */
int ep_shares_even(const struct ep_shares_problem *p, int64_t *share,
                   struct ep_error *err) EP_MUST_USE;

/*
 * max_i (share[i] + pp - 1) t[i], seconds; each term rounded once if share +
 * pp - 1 < 2^53. NaN if a term is; 0 if ngroups is 0. Nothing is checked.
 * Cost: O(D)
 */
double ep_shares_makespan(size_t ngroups, const double *t, int pp,
                          const int64_t *share);

/*
 * Relative gain in throughput (steps per second), before / after - 1, of
 * makespans or step times in seconds. It is the gain of the part of the step
 * that the shares govern: what follows the pipeline (all-reduce, optimiser)
 * is not in a makespan. NaN unless both are finite and > 0.
 */
double ep_shares_gain(double before, double after);

/*
 * Share of a slowdown that a mitigation removed, in throughput, of step times
 * in seconds:
 *
 *     (1 / mitigated - 1 / slow) / (1 / healthy - 1 / slow)
 *
 * 1: all of it, 0: nothing, below 0: it did harm, above 1: faster than
 * healthy. [1] states 60.1 % and 58.9 % in these terms (17.1, 14.8, 16.2 and
 * 37.4, 18.9, 29.8 iterations per minute, healthy, slow, mitigated).
 * NaN unless all three are finite and > 0 and healthy < slow.
 */
double ep_throughput_recovered(double healthy, double slow, double mitigated);

#endif
