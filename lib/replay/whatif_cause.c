/* SPDX-License-Identifier: Apache-2.0 */
/* whatif_cause.c - why a job straggles; see whatif.h. */
#include "config.h"

#include "base/mem.h"
#include "replay/whatif.h"

#include <math.h>
#include <stdlib.h>

/* Forward and backward computations of the same micro-batch on one stage. */
struct pair {
    int32_t pp, chunk, mb, order;
    uint32_t v;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    if (x->pp != y->pp)
        return x->pp < y->pp ? -1 : 1;
    if (x->chunk != y->chunk)
        return x->chunk < y->chunk ? -1 : 1;
    if (x->mb != y->mb)
        return x->mb < y->mb ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* The computations of a direction, by stage, chunk and micro-batch. */
static size_t list_computations(const struct ep_graph *g, enum ep_op_role role,
                                struct pair *out)
{
    size_t n = 0;

    for (size_t v = 0; v < g->n; v++) {
        const struct ep_graph_op *op = &g->op[v];

        if (op->role != role)
            continue;
        out[n] =
            (struct pair){op->pp, op->chunk, op->mb, (int32_t)n, (uint32_t)v};
        n++;
    }
    qsort(out, n, sizeof *out, compare_pairs);
    return n;
}

/* Sums of squares and products about the means of [0, n) of each lane;
   mean [2][lanes] is room. */
static void add_sums(const struct pair *f, const struct pair *b, size_t n,
                     size_t lanes, const double *cost, double *mean,
                     double sum[3])
{
    double *fmean = mean, *bmean = mean + lanes;

    for (size_t l = 0; l < 2 * lanes; l++)
        mean[l] = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t l = 0; l < lanes; l++) {
            fmean[l] += cost[f[i].v * lanes + l] / (double)n;
            bmean[l] += cost[b[i].v * lanes + l] / (double)n;
        }
    for (size_t i = 0; i < n; i++)
        for (size_t l = 0; l < lanes; l++) {
            double x = cost[f[i].v * lanes + l] - fmean[l];
            double y = cost[b[i].v * lanes + l] - bmean[l];

            sum[0] += x * x;
            sum[1] += y * y;
            sum[2] += x * y;
        }
}

double ep_whatif_correlate(const struct ep_graph *g, size_t lanes,
                           const double *cost)
{
    struct pair *f = ep_calloc(g->n, sizeof *f);
    struct pair *b = ep_calloc(g->n, sizeof *b);
    double *mean = ep_calloc(2 * lanes, sizeof *mean);
    size_t n = list_computations(g, EP_OP_FORWARD, f);
    double sum[3] = {0, 0, 0};

    if (list_computations(g, EP_OP_BACKWARD, b) != n)
        n = 0;
    for (size_t i = 0, k; i < n; i = k) {
        bool same = true;

        for (k = i; k < n && f[k].pp == f[i].pp && f[k].chunk == f[i].chunk;
             k++)
            same = same && b[k].pp == f[k].pp && b[k].chunk == f[k].chunk &&
                   b[k].mb == f[k].mb;
        if (same && k - i > 1)
            add_sums(f + i, b + i, k - i, lanes, cost, mean, sum);
    }
    free(f);
    free(b);
    free(mean);
    return sum[0] > 0 && sum[1] > 0 ? sum[2] / sqrt(sum[0] * sum[1]) : NAN;
}

double ep_whatif_share(const struct ep_whatif *w, double slowdown)
{
    double lost = w->slowdown.all - 1;

    return fabs(lost) > 1e-12 ? (slowdown - 1) / lost : NAN;
}

/* The share of the classes that hold operations of a role, added up. */
static double role_share(const struct ep_whatif *w, const struct ep_ops *ops,
                         enum ep_op_role role)
{
    bool *done = ep_calloc(w->classes, sizeof *done);
    double sum = 0;

    for (size_t t = 0; t < ep_ops_types(ops); t++) {
        size_t c = ep_ops_class(ops, t);

        if (ep_ops_role(ops, t) != role || done[c] || isnan(w->cls[c].all))
            continue;
        done[c] = true;
        sum += ep_whatif_share(w, w->cls[c].all);
    }
    free(done);
    return sum;
}

enum ep_whatif_cause ep_whatif_judge(const struct ep_whatif *w,
                                     const struct ep_ops *ops,
                                     const struct ep_whatif_rules *rules)
{
    double s = w->slowdown.all;
    bool last;

    if (s < rules->slowdown)
        return s * w->launch < rules->slowdown ? EP_CAUSE_NONE
                                               : EP_CAUSE_LAUNCH;
    last = w->pp > 1 && w->last_stage.all >= rules->stage_share;
    if (w->slowest.all >= rules->worker_share &&
        !(last && w->dp == 1 && w->worker[0] == w->pp - 1))
        return EP_CAUSE_WORKER;
    if (last)
        return EP_CAUSE_STAGE;
    if (w->correlation >= rules->correlation &&
        role_share(w, ops, EP_OP_FORWARD) +
                role_share(w, ops, EP_OP_BACKWARD) >=
            rules->share)
        return EP_CAUSE_SEQUENCE;
    if (role_share(w, ops, EP_OP_GC) >= rules->share)
        return EP_CAUSE_GC;
    if (ep_whatif_share(w, w->comm.all) >= rules->share)
        return EP_CAUSE_COMM;
    return EP_CAUSE_UNKNOWN;
}

const char *ep_whatif_cause_name(enum ep_whatif_cause c)
{
    static const char *const names[EP_CAUSES] = {
        [EP_CAUSE_NONE] = "none",
        [EP_CAUSE_WORKER] = "worker",
        [EP_CAUSE_STAGE] = "stage-partition",
        [EP_CAUSE_SEQUENCE] = "sequence-length",
        [EP_CAUSE_GC] = "gc",
        [EP_CAUSE_COMM] = "communication",
        [EP_CAUSE_LAUNCH] = "launch-gaps",
        [EP_CAUSE_UNKNOWN] = "unknown",
    };

    return names[c];
}
