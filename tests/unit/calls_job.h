/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calls_job.h - the calls of one rank of a made-up hybrid-parallel job, with
 * the truth beside them. Knows nothing of how periods are found.
 */
#ifndef EP_CALLS_JOB_H
#define EP_CALLS_JOB_H

#include "base/mem.h"
#include "base/rng.h"
#include "detect/period.h"

#include <math.h>
#include <stdlib.h>

#define JOB_MAX 4096 /* calls of an iteration */

enum { PHASE_START = -1, PHASE_EVAL = -2 }; /* training phases are 0, 1, ... */

struct truth {
    int phase;
    int iteration, place; /* place: of the call in its iteration */
    bool hole;            /* calls are missing, or were added, before it */
};

struct job {
    struct ep_rng rng;
    /* the calls of an iteration and the work before each, s */
    uint64_t kind[JOB_MAX];
    double work[JOB_MAX], in[JOB_MAX];
    int n;
    double jitter, drop, extra;
    double now;
    int phase, iteration;
    bool hole, numbered;
    int64_t seq[1000]; /* of each kind, as its communicator counts */
    /* what was made */
    struct ep_period_call *call;
    struct truth *truth;
    size_t calls, cap, tcap;
};

static inline void job_free(struct job *j)
{
    free(j->call);
    free(j->truth);
}

static inline int below(struct ep_rng *r, int n)
{
    return (int)(ep_rng_next(r) % (uint64_t)n);
}

/* What a kind of call is as a symbol: any bits. */
static inline uint64_t symbol_of(uint64_t kind)
{
    uint64_t x = kind + 77;

    return ep_splitmix64(&x);
}

static inline double noisy(struct job *j, double v)
{
    double u = ep_rng_uniform(&j->rng) + ep_rng_uniform(&j->rng) +
               ep_rng_uniform(&j->rng) - 1.5;

    return v * exp(2 * j->jitter * u);
}

static inline void job_add(struct job *j, uint64_t kind, double work)
{
    j->kind[j->n] = kind;
    j->work[j->n] = work;
    j->in[j->n] = 0.3 * work;
    j->n++;
}

/*
 * An iteration: acc micro-batches, each with layers of tp calls forward and
 * backward and messages of a pipeline, then buckets of gradients, and perhaps
 * an all-gather of parameters.
 */
static inline void job_shape(struct job *j, int acc, int layers, int pp,
                             int buckets, bool gather)
{
    j->n = 0;
    for (int m = 0; m < acc; m++) {
        for (int p = 0; p < pp; p++)
            job_add(j, 10 + (uint64_t)p, 0.004);
        for (int l = 0; l < layers; l++) {
            job_add(j, 1, 0.002);
            job_add(j, 2, 0.002);
        }
        for (int p = 0; p < pp; p++)
            job_add(j, 20 + (uint64_t)p, 0.004);
    }
    for (int b = 0; b < buckets; b++)
        job_add(j, b + 1 < buckets ? 30 : 31, 0.005);
    if (gather)
        job_add(j, 40, 0.01);
    j->work[0] += 0.4; /* the optimiser, data */
}

static inline void job_emit(struct job *j, uint64_t kind, double dur, int phase,
                            int iteration, int place)
{
    size_t i = j->calls++;

    j->call = ep_grow(j->call, &j->cap, j->calls, sizeof *j->call);
    j->truth = ep_grow(j->truth, &j->tcap, j->calls, sizeof *j->truth);
    j->call[i] = (struct ep_period_call){symbol_of(kind), j->now, dur,
                                         j->numbered ? j->seq[kind] : -1};
    j->truth[i] = (struct truth){phase, iteration, place, j->hole};
    j->hole = false;
}

/*
 * One iteration of whatever shape is set, with calls that are missing, or extra
 * ones: of both, one could stand for the other, and nobody can tell.
 */
static inline void job_iterate(struct job *j, int phase)
{
    bool drops = below(&j->rng, 2);

    for (int i = 0; i < j->n; i++) {
        double dur = noisy(j, j->in[i]);

        j->now += noisy(j, j->work[i]);
        j->seq[j->kind[i]]++;
        if (!drops && ep_rng_uniform(&j->rng) < j->extra) {
            j->hole = true;
            job_emit(j, below(&j->rng, 2) ? 999 : j->kind[i], dur / 4, phase,
                     -1, -1);
            j->hole = true;
            j->now += dur / 2;
        }
        if (drops && ep_rng_uniform(&j->rng) < j->drop)
            j->hole = true;
        else
            job_emit(j, j->kind[i], dur, phase, j->iteration, i);
        j->now += dur;
    }
    j->iteration++;
}

static inline void job_train(struct job *j, int iterations)
{
    for (int i = 0; i < iterations; i++)
        job_iterate(j, j->phase);
}

/* Forward only: part of the calls of a micro-batch, over and over. */
static inline void job_evaluate(struct job *j, int batches, int layers)
{
    struct job *e = ep_calloc(1, sizeof *e);
    int n = j->n;

    for (int l = 0; l < layers; l++)
        job_add(e, 1, 0.002);
    job_add(e, 50, 0.003);
    for (int b = 0; b < batches; b++)
        for (int i = 0; i < e->n; i++) {
            j->now += noisy(j, e->work[i]);
            job_emit(j, e->kind[i], e->in[i], PHASE_EVAL, -1, i);
            j->now += e->in[i];
        }
    j->n = n;
    j->iteration++; /* iterations on both sides are not neighbours */
    j->hole = true;
    free(e);
}

static inline void job_start_up(struct job *j, int calls)
{
    for (int i = 0; i < calls; i++) {
        j->now += 0.05;
        job_emit(j, 60 + (uint64_t)below(&j->rng, 5), 0.01, PHASE_START, -1,
                 -1);
    }
    j->hole = true;
}

/* Time in calls between a and b, the plain way: points of a fine list. */
static inline double time_in_calls(const struct job *j, size_t first,
                                   size_t end, double a, double b)
{
    double sum = 0, until = a;

    for (size_t i = first; i < end; i++) {
        double from = fmax(j->call[i].ts, until);
        double to = fmin(j->call[i].ts + j->call[i].dur, b);

        if (to > from) {
            sum += to - from;
            until = to;
        }
    }
    return sum;
}

#endif
