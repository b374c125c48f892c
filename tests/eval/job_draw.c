/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_draw.c - a job and what befalls it, from a seed.
 *
 * The factor of an event in the network is chosen by what it does to the job:
 * a target is drawn, and the factor of the link that reaches it is searched for.
 * Otherwise most slow links would not be felt.
 */
#include "config.h"

#include "job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

double draw_between(struct ep_rng *r, double lo, double hi)
{
    return lo + (hi - lo) * ep_rng_uniform(r);
}

double draw_normal(struct ep_rng *r)
{
    double u = 1 - ep_rng_uniform(r), v = ep_rng_uniform(r);

    return sqrt(-2 * log(u)) * cos(2 * pi * v);
}

static int below(struct ep_rng *r, int n)
{
    return (int)(ep_rng_next(r) % (uint64_t)n);
}

static bool chance(struct ep_rng *r, double p)
{
    return ep_rng_uniform(r) < p;
}

static void draw_layout(struct job *j, int max_ranks)
{
    struct ep_rng *r = &j->rng;

    do
        j->ranks = 8 << below(r, 8);
    while (j->ranks > max_ranks);
    do {
        j->tp = 1 << below(r, 4);
        j->pp = 1 << below(r, 4);
    } while (j->tp * j->pp * 2 > j->ranks);
    j->dp = j->ranks / (j->tp * j->pp);
    j->hosts = j->ranks / GPUS_PER_HOST;
    j->iterations = j->ranks <= 128 ? 160 + below(r, 241) : 140 + below(r, 61);
    j->mb = j->pp * (1 << below(r, 3));
    if (j->mb < 4)
        j->mb = 4;
    j->buckets = 2 << below(r, 3);
}

static void draw_pace(struct job *j)
{
    struct ep_rng *r = &j->rng;
    double comm = j->class == COMM ? draw_between(r, 0.3, 0.7)
                                   : draw_between(r, 0.05, 0.2);

    j->compute = exp(draw_between(r, log(0.3), log(10)));
    j->tokens = 2048 << below(r, 3);
    j->share_dp = comm * (j->pp > 1 ? 0.7 : 1);
    j->share_pp = j->pp > 1 ? comm * 0.3 : 0;
    j->share_tp = j->tp > 1 ? draw_between(r, 0.03, 0.1) : 0;
    j->cv_local = chance(r, 0.5) ? 0.02 : 0.09;
    j->cv_remote = 0.29;
    for (int s = 0; s < j->pp; s++)
        j->stage_weight[s] = draw_between(r, 0.985, 1.015);
    for (int k = 0; k < j->ranks; k++)
        j->rank_weight[k] = 1 + 0.003 * draw_normal(r);
}

static struct event *add(struct job *j, enum cause cause, int onset, int relief,
                         double factor)
{
    struct event *e = &j->event[j->nevents++];

    if (j->nevents > MAX_EVENTS)
        abort();
    memset(e, 0, sizeof *e);
    e->cause = cause;
    e->onset = onset;
    e->relief = relief < j->iterations ? relief : j->iterations;
    e->factor = factor;
    e->rank = e->host = e->stage = e->replica = e->a = e->b = -1;
    return e;
}

/* Two ranks next to each other in a group, by the groups that there are. */
static void draw_link(struct job *j, struct event *e)
{
    struct ep_rng *r = &j->rng;
    int d = below(r, j->dp), s = below(r, j->pp), t = below(r, j->tp);
    int a = job_rank(j, d, s, t);
    int b = j->pp > 1 && chance(r, 0.3) ? job_rank(j, d, s ? s - 1 : 1, t)
                                        : job_rank(j, (d + 1) % j->dp, s, t);

    e->a = j->hosts > 1 ? job_host(a) : a;
    e->b = j->hosts > 1 ? job_host(b) : b;
}

