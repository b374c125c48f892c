/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iteration.h - the iteration time of a layout under given durations.
 *
 * What a planner asks: if these ranks had these durations and that many
 * micro-batches each, how long would one iteration take? The operations of
 * the schedule are written down, and replayed as a trace would be
 * (graph.h, replay.h), all data-parallel ranks in one graph, since those with
 * other numbers of micro-batches have other operations.
 *
 * D data-parallel ranks, P stages, V model chunks per stage.
 */
#ifndef EP_REPLAY_ITERATION_H
#define EP_REPLAY_ITERATION_H

#include "base/err.h"

#include <stddef.h>

enum ep_schedule {
    EP_SCHEDULE_1F1B, /* interleaved with V > 1 */
    EP_SCHEDULE_GPIPE,
};

/*
 * All borrowed; seconds. NULL arrays are zeros, and what is zero for all is
 * still replayed.
 */
struct ep_iteration {
    size_t dp, pp, vpp;         /* D, P, V; at least 1 */
    const size_t *microbatches; /* [D], at least 1; multiples of P if V > 1 */
    enum ep_schedule schedule;
    const double *forward;   /* [D][P][V] of one micro-batch */
    const double *backward;  /* [D][P][V] */
    const double *send;      /* [D][P] transfer from a stage to the next, and
                               back; that of the last is from it to the first */
    const double *gather;    /* [P] parameters, over D, at the beginning */
    const double *reduce;    /* [P] gradients, over D, at the end */
    const double *optimizer; /* [D][P] */
};

/* Operations that an iteration may have. */
#define EP_ITERATION_MAX ((size_t)1 << 26)

/*
 * The time from the start of the first operation to the end of the last.
 *
 * The schedules are those of Megatron-LM: 1F1B, and its interleaved form
 * (Narayanan et al., "Efficient large-scale language model training on GPU
 * clusters using Megatron-LM", SC 2021), each stage with as many forward
 * computations ahead as there are stages (chunks) behind it; GPipe: all
 * forward, then all backward.
 *
 * Errors: EP_EDOM, a size of 0 or micro-batches that do not fit; EP_ELIMIT.
 * Cost: O(n log n) for n = 6 V sum of microbatches * P operations; 180 bytes
 * for each.
 */
int ep_replay_iteration(const struct ep_iteration *it, double *seconds,
                        struct ep_error *err) EP_MUST_USE;

#endif
