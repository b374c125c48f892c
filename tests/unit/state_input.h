/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_input.h - random telemetry of several jobs, in the order of time, for
 * tests of what is saved: ranks with work per micro-batch and without, workers, a
 * job that tells its own steps, calls, probes, CPU shares; with changes of pace,
 * spikes, restarts, lost and repeated records.
 */
#ifndef EP_STATE_INPUT_H
#define EP_STATE_INPUT_H

#include "calls_job.h"
#include "detect/calls.h"
#include "detect/watch.h"
#include "series.h"

#include <string.h>

enum input_kind { IN_STEP, IN_PROBE, IN_SHARE, IN_CALL };

struct input_one {
    enum input_kind kind;
    double ts;
    size_t order; /* of its coming to be: breaks ties */
    struct ep_watch_step step;
    struct ep_watch_probe probe;
    struct ep_call call;
};

struct input {
    struct input_one *v;
    size_t n, cap;
};

static inline struct ep_span span_of(const char *s)
{
    return (struct ep_span){s, strlen(s)};
}

static inline struct input_one *input_add(struct input *in,
                                          enum input_kind kind, double ts)
{
    struct input_one *x;

    in->v = ep_grow(in->v, &in->cap, in->n + 1, sizeof *in->v);
    x = &in->v[in->n];
    memset(x, 0, sizeof *x);
    x->kind = kind;
    x->ts = ts;
    x->order = in->n++;
    return x;
}

