/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - run a step graph with given durations: when would it end?
 *
 * A communication operation of a group ends at
 *
 *     max over the group of start + its own transfer
 *
 * anything else at start + duration; an operation starts when all that it
 * waits for have ended, or at 0. A step ends with its last optimizer.
 *
 * What-if is another choice of durations over the same graph: each operation
 * keeps its own (cost), or takes the one of its type (ideal). Lanes are dealt
 * with in blocks of whole steps that stay in cache, operation by operation.
 *
 * N operations, S steps, D data-parallel ranks, lanes = S * D (spans.h).
 */
#ifndef EP_REPLAY_REPLAY_H
#define EP_REPLAY_REPLAY_H

#include "replay/graph.h"
#include "replay/spans.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * cost[v][l] of a trace: the duration of an operation, or, of a member of a
 * group, its transfer: own end - latest start in the group (over the lanes of
 * the step too where the group is over dp). Clocks differ: transfers down to
 * -10 ms are kept, below that they are 0.
 *
 * cost    [N][lanes] s, written; may be t->dur itself
 * Cost: O(N lanes).
 */
void ep_replay_costs(const struct ep_graph *g, const struct ep_trace *t,
                     double *cost);

/*
 * ideal[type]: the value that all operations of a type take: the mean over
 * all lanes and operations of computation, the median of communication (one
 * slow link must not spoil it). 0 for types that do not occur.
 *
 * ideal   [types] s, written
 * Memory: that of the type with the most operations. Cost: O(N lanes).
 */
void ep_replay_ideal(const struct ep_graph *g, const struct ep_ops *ops,
                     const double *cost, size_t lanes, double *ideal);

/* What an operation takes in a replay. */
enum ep_replay_take {
    EP_REPLAY_IDEAL, /* that of its type */
    EP_REPLAY_OWN,   /* its own */
    EP_REPLAY_MIXED, /* its own, but that of its type in the lanes of chosen
                        data-parallel ranks */
};

/* One replay; all borrowed. */
struct ep_replay {
    const struct ep_graph *g;
    size_t steps, dp;
    const double *cost;  /* [N][steps * dp] s; NULL: all take the ideal */
    const double *ideal; /* [types] s */
    const uint8_t *take; /* [N] enum ep_replay_take */
    const bool *chosen;  /* [pp][dp], for MIXED: those that are idealised */
    /* not NULL: launch delays of this trace, start - latest end of what an
       operation waits for, are put in; those below -10 ms as 0 */
    const struct ep_trace *delays;
    double *room; /* [ep_replay_room] to work in, kept from one replay to the
                     next; NULL: taken and given back each time */
};

/* Doubles that a replay works in. Needs g and dp. */
size_t ep_replay_room(const struct ep_replay *r);

/* step_time [steps] s is written. Cost: O((N + edges) steps dp). */
void ep_replay_run(const struct ep_replay *r, double *step_time);

/*
 * For each lane: the step's time if this data-parallel rank kept its own
 * costs and all others took those of their types. The others are all alike,
 * so that one of them stands for all, and D replays cost as much as two.
 *
 * step_time [steps * dp] s, written. take and chosen are not used.
 */
void ep_replay_each_dp(const struct ep_replay *r, double *step_time);

/*
 * As ep_replay_run over one lane with the durations of the types: ideal
 * starts and ends of the operations.
 *
 * start, end  [N] s, written; 0 of operations that are left out; the start
 *             of a member of a group is that of the group
 * Returns the ideal step time.
 */
double ep_replay_ideal_step(const struct ep_graph *g, const double *ideal,
                            double *start, double *end);

#endif
