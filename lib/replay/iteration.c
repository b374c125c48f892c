/* SPDX-License-Identifier: Apache-2.0 */
/* iteration.c - see iteration.h. */
#include "config.h"

#include "replay/iteration.h"

#include "base/mem.h"
#include "replay/graph.h"
#include "replay/replay.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The operations as they are written down. */
struct writer {
    const struct ep_iteration *it;
    int type[EP_OP_ROLES];
    struct ep_graph_op *op;
    double *cost;
    size_t n;
};

static double at(const double *v, size_t i)
{
    return v ? v[i] : 0;
}

/* start only puts them in order: the place in the stage's list. */
static void write_op(struct writer *w, enum ep_op_role role, size_t d, size_t p,
                     double place, double cost)
{
    w->op[w->n] = (struct ep_graph_op){
        .type = w->type[role],
        .role = role,
        .dp = (int32_t)d,
        .pp = (int32_t)p,
        .mb = -1,
        .chunk = -1,
        .seq = -1,
        .start = place,
    };
    w->cost[w->n++] = cost;
}

/* The k-th forward or backward computation of a stage: which chunk, and which
   micro-batch. */
static void find_turn(const struct ep_iteration *it, size_t m, size_t k,
                      bool back, size_t *chunk, size_t *mb)
{
    if (it->vpp <= 1 || it->schedule == EP_SCHEDULE_GPIPE) {
        *chunk = k / m;
        *mb = k % m;
    } else { /* P micro-batches through all chunks, then the next P */
        *chunk = k / it->pp % it->vpp;
        *mb = k / (it->pp * it->vpp) * it->pp + k % it->pp;
    }
    if (back)
        *chunk = it->vpp - 1 - *chunk;
}

/* Messages that a computation at a place of the model has. */
static void write_messages(struct writer *w, size_t d, size_t p, double place,
                           size_t where, bool back)
{
    const struct ep_iteration *it = w->it;
    bool down = where + 1 < it->vpp * it->pp, up = where > 0;
    /* to or from the next stage; to or from the one before */
    double next = at(it->send, d * it->pp + p);
    double before = at(it->send, d * it->pp + (p + it->pp - 1) % it->pp);

    if (it->pp == 1)
        return;
    if (back ? down : up)
        write_op(w, back ? EP_OP_BACKWARD_RECV : EP_OP_FORWARD_RECV, d, p,
                 place - 0.25, back ? next : before);
    if (back ? up : down)
        write_op(w, back ? EP_OP_BACKWARD_SEND : EP_OP_FORWARD_SEND, d, p,
                 place + 0.25, back ? before : next);
}

static void write_turn(struct writer *w, size_t d, size_t p, size_t place,
                       size_t k, bool back)
{
    const struct ep_iteration *it = w->it;
    size_t chunk, mb, v;

    find_turn(it, it->microbatches[d], k, back, &chunk, &mb);
    v = (d * it->pp + p) * it->vpp + chunk;
    write_messages(w, d, p, (double)place, chunk * it->pp + p, back);
    write_op(w, back ? EP_OP_BACKWARD : EP_OP_FORWARD, d, p, (double)place,
             back ? at(it->backward, v) : at(it->forward, v));
    w->op[w->n - 1].chunk = (int32_t)chunk;
    w->op[w->n - 1].mb = (int32_t)mb;
}

/* Forward computations that a stage runs before its first backward one. */
static size_t warm_up(const struct ep_iteration *it, size_t p, size_t total)
{
    size_t behind = it->pp - 1 - p, n = behind;

    if (it->schedule == EP_SCHEDULE_GPIPE)
        return total;
    if (it->vpp > 1)
        n = 2 * behind + (it->vpp - 1) * it->pp;
    return n < total ? n : total;
}

static void write_stage(struct writer *w, size_t d, size_t p)
{
    const struct ep_iteration *it = w->it;
    size_t total = it->microbatches[d] * it->vpp, place = 1, f = 0;
    size_t warm = warm_up(it, p, total);

    write_op(w, EP_OP_PARAMS, d, p, 0, at(it->gather, p));
    while (f < warm)
        write_turn(w, d, p, place++, f++, false);
    for (size_t b = 0; b < total; b++) {
        if (f < total)
            write_turn(w, d, p, place++, f++, false);
        write_turn(w, d, p, place++, b, true);
    }
    write_op(w, EP_OP_REDUCE, d, p, (double)place, at(it->reduce, p));
    write_op(w, EP_OP_OPTIMIZER, d, p, (double)place + 1,
             at(it->optimizer, d * it->pp + p));
}

/* How many operations there will be; 0 and a message if they do not fit. */
static size_t count_ops(const struct ep_iteration *it, struct ep_error *err)
{
    size_t n = 0;

    if (!it->dp || !it->pp || !it->vpp || it->pp > EP_SPANS_PP_MAX ||
        it->dp > EP_SPANS_DP_MAX || it->vpp > INT16_MAX) {
        (void)ep_error_set(err, EP_EDOM, "dp, pp or vpp is out of range");
        return 0;
    }
    for (size_t d = 0; d < it->dp; d++) {
        size_t m = it->microbatches[d];

        if (!m ||
            (it->vpp > 1 && it->schedule == EP_SCHEDULE_1F1B && m % it->pp)) {
            (void)ep_error_set(err, EP_EDOM,
                               "%zu micro-batches of dp %zu do not fit %zu "
                               "stages",
                               m, d, it->pp);
            return 0;
        }
        if (m > EP_ITERATION_MAX / (6 * it->vpp + 3) / it->pp ||
            (n += (6 * it->vpp * m + 3) * it->pp) > EP_ITERATION_MAX) {
            (void)ep_error_set(err, EP_ELIMIT, "more than %zu operations",
                               EP_ITERATION_MAX);
            return 0;
        }
    }
    return n;
}

static void find_types(struct writer *w, const struct ep_ops *ops)
{
    for (int r = 0; r < EP_OP_ROLES; r++) {
        const char *name = ep_op_role_name((enum ep_op_role)r);

        w->type[r] = ep_ops_find(ops, (struct ep_span){name, strlen(name)});
    }
}

int ep_replay_iteration(const struct ep_iteration *it, double *seconds,
                        struct ep_error *err)
{
    size_t n = count_ops(it, err);
    struct writer w = {.it = it};
    struct ep_graph g = {.n = 0};
    double ideal[EP_OPS_MAX] = {0};
    struct ep_ops *ops;
    int rc;

    if (!n)
        return err ? err->code : EP_EDOM;
    ops = ep_ops_new();
    find_types(&w, ops);
    w.op = ep_calloc(n, sizeof *w.op);
    w.cost = ep_calloc(n, sizeof *w.cost);
    for (size_t d = 0; d < it->dp; d++)
        for (size_t p = 0; p < it->pp; p++)
            write_stage(&w, d, p);
    rc = ep_graph_build(&g, w.op, w.n, ops, 0, err);
    if (rc == 0) {
        uint8_t *take = ep_calloc(w.n, sizeof *take);
        struct ep_replay r = {.g = &g,
                              .steps = 1,
                              .dp = 1,
                              .cost = w.cost,
                              .ideal = ideal,
                              .take = take};

        memset(take, EP_REPLAY_OWN, w.n);
        ep_replay_run(&r, seconds);
        free(take);
    }
    ep_graph_free(&g);
    free(w.op);
    free(w.cost);
    ep_ops_free(ops);
    return rc;
}