static inline int input_by_ts(const void *pa, const void *pb)
{
    const struct input_one *a = pa, *b = pb;

    if (a->ts != b->ts)
        return a->ts < b->ts ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

/* One series of steps: of a rank (worker ""), a worker, or (-1, "") a job. */
static inline void input_steps(struct input *in, uint64_t seed, const char *job,
                               int64_t rank, const char *worker, int n)
{
    static const char *const hosts[] = {"", "n1", "n2"};
    static const struct series_config how = {.cv = 0.01,
                                             .spikes = 0.02,
                                             .factor_lo = 1.15,
                                             .factor_hi = 2,
                                             .stretch_lo = 15,
                                             .stretch_hi = 60};
    struct rng rng = {seed ^ 0x5eed};
    struct series pace;
    double ts = 100;
    int64_t step = 0;

    series_init(&pace, &how, seed);
    for (int i = 0; i < n; i++) {
        double value = series_next(&pace) / pace.base;
        struct ep_watch_step *s = &input_add(in, IN_STEP, ts)->step;

        *s = (struct ep_watch_step){
            .job = span_of(job),
            .host = span_of(hosts[seed % 3]),
            .worker = span_of(worker),
            .rank = rank,
            .place = {seed % 2, rank, -1, 0},
            .ts = ts,
            .step = step,
            .dur = value + 0.2,
            .busy = seed % 4 && rank >= 0 ? value : (double)NAN,
            .mb = seed % 4 > 1 ? (int64_t)(i > n / 2 ? 3 : 4) : -1,
        };
        if (s->mb > 0 && rng_uniform(&rng) < 0.02)
            s->mb = 0;
        if (rng_uniform(&rng) < 0.02) { /* told twice */
            struct ep_watch_step copy = *s;

            input_add(in, IN_STEP, ts)->step = copy;
        }
        if (rank >= 0 && i % 5 == 0) {
            s = &input_add(in, IN_SHARE, ts)->step;
            s->job = span_of(job);
            s->rank = rank;
            s->dur = value > 1.3 ? 0.6 : 1;
        }
        ts += 1.25; /* the job waits for all */
        step = i == 2 * n / 3 ? step - n / 3 : step + 1 + (i % 37 == 36);
    }
}

static inline void input_probes(struct input *in, uint64_t seed, int rounds)
{
    static const char *const gpus[] = {"g0", "g1", "g2", "g3", ""};
    struct rng rng = {seed};

    for (int i = 0; i < rounds; i++)
        for (int k = 0; k < 5; k++) {
            double ts = 110 + 17 * i + k;
            struct ep_watch_probe *p = &input_add(in, IN_PROBE, ts)->probe;

            *p = (struct ep_watch_probe){
                .job = span_of(seed % 2 ? "p" : ""),
                .host = span_of("n9"),
                .gpu = span_of(gpus[k]),
                .test = span_of(i % 3 ? "gemm" : "membw"),
                .dtype = span_of("f32"),
                .unit = span_of("s"),
                .rank = k == 4 ? 7 : -1,
                .size = 1024,
                .ts = ts,
                .value = (k == 2 && i % 4 > 1 ? 2 : 1) *
                         (1 + 0.01 * rng_uniform(&rng)),
                .spread = k ? 0.05 * k : (double)NAN,
                .ref_own = k == 1 ? 0.8 : (double)NAN,
            };
            if (rng_uniform(&rng) < 0.1)
                in->n--; /* a device is away */
        }
}

/*
 * The calls of a rank, of which the work becomes more; overlap: some begin before
 * the one in front of them.
 */
static inline void input_calls(struct input *in, uint64_t seed, int64_t rank,
                               int iterations, bool overlap)
{
    struct job *j = ep_calloc(1, sizeof *j);
    struct rng rng = {seed};
    double last = 0;

    ep_rng_seed(&j->rng, seed, 1);
    j->now = 100 + 0.01 * (double)rank;
    j->jitter = 0.01;
    j->drop = seed % 3 ? 0 : 0.002;
    j->numbered = seed % 2;
    job_start_up(j, 5);
    job_shape(j, 2, 2, 1, 2, seed % 2);
    job_train(j, iterations / 2);
    job_evaluate(j, 8, 3);
    job_train(j, iterations / 4);
    if (rank == 1)
        j->work[0] *= 2;
    job_train(j, iterations / 4);
    for (size_t i = 0; i < j->calls; i++) {
        const struct ep_period_call *c = &j->call[i];
        double ts = c->ts - (overlap && rng_uniform(&rng) < 0.05 ? 0.005 : 0);
        struct ep_call *x;

        /* the order of the program is that of the stream */
        last = fmax(last, ts);
        x = &input_add(in, IN_CALL, last)->call;
        *x = (struct ep_call){
            .job = span_of("calls"),
            .host = span_of(rank ? "n1" : ""),
            .op = span_of("all_reduce"),
            .comm = span_of(c->symbol % 2 ? "c" : "d"),
            .rank = rank,
            .pid = i > j->calls * 4 / 5 && seed % 5 == 0 ? 2 : 1,
            .nranks = 4,
            .comm_rank = -1,
            .peer = -1,
            .bytes = (int64_t)(c->symbol >> 1),
            .seq = c->seq,
            .ts = rng_uniform(&rng) < 0.01 ? (double)NAN : ts,
            .dur = c->dur,
        };
    }
    job_free(j);
    free(j);
}

static inline void input_make(struct input *in, uint64_t seed, int steps,
                              bool overlap)
{
    *in = (struct input){NULL, 0, 0};
    for (int r = 0; r < 4; r++)
        input_steps(in, seed + (uint64_t)r * 4, "a", r, "", steps);
    for (int r = 0; r < 3; r++)
        input_steps(in, seed + 1 + (uint64_t)r * 5, "", r, "", steps / 2);
    input_steps(in, seed + 90, "b", -1, "w/0", steps);
    input_steps(in, seed + 91, "b", -1, "w1", steps);
    input_steps(in, seed + 92, "told", -1, "", steps);
    input_probes(in, seed, steps / 10);
    for (int r = 0; r < 3; r++)
        input_calls(in, seed + (uint64_t)r, r, steps / 2, overlap);
    qsort(in->v, in->n, sizeof *in->v, input_by_ts);
}

#endif
