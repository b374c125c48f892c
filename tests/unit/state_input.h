/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state_input.h - random telemetry of several jobs, in the order of time, for
 * tests of what is saved: ranks with work per micro-batch and without, workers, a
 * job that tells its own steps, calls, probes, gauges, links; with changes of pace,
 * of ranks, hosts and stages, that come and go, phases and varying work, slow
 * links, ranks that fall silent, spikes, restarts, lost and repeated records.
 */
#ifndef EP_STATE_INPUT_H
#define EP_STATE_INPUT_H

#include "calls_job.h"
#include "detect/calls.h"
#include "detect/watch.h"
#include "series.h"

#include <string.h>

enum input_kind { IN_STEP, IN_PROBE, IN_GAUGE, IN_CALL, IN_LINK };

struct input_one {
    enum input_kind kind;
    double ts;
    size_t order; /* of its coming to be: breaks ties */
    struct ep_watch_step step;
    struct ep_watch_probe probe;
    struct ep_watch_gauge gauge;
    struct ep_watch_link link;
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
            input_add(in, IN_GAUGE, ts)->gauge = (struct ep_watch_gauge){
                .job = span_of(job),
                .host = span_of(""),
                .gpu = span_of(""),
                .name = span_of("cpu_share"),
                .rank = rank,
                .gpu_index = -1,
                .ts = ts,
                .value = value > 1.3 ? 0.6 : 1,
            };
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
            /* the first of a rank has one: read again, it would be new else */
            .ts = i && rng_uniform(&rng) < 0.01 ? (double)NAN : ts,
            .dur = c->dur,
        };
    }
    job_free(j);
    free(j);
}

/* What is slow in a step of the job "many", of 8 ranks on 4 hosts. */
static inline double input_factor(int rank, int i, int n)
{
    bool flaps = rank == 6 && i > n / 4 && i % 24 < 12;
    bool host = rank / 2 == 1 && i > n / 3 && i < 3 * n / 4;
    bool stage = rank % 2 == 1 && i > n / 2 && i < 2 * n / 3;

    return (flaps ? 1.5 : 1) * (host ? 1.7 : 1) * (stage ? 1.3 : 1) *
           (rank == 3 && i > 2 * n / 3 ? 1.4 : 1) * (rank == 5 ? 1.25 : 1);
}

/* Sensors of a GPU and of its host: levels, flags, counts and rates. */
static inline void input_gauges(struct input *in, struct rng *rng, double ts,
                                int rank, int i, bool hot)
{
    static const char *const hosts[] = {"h0", "h1.example", "h2", "h3"};
    const struct {
        const char *name;
        double value;
        bool of_host;
    } all[] = {
        {"sm_clock", hot ? 1200 : 1980, false},
        {"temperature", 60 + 20 * hot + rng_uniform(rng), false},
        {"throttle_reasons", hot ? 64 : 0, false},
        {"pcie_replay", floor(i / 9.0), false},
        {"node_network_receive_errs_total{device=\"eth0\"}", i * hot, true},
        {"node_network_receive_errs_total{device=\"eth1\"}", floor(i / 5.0),
         true},
        {"node_netstat_Tcp_RetransSegs", i * (1 + 5 * hot), true},
        {"node_load1", 4 + 30 * hot, true},
    };

    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        input_add(in, IN_GAUGE, ts)->gauge = (struct ep_watch_gauge){
            .job = span_of(""),
            .host = span_of(hosts[rank / 2]),
            .gpu = span_of(""),
            .name = span_of(all[k].name),
            .rank = -1,
            .gpu_index = all[k].of_host ? -1 : rank % 2,
            .ts = ts,
            .value = all[k].value,
        };
}

/*
 * A job in which incidents of ranks, hosts and stages meet. work: 0 as it is, 1
 * in phases, 2 that varies. One rank falls silent near the end.
 */