static void draw_target(struct job *j, struct event *e)
{
    struct ep_rng *r = &j->rng;

    switch (e->cause) {
    case C_COMPUTE:
    case C_MEMORY:
    case C_GC:
    case C_LATE:
        e->rank = below(r, j->ranks);
        break;
    case C_CPU:
    case C_STORAGE:
    case C_HOST:
        e->host = below(r, j->hosts);
        break;
    case C_STAGE:
        e->stage = chance(r, 0.5) ? j->pp - 1 : below(r, j->pp);
        break;
    case C_SEQUENCE:
        e->replica = below(r, j->dp);
        break;
    case C_LINK:
        do
            draw_link(j, e);
        while (e->a == e->b);
        break;
    default:
        break;
    }
}

/* Is one of several hosts, or stages, there to be hit? Links always are. */
static bool possible(const struct job *j, enum cause c)
{
    switch (c) {
    case C_CPU:
    case C_STORAGE:
    case C_HOST:
        return j->hosts > 1;
    case C_STAGE:
        return j->pp > 1;
    default:
        return true;
    }
}

static enum cause draw_cause(struct job *j, bool network)
{
    /* a GPU, and a host's CPUs, more often than the others */
    static const enum cause work[] = {C_COMPUTE, C_COMPUTE, C_COMPUTE, C_CPU,
                                      C_CPU,     C_MEMORY,  C_STORAGE, C_GC,
                                      C_STAGE,   C_SEQUENCE};
    static const enum cause net[] = {C_LINK, C_LINK, C_HOST};
    enum cause c;

    do
        c = network ? net[below(&j->rng, 3)] : work[below(&j->rng, 10)];
    while (!possible(j, c));
    return c;
}

enum { TRIALS = 3 }; /* iterations whose noise a link's factor is fitted to */

/* What link event e, alone, would do to the job with this factor. */
static double job_factor(struct job *j, struct event *e, double factor,
                         const struct noise *z)
{
    static struct iteration with, without;
    int i = e->relief - 1, k = (int)(e - j->event), n = j->nevents;
    double keep = e->factor, a = 0, b = 0;

    e->factor = factor;
    j->nevents = k + 1; /* without the others */
    for (int trial = 0; trial < TRIALS; trial++) {
        job_iterate(j, &z[trial], i, (1U << k) - 1, &with);
        job_iterate(j, &z[trial], i, (2U << k) - 1, &without);
        a += with.dur;
        b += without.dur;
    }
    j->nevents = n;
    e->factor = keep;
    return a / b;
}

/* The factor of the link with which the job has this one, 50 at most. */
static double link_factor(struct job *j, struct event *e, double target)
{
    static struct noise z[TRIALS];
    double lo = 1, hi = 50;

    for (int trial = 0; trial < TRIALS; trial++)
        noise_draw(j, &z[trial]);
    for (int n = 0; n < 16; n++) {
        double mid = sqrt(lo * hi);

        if (job_factor(j, e, mid, z) < target)
            lo = mid;
        else
            hi = mid;
    }
    return hi;
}

/* The factor of a fail-slow: each band of 1.1 to 3 gets its share. */
static double draw_factor(struct job *j)
{
    struct ep_rng *r = &j->rng;

    switch (below(r, 5)) {
    case 0:
        return draw_between(r, 1.10, 1.15);
    case 1:
        return draw_between(r, 1.15, 1.25);
    case 2:
    case 3:
        return draw_between(r, 1.25, 1.7);
    default:
        return draw_between(r, 1.7, 3);
    }
}

static void draw_fail_slow(struct job *j, bool network, double factor)
{
    struct ep_rng *r = &j->rng;
    int n = j->iterations, onset, relief;
    enum cause c = draw_cause(j, network);
    struct event *e;

    onset = 30 + below(r, n - 80);
    if (c == C_STAGE ? chance(r, 0.5) : chance(r, 0.05))
        onset = 0;
    relief = chance(r, 0.4) ? n : onset + 25 + below(r, n / 2);
    e = add(j, c, onset, relief, factor);
    draw_target(j, e);
    if (c != C_STAGE && onset > 0 && chance(r, 0.15))
        e->ramp = 20 + below(r, 60);
    if (e->ramp > e->relief - e->onset - LASTING - 5)
        e->ramp = 0;
    if (network)
        e->factor = link_factor(j, e, factor);
}

