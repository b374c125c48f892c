/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vecop.h - the vector arithmetic that the state machines ask for.
 *
 * The machines (lps.h, gps.h, round.h) hold counters only. What has to happen
 * to the parameters they say as a list of operations, which their driver (the
 * simulator, a spool server) runs over memory as it likes: all at once, in
 * chunks, on threads, several arrivals in one pass. Every operation is
 * elementwise (4-bit exchanges: by blocks of 64), so that the bits do not
 * depend on how it is cut up. A driver without parameters (the event clock)
 * ignores the list.
 *
 *     STEP    theta, m, D: one step of outer.h with g = in[0]
 *     ROUND   g = mean of in[0 .. nin) (summed in this order in double, divided
 *             by nin, rounded to float once); then as STEP
 *     SEND    u = snapshot - theta (+ error, with q4)
 *             q4: out = Q4(u), error = u - decoded(out); else out = u
 *             carry: sent = theta
 *     MERGE   full: R = in[0]; q4: R = R + decoded(in[0])
 *             theta' = theta + alpha (R - theta)
 *             snapshot = theta', or with carry theta' + (sent - theta)
 *     REPLY   full: out = theta
 *             q4: out = Q4(theta - R_client); R_client += decoded(out)
 *     FETCH   out = theta (a worker takes the parameters)
 *
 * Rules: HALoS, arXiv 2506.04531, algorithm 1 and 2, for STEP, SEND, MERGE,
 * REPLY without q4 and carry, which are options of ours.
 */
#ifndef EP_LSGD_VECOP_H
#define EP_LSGD_VECOP_H

#include "lsgd/outer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ep_vecop_kind {
    EP_OP_STEP,
    EP_OP_ROUND,
    EP_OP_SEND,
    EP_OP_MERGE,
    EP_OP_REPLY,
    EP_OP_FETCH,
};

struct ep_vecop {
    enum ep_vecop_kind kind;
    struct ep_outer_step step; /* STEP, ROUND */
    double alpha;              /* MERGE */
    bool q4, carry;
    size_t client; /* REPLY: whose replica */
    /* the driver fills these in; borrowed while the operation runs */
    const void *const *in; /* [nin] float [n], or (MERGE with q4) packed */
    size_t nin;
    void *out; /* SEND, REPLY, FETCH: float [n], or (q4) packed */
};

/*
 * The vectors of one server, each [n] float or NULL where its configuration
 * does not need it. At the start theta, snapshot, replica and client replicas
 * are equal, and m, D, error are 0.
 */
struct ep_vectors {
    float *theta;
    float *m, *d;    /* outer.h */
    float *snapshot; /* LPS */
    float *sent;     /* LPS with carry: theta when the last delta was sent */
    float *error;    /* LPS with q4 */
    float *replica;  /* LPS with q4 */
    float *const *client; /* GPS with q4: [clients], what each one holds */
};

/*
 * Run nops operations, in order, on the elements from begin on, n of them.
 * in and out are indexed like the vectors (out[begin], packed block begin /
 * 64). With q4, begin is a multiple of 64, and so is n unless it ends the
 * vector. Runs of STEP are applied in one pass over memory.
 * Cost: O(nops n); scratch of a few KiB on the stack, no allocation.
 */
void ep_vecops_run(const struct ep_vectors *v, const struct ep_vecop *ops,
                   size_t nops, size_t begin, size_t n);

#endif