static inline void input_many(struct input *in, uint64_t seed, int n, int work)
{
    static const char *const hosts[] = {"h0", "h1", "h2", "h3"};
    struct rng rng = {seed ^ 0xfeed};
    bool calm = seed % 3 == 0; /* and all the same, communication is slow */

    for (int i = 0; i < n; i++) {
        double all = work == 2   ? 1 + rng_uniform(&rng)
                     : work == 1 ? 1 + (i > n / 2) + (i > 3 * n / 5)
                                 : 1;
        double slowest = 0, ts = 100 + 3.5 * i;

        for (int r = 0; r < 8; r++) {
            double busy = all * (calm ? 1 : input_factor(r, i, n)) *
                          (1 + 0.02 * rng_uniform(&rng));

            if (r == 7 && i > 5 * n / 6)
                continue;
            slowest = fmax(slowest, busy);
            input_add(in, IN_STEP, ts + 0.01 * r)->step =
                (struct ep_watch_step){
                    .job = span_of("many"),
                    .host = span_of(hosts[r / 2]),
                    .worker = span_of(""),
                    .rank = r,
                    .place = {true, r / 2, r % 2, 0},
                    .ts = ts + 0.01 * r,
                    .step = i < 4 * n / 5 || seed % 4 ? i : i - 4 * n / 5,
                    .dur = slowest + 0.3 + (calm && i > n / 2),
                    .busy = busy,
                    .mb = 4,
                    .tokens = work ? 4096 * all : 0,
                };
            if (i % 4 == r % 4)
                input_gauges(in, &rng, ts + 0.01 * r + 0.005, r, i,
                             r == 3 && i > 2 * n / 3);
        }
    }
}

/* Pairs of hosts, measured in rounds: one link, then one host is slow. */
static inline void input_links(struct input *in, uint64_t seed, int rounds)
{
    static const char *const hosts[] = {"m0", "m1", "m2", "m3/0000:3b:00.0"};
    struct rng rng = {seed};

    for (int i = 0; i < rounds; i++)
        for (int k = 0; k < 24; k++) {
            int src = k / 2 / 3, dst = k / 2 % 3;
            double ts = 103 + 29 * i + 0.1 * k;
            bool link, host;

            dst += dst >= src;
            link = i > rounds / 4 && src + dst == 1;
            host = i > rounds / 2 && i < rounds - 2 && (src == 2 || dst == 2);
            if (rng_uniform(&rng) < 0.03)
                continue; /* was not measured */
            input_add(in, IN_LINK, ts)->link = (struct ep_watch_link){
                .job = span_of(seed % 2 ? "many" : "links"),
                .src = span_of(hosts[src]),
                .dst = span_of(hosts[dst]),
                .transport = span_of(seed % 3 ? "ib" : ""),
                .bytes = 1 << 20,
                .ts = ts,
                .value = 1e10 * (1 + 0.02 * rng_uniform(&rng)) /
                         (link ? 2 : 1) / (host ? 1.6 : 1),
            };
        }
}

/*
 * Calls of all ranks of a job, with their communicators: two rings, and pairs
 * between them; the transfers over one of the links become slow, or a rank late.
 */
static inline void input_net(struct input *in, uint64_t seed, int n)
{
    static const char *const hosts[] = {"c0", "c1", "c2", "c3"};
    static const char *const rings[] = {"ring0", "ring1"};
    struct rng rng = {seed ^ 0xbeef};
    double now = 100;

    for (int i = 0; i < n; i++) {
        bool bad = i > n / 2, late = bad && seed % 2;
        double longest = 0;

        for (int call = 0; call < 6; call++) {
            bool p2p = call % 3 == 2;
            double dur = 0.05 * (1 + 0.05 * rng_uniform(&rng));

            for (int r = 0; r < 8; r++) {
                bool here = r / 4 == 0 && !late && bad; /* ring0 is slow */
                bool last = late && r == 2;
                double own = dur * (here ? 3 : 1) + (late && !last ? 0.1 : 0);
                struct ep_call *x;

                if (p2p && here)
                    own = dur;
                longest = fmax(longest, own);
                x = &input_add(in, IN_CALL, now + 0.001 * r + 0.1 * last)->call;
                *x = (struct ep_call){
                    .job = span_of("net"),
                    .host = span_of(hosts[r / 2]),
                    .op = span_of(!p2p    ? "all_reduce"
                                  : r < 4 ? "send"
                                          : "recv"),
                    .comm = span_of(p2p ? "pairs" : rings[r / 4]),
                    .rank = r,
                    .pid = i > 4 * n / 5 && seed % 5 == 1 ? 9 : 8,
                    .nranks = p2p ? 8 : 4,
                    .comm_rank = p2p ? r : r % 4,
                    .peer = p2p ? (r + 4) % 8 : -1,
                    .bytes = 1 << (20 + call),
                    .seq = seed % 3 ? i * 6 + call : -1,
                    .p2p = p2p,
                    .ts = now + 0.001 * r + 0.1 * last,
                    .dur = own,
                };
                if (rng_uniform(&rng) < 0.002)
                    in->n--; /* was lost */
            }
            now += longest + 0.03;
        }
        now += 0.5;
    }
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
    input_many(in, seed, steps, (int)(seed % 3));
    input_links(in, seed, steps / 10 + 3);
    input_net(in, seed, steps);
    qsort(in->v, in->n, sizeof *in->v, input_by_ts);
}

#endif