/* Two slow iterations from iteration at on: next to no other spike? */
static bool is_single(const struct job *j, int at)
{
    for (int k = 0; k < j->nevents; k++) {
        const struct event *e = &j->event[k];
        int gap = at - e->onset;

        if (e->cause == C_CHECKPOINT)
            gap = (gap + e->every + 5) % e->every - 5;
        if ((e->cause == C_SPIKE || e->cause == C_CHECKPOINT) && gap > -6 &&
            gap < 6)
            return false;
    }
    return true;
}

/*
 * One draw in a statement: in which order the arguments of a call are evaluated
 * is the compiler's choice, and a seed has to mean the same to all of them.
 */
static void draw_spike(struct job *j)
{
    struct ep_rng *r = &j->rng;
    int at = 12 + below(r, j->iterations - 20), lasts = 1 + below(r, 2);
    struct event *e;

    if (!is_single(j, at))
        return;
    e = add(j, C_SPIKE, at, at + lasts, draw_between(r, 1.3, 5));
    if (chance(r, 0.5))
        e->rank = below(r, j->ranks);
}

/* More micro-batches, or longer sequences, for all. */
static void draw_phase(struct job *j)
{
    struct ep_rng *r = &j->rng;
    struct event *e =
        add(j, C_PHASE, 40 + below(r, j->iterations - 80), j->iterations, 1);

    e->mb = e->tokens = 1;
    if (chance(r, 0.5))
        e->mb = chance(r, 0.5) ? 2 : 1.5;
    else
        e->tokens = draw_between(r, 1.2, 2);
    e->factor = e->mb * e->tokens;
}

static void draw_ordinary(struct job *j)
{
    struct ep_rng *r = &j->rng;
    int n;

    if (chance(r, 0.8)) {
        n = 1 + below(r, 8);
        (void)add(j, C_WARMUP, 0, n, draw_between(r, 1.3, 20));
    }
    if (chance(r, 0.35)) {
        struct event *e =
            add(j, C_CHECKPOINT, 10 + below(r, 20), j->iterations, 1);

        e->factor = draw_between(r, 1.3, 4);
        e->every = 20 + below(r, 31);
    }
    for (n = below(r, 3); n > 0; n--)
        draw_spike(j);
    if (chance(r, 0.2))
        draw_phase(j);
}

/* A straggler that is none yet, or one rank that is always last. */
static void draw_harmless(struct job *j)
{
    struct ep_rng *r = &j->rng;

    if (chance(r, 0.35))
        draw_fail_slow(j, j->class == COMM, draw_between(r, 1.02, 1.085));
    if (chance(r, 0.25))
        draw_target(
            j, add(j, C_LATE, 0, j->iterations, draw_between(r, 1.002, 1.008)));
}

void job_draw(struct job *j, uint64_t seed, uint64_t index,
              enum job_class class, double share, int max_ranks)
{
    struct ep_rng *r = &j->rng;

    memset(j, 0, sizeof *j);
    j->seed = seed;
    j->index = index;
    j->class = class;
    ep_rng_seed(r, seed, 2 * index + (uint64_t) class);
    draw_layout(j, max_ranks);
    draw_pace(j);
    if (chance(r, share)) {
        int more = below(r, 20);

        draw_fail_slow(j, class == COMM, draw_factor(j));
        for (more = more < 12 ? 0 : more < 17 ? 1 : 2; more > 0; more--) {
            bool network = class == COMM && chance(r, 0.5);

            draw_fail_slow(j, network, draw_factor(j));
        }
    } else {
        draw_harmless(j);
    }
    draw_ordinary(j);
}
