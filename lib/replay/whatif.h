/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif.h - what the stragglers of a traced job cost, and who they are.
 *
 *     T        mean over steps of the replayed step time, launch delays out
 *     T_ideal  the same where each operation takes the value of its type
 *     S        T / T_ideal; of a step: its T / T_ideal
 *     S_x      T_ideal with the operations of x (a class of types, a
 *              data-parallel rank, a stage) at their own costs, over T_ideal
 *     worker   (dp, pp) has the score min(S_dp, S_pp)
 *     M_W      (T - T with the slowest 3 % of workers idealised) /
 *              (T - T_ideal): at least one worker; of equal ones the lower
 *              dp, then pp
 *     M_S      the same with the last stage idealised
 *     launch   traced step time / T, means
 *
 * Values below 1 (S) and outside of 0..1 (M) are legitimate: without its
 * neighbours a straggler may even help. [1] see ops.h.
 */
#ifndef EP_REPLAY_WHATIF_H
#define EP_REPLAY_WHATIF_H

#include "replay/replay.h"

#include <stddef.h>

/* Share of the workers that M_W idealises. */
#define EP_WHATIF_SLOWEST 0.03

/* From where on ep_whatif_off is too far for the results to be trusted. */
#define EP_WHATIF_OFF 0.05

/* One quantity: over all steps, and of each. NaN: it cannot be said. */
struct ep_whatif_value {
    double all;
    double *step; /* [steps] */
};

/* Free with ep_whatif_free; fields are read-only. Seconds and ratios. */
struct ep_whatif {
    size_t steps, dp, pp, classes;
    double ideal;                    /* T_ideal, the same in all steps */
    struct ep_whatif_value time;     /* T */
    struct ep_whatif_value traced;   /* last end - first start, as traced */
    struct ep_whatif_value delayed;  /* replay with the launch delays in */
    struct ep_whatif_value slowdown; /* S */
    struct ep_whatif_value *cls;     /* [classes]; NaN: class not there */
    struct ep_whatif_value *of_dp;   /* [dp] */
    struct ep_whatif_value *of_pp;   /* [pp] */
    struct ep_whatif_value comm;     /* all communication at its own costs */
    struct ep_whatif_value slowest, last_stage; /* M_W, M_S */
    struct ep_whatif_value worst; /* as M_W, of the slowest worker alone */
    double launch;
    size_t nworkers;  /* how many are the slowest 3 % */
    uint32_t *worker; /* [dp * pp] d * pp + p, the slowest first */
    /* Pearson's correlation of the forward and backward durations of the same
       micro-batch, each less its mean in the step of its worker and chunk:
       what all micro-batches of a worker have in common does not count.
       NOTE: differs from [1], which takes the durations as they are. NaN with
       one micro-batch, or if nothing varies. */
    double correlation;
};

/*
 * The analysis: 6 + classes + pp replays, and one of all dp ranks (the ideal
 * one is of a single lane).
 *
 * g       the graph of t's lane 0
 * cost    [n][lanes] of ep_replay_costs
 * ideal   [types] of ep_replay_ideal
 * Cost: O((8 + classes + pp) n lanes).
 */
void ep_whatif_run(struct ep_whatif *w, const struct ep_graph *g,
                   const struct ep_ops *ops, const struct ep_trace *t,
                   const double *cost, const double *ideal);
void ep_whatif_free(struct ep_whatif *w); /* all zero is allowed */

/* The correlation of struct ep_whatif. Cost: O(n lanes). */
double ep_whatif_correlate(const struct ep_graph *g, size_t lanes,
                           const double *cost);

/* How far the replay with its launch delays ends from the trace: 0.05 is 5 %
   late. Ought to be 0: else the trace does not follow the model of graph.h. */
double ep_whatif_off(const struct ep_whatif *w);

/* min(S_dp, S_pp) */
double ep_whatif_worker(const struct ep_whatif *w, size_t dp, size_t pp);

/* ---- diagnosis -------------------------------------------------------- */

enum ep_whatif_cause {
    EP_CAUSE_NONE,     /* no straggling worth the name */
    EP_CAUSE_WORKER,   /* a few workers, perhaps sick hardware */
    EP_CAUSE_STAGE,    /* the last stage has too much to do */
    EP_CAUSE_SEQUENCE, /* micro-batches of unequal sequence lengths */
    EP_CAUSE_GC,
    EP_CAUSE_COMM,
    EP_CAUSE_LAUNCH, /* gaps between operations */
    EP_CAUSE_UNKNOWN,
    EP_CAUSES,
};

struct ep_whatif_rules {
    double slowdown;     /* S, or launch, from which on a job straggles */
    double worker_share; /* M_W */
    double stage_share;  /* M_S */
    double correlation;
    double share; /* of compute, gc, communication, gaps in what is lost */
};

/* S 1.1, M_W and M_S 0.5, correlation 0.9 are those of [1]; share 0.5. */
#define EP_WHATIF_RULES                                                        \
    {                                                                          \
        .slowdown = 1.1, .worker_share = 0.5, .stage_share = 0.5,              \
        .correlation = 0.9, .share = 0.5,                                      \
    }

/*
 * The cause, the first that holds:
 *
 *     none        S and S * launch are below rules->slowdown
 *     launch      S is below it: what is lost is lost in gaps
 *     worker      M_W >= worker_share
 *     stage       there are stages, and M_S >= stage_share; also where the
 *                 slowest worker is the last stage's only one: too much to do
 *                 is the more frequent reason [1]
 *     sequence    correlation >= rules->correlation, and forward and backward
 *                 computation is rules->share of what is lost
 *     gc, comm    (S_x - 1) / (S - 1) >= rules->share
 *     unknown
 */
enum ep_whatif_cause ep_whatif_judge(const struct ep_whatif *w,
                                     const struct ep_ops *ops,
                                     const struct ep_whatif_rules *rules);

/* "none", "worker", "stage-partition", "sequence-length", "gc",
   "communication", "launch-gaps", "unknown" */
const char *ep_whatif_cause_name(enum ep_whatif_cause c);

/* (S_x - 1) / (S - 1): what x costs of what all cost; NaN if S is 1. */
double ep_whatif_share(const struct ep_whatif *w, double slowdown);

#endif
