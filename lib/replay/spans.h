/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans.h - the operations of one traced job, as they come, and as a matrix.
 *
 * S steps, D data-parallel ranks, P stages. A lane is one pipeline in one
 * step; lane s * D + d is data-parallel rank d of step s. All lanes have the
 * same operations (a trace in which they do not is refused), so that the
 * times are matrices [operations][lanes]: the replay runs along lanes.
 */
#ifndef EP_REPLAY_SPANS_H
#define EP_REPLAY_SPANS_H

#include "base/err.h"
#include "replay/ops.h"

#include <stddef.h>
#include <stdint.h>

/* Ranks and stages that a trace may have. */
#define EP_SPANS_DP_MAX 65536
#define EP_SPANS_PP_MAX 4096

/* One operation. -1: mb, chunk or seq is not known; seconds. */
struct ep_replay_span {
    int64_t step, dp, pp, mb, chunk, seq;
    int type; /* of the struct ep_ops */
    double start, dur;
};

struct ep_spans; /* opaque: 39 bytes for each span */

struct ep_spans *ep_spans_new(void);
void ep_spans_free(struct ep_spans *s); /* NULL allowed */

/*
 * Append one. Errors: EP_ERANGE (a coordinate above the limits, a time that
 * is not finite), EP_ELIMIT (2^32 - 1 spans); the message is the reason only.
 * Cost: amortised O(1).
 */
int ep_spans_add(struct ep_spans *s, const struct ep_replay_span *span,
                 struct ep_error *err) EP_MUST_USE;

size_t ep_spans_count(const struct ep_spans *s);

/* What is known of an operation, the same in all lanes; the times are those
   of lane 0. */
struct ep_graph_op {
    int type;
    enum ep_op_role role;
    int32_t dp, pp, mb, chunk, seq;
    double start, dur; /* s */
};

/* Steps at an end of the trace that were left out. */
struct ep_trace_cut {
    size_t steps;      /* how many; 0: none */
    int64_t from, to;  /* the first and the last of them */
    size_t have, want; /* operations: those that they have; if whole */
};

/* Free with ep_trace_free; fields are read-only. */
struct ep_trace {
    size_t steps, dp, pp;   /* S, D, P */
    size_t lanes;           /* S * D */
    size_t n;               /* operations of a lane */
    int64_t *step;          /* [S] ascending */
    double *base;           /* [S] s: when the step's first operation started */
    struct ep_graph_op *op; /* [n], by stage, type, number */
    double *start;          /* [n][lanes] s since base */
    double *dur;            /* [n][lanes] s */
    struct ep_trace_cut first, last; /* left out, not among the steps */
};

/*
 * Put the spans in order. Operations of a stage and type are numbered by
 * (seq, start); the k-th is the same operation in every lane. Those of role
 * EP_OP_IGNORE must not have been added.
 *
 * Traces begin and end in the midst of a step, and not on all ranks in the same
 * one. At both ends the steps are left out in which a stage of a rank has no
 * operation at all (but not if all are such steps); then the outermost one, if
 * it lacks operations that its neighbour has, and has none that that has not.
 *
 * Errors: EP_EFORMAT "cannot replay step N: reason": no spans, a rank or a
 * stage without any, operations that one lane has and another has not (named),
 * or that are there twice: of one seq, chunk and mb; of one start, where seq
 * is not known.
 * Memory: while at work 4 bytes for each span and for each type of each stage
 * and lane, and the result. Cost: O(spans) if each rank's operations of a type
 * come in order, O(n log n) otherwise.
 */
int ep_trace_make(struct ep_trace *t, const struct ep_spans *s,
                  const struct ep_ops *ops, struct ep_error *err) EP_MUST_USE;
void ep_trace_free(struct ep_trace *t); /* all zero is allowed */

#endif
