/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - which operation of a training step waits for which.
 *
 * Built once, from the operations of one step (of data-parallel rank 0, or of
 * several ranks that have not the same); the model of [1] as read off its
 * traces:
 *
 * - Computation of a stage is one chain; each of its four streams of the
 *   pipeline (forward, backward; send, receive) is one; and so are gathering
 *   of parameters and reduction of gradients together.
 * - A computation waits for the receive that feeds it, a receive for the
 *   computation of its direction before that one, a send for the computation
 *   that made it. The first backward send and receive wait for the last but
 *   one of the forward computations before the first backward one.
 * - The first forward computation of a chunk waits for the last gathering of
 *   its parameters.
 * - Behind the last computation: gc, layer-norm, embedding, reduction of
 *   gradients, separate gradients, clip, optimizer, each if it is there.
 *   Overlapped reduction (there are separate gradients, or a reduction begins
 *   before the layer-norm, or before the last computation or the gc behind it
 *   ends) comes out of this chain: it waits for the last backward computation
 *   of its chunk, and the chain for it.
 * - Operations that wait for each other are a group: a send and its receive;
 *   the embedding of first and last stage; gathering, reduction and separate
 *   gradients of a stage over the data-parallel ranks; the clip of all.
 *
 * Sends and receives that carry nothing are left out: those of a computation
 * that has no neighbour (the ends of the model; with interleaved schedules
 * they are recorded), a receive that starts more than 50 us after the last
 * computation of its direction does, a send that ends more than 50 us before
 * the first one ends.
 *
 * [1] see ops.h.
 * NOTE: differs from [1]: there no-ops of interleaved schedules stay in the
 * graph; overlap is taken from separate gradients alone; a send is paired
 * with its receive by order alone, here within a chunk by micro-batch if all
 * of these are known.
 */
#ifndef EP_REPLAY_GRAPH_H
#define EP_REPLAY_GRAPH_H

#include "base/err.h"
#include "replay/spans.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EP_GRAPH_NONE UINT32_MAX

/*
 * Fields are read-only. What a unit is made of starts together: it is one
 * operation, or the members of a group.
 */
struct ep_graph {
    size_t n;               /* operations */
    struct ep_graph_op *op; /* [n] */
    bool *skip;             /* [n] left out: in no unit */
    uint32_t *dep_at; /* [n + 1]: dep[dep_at[v]...] are what v waits for */
    uint32_t *dep;
    size_t edges;
    size_t groups;     /* of more than one, or over dp */
    size_t units;      /* in an order in which they can run */
    uint32_t *unit_at; /* [units + 1] */
    uint32_t *member;
    bool *waits; /* [units]: a group; false: one operation alone */
    bool *syncs; /* [units]: a group over the data-parallel ranks as well */
};

/*
 * Build the graph. op [n], copied: any order; start is what puts them in
 * order, so that its zero does not matter. step is for messages.
 *
 * Errors: EP_EFORMAT "cannot replay step N: reason", the operation named: a
 * stage without computation or optimizer, a send or receive without partner
 * or more of them than computations, operations that wait for each other in
 * a circle. The graph is then empty. Cost: O(n log n).
 */
int ep_graph_build(struct ep_graph *g, const struct ep_graph_op *op, size_t n,
                   const struct ep_ops *ops, int64_t step,
                   struct ep_error *err) EP_MUST_USE;
void ep_graph_free(struct ep_graph *g); /* all zero is allowed */

/* "dp=3,pp=1 backward-recv mb 5" (seq, if mb is not known), into dst [cap]. */
const char *ep_graph_op_text(const struct ep_graph_op *op,
                             const struct ep_ops *ops, char *dst, size_t cap);

#endif
