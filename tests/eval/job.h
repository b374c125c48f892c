/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - a made-up training job whose stragglers are known, for the
 * evaluation of skewdetect. Written apart from lib/detect: it shares no code
 * and no idea of how to find anything with it.
 *
 * The job is hybrid-parallel, rank = (pp * DP + dp) * TP + tp, eight GPUs to a
 * host, 1F1B. Iteration i of it, with M micro-batches per pipeline:
 *
 *     busy_r   work of rank r (compute, loading, pauses), noise 0.5 %
 *     t_ds     max over tp of busy / M, + tensor-parallel communication / M
 *     P_d      sum_s t_ds + (M - 1) max_s (t_ds + x_ds) + 2 sum_s e_ds
 *     dur      max over groups (s, t) of (max over d of the arrival of stage s
 *              in pipeline d + all-reduce of the gradients) + a constant
 *
 * e is the message from stage s to s + 1, x the part of a slow one that no
 * micro-batch hides; stage s arrives 2/3 sum_{u<s} t_du before P_d. Healthy
 * communication varies by kind of link, coefficient of variation 0.02 NVLink,
 * 0.09 PCIe, 0.29 between hosts, per call (0.01 within a GPU occurs nowhere
 * here: a rank is a GPU) [1]; what is a sum of n calls, by 1 / sqrt(n) of it.
 *
 * An iteration can be evaluated with events left out, with the same noise: what
 * an event did to the job is measured that way, not assumed. Its factor is what
 * it does alone; that something slower hides it is seen by leaving it out.
 *
 * [1] FALCON, arXiv 2410.12588.
 */
#ifndef EVAL_JOB_H
#define EVAL_JOB_H

#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    MAX_EVENTS = 16,
    MAX_RANKS = 1024,
    MAX_ITERATIONS = 1024,
    GPUS_PER_HOST = 8,
    MAX_BUCKETS = 8, /* all-reduces of gradients in an iteration */
};

#define EPOCH 1.7e9    /* s */
#define THRESHOLD 1.10 /* factor from which a fail-slow is one */
#define LASTING 10     /* iterations that it lasts at least */

enum job_class { COMPUTE, COMM };

enum cause {
    C_COMPUTE,  /* one GPU */
    C_CPU,      /* all ranks of one host */
    C_MEMORY,   /* one GPU */
    C_STORAGE,  /* all ranks of one host load late */
    C_GC,       /* pauses of one rank */
    C_STAGE,    /* one stage has more to do */
    C_SEQUENCE, /* one data-parallel replica has longer sequences */
    C_LINK,     /* one link */
    C_HOST,     /* all links of one host */
    /* what is no fail-slow */
    C_WARMUP,
    C_CHECKPOINT, /* periodic */
    C_SPIKE,      /* once, of one rank or of all */
    C_PHASE,      /* the whole job has other work: tokens and mb say so */
    C_LATE,       /* a rank that is always last, by less than 1 % */
};

struct event {
    enum cause cause;
    int onset, relief; /* iterations [onset, relief) */
    int ramp;          /* iterations until the full factor; 0: at once */
    int every;         /* checkpoints: period */
    double factor;     /* of busy, of the link, of the work */
    double mb, tokens; /* phase: micro-batches, tokens of each, x before */
    int rank, host, stage, replica; /* the target, by cause; -1 */
    int a, b; /* link: hosts, or ranks if there is one host */
    /* measured */
    double own_with, own_without; /* s, busy of its ranks at full strength */
    double job_with, job_without; /* s, sums of dur likewise, of it alone */
    double ratio[MAX_ITERATIONS]; /* of dur, as it was and without it */
    int cross;                    /* first iteration >= THRESHOLD; -1 */
};

struct job {
    uint64_t seed, index;
    enum job_class class;
    struct ep_rng rng;
    int dp, pp, tp, ranks, hosts, iterations;
    int mb, buckets;
    int64_t tokens;                      /* of a micro-batch */
    double compute;                      /* s of a rank in an iteration */
    double share_dp, share_pp, share_tp; /* of compute, of one iteration */
    double cv_local, cv_remote;
    double stage_weight[8], rank_weight[MAX_RANKS];
    struct event event[MAX_EVENTS];
    int nevents;
};

/* What varies in one iteration, relative, mean 1. */
struct noise {
    double busy[MAX_RANKS];
    double extra[MAX_RANKS]; /* of the lengths of pauses */
    double tp[MAX_RANKS], pp[MAX_RANKS];
    double dp[MAX_RANKS][MAX_BUCKETS];
};

/* An iteration; seconds, times since its start. */
struct iteration {
    double dur;
    int mb;
    double busy[MAX_RANKS];
    int64_t tokens[MAX_RANKS];
    double t[MAX_RANKS];       /* [dp * PP + pp] time of a micro-batch */
    double message[MAX_RANKS]; /* [(dp * PP + pp) * TP + tp] */
    double tp_time[MAX_RANKS]; /* [dp * PP + pp] */
    double arrival[MAX_RANKS]; /* [dp * PP + pp] at the all-reduce */
    double reduce[MAX_RANKS][MAX_BUCKETS]; /* [pp * TP + tp] */
};

/* ---- job_draw.c: from a seed ---- */

/*
 * The job with this number. share: how likely it has a straggler; max_ranks: at
 * least 8.
 */
void job_draw(struct job *j, uint64_t seed, uint64_t index,
              enum job_class class, double share, int max_ranks);
double draw_between(struct ep_rng *r, double lo, double hi);
double draw_normal(struct ep_rng *r);

/* ---- job_model.c ---- */

static inline int job_rank(const struct job *j, int dp, int pp, int tp)
{
    return (pp * j->dp + dp) * j->tp + tp;
}

static inline int job_host(int rank)
{
    return rank / GPUS_PER_HOST;
}

/* Has the event to do with the rank (a link: does the rank use it)? */
bool event_hits(const struct job *j, const struct event *e, int rank);

/* Its factor in iteration i; 1 where it is not active. */
double event_strength(const struct event *e, int i);

bool is_fail_slow(enum cause c);
bool is_network(enum cause c);

void noise_draw(struct job *j, struct noise *z);

/* Iteration i, without the events whose bits are set. */
void job_iterate(const struct job *j, const struct noise *z, int i,
                 unsigned without, struct iteration *out);

/* Iteration i was like that: measure what the events active in it did. */
void job_measure(struct job *j, const struct noise *z, int i,
                 const struct iteration *with);

/* After the last: where each event crossed the threshold. */
void job_measured(struct job *j);

/*
 * Iterations of e, from its crossing, at or above the threshold; of the network
 * those in which nothing hides it.
 */
int event_lasted(const struct event *e);
double event_own_factor(const struct event *e);
double event_job_factor(const struct event *e);

/* ---- job_write.c ---- */

enum { WRITE_STEP = 1, WRITE_COLL = 2, WRITE_GAUGE = 4 };

void write_iteration(const struct job *j, const struct iteration *it, int i,
                     double ts, unsigned what);
/* start[i]: ts of iteration i; start[iterations]: the end. */
int write_labels(const struct job *j, const double *start, const char *path);

#endif
