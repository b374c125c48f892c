/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain_sim.h - a second simulator to hold lib/lsgd/sim.c against, written
 * apart from it: no heap, no state machines, no links; every entity has a state
 * and the time of its next change, and the least of all is looked for at each
 * turn. It knows latency and failures, not contention, servers' times or 4-bit
 * exchanges.
 */
#ifndef EP_PLAIN_SIM_H
#define EP_PLAIN_SIM_H

#include "lsgd/env.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_W = 12, MAX_R = 4 };
enum state { FETCH, TRAIN, SEND, READY, DOWN };

struct plain {
    const struct ep_env *e;
    enum ep_method method;
    uint64_t k;
    double t;
    enum state state[MAX_W];
    double due[MAX_W], begin[MAX_W];
    double turn[MAX_W]; /* when it next goes down or comes up */
    uint64_t h[MAX_W], base[MAX_W];
    size_t failure[MAX_W];
    /* of regions, and of the global server at [MAX_R] */
    uint64_t version[MAX_R + 1];
    double stale[2];
    uint64_t updates[2];
    /* exchanges: 0 none, 1 going up, 2 coming down */
    int phase[MAX_R];
    double xdue[MAX_R];
    uint64_t merged[MAX_R], sent[MAX_R], xbase[MAX_R], xsteps[MAX_R];
    uint64_t reply[MAX_R], dropped;
    uint64_t open_steps[MAX_R], credit;
    double reduce;
    uint64_t lost_steps;
};

static inline double move(const struct plain *p, size_t from, size_t to)
{
    const struct ep_env *e = p->e;

    return e->latency + (double)(e->parameters * e->bytes_per_parameter) * 8 /
                            (1e9 * e->gbit_s[from * e->nregions + to]);
}

static inline bool barrier(const struct plain *p)
{
    return p->method != EP_METHOD_HALOS && p->method != EP_METHOD_ASYNC;
}

/* Where a worker's server is; which of version[] is its. */
static inline size_t home(const struct plain *p, size_t w)
{
    return p->method == EP_METHOD_HALOS ? p->e->region_of[w] : p->e->gps_region;
}

static inline size_t model(const struct plain *p, size_t w)
{
    return p->method == EP_METHOD_HALOS ? p->e->region_of[w] : MAX_R;
}

static inline void fetch(struct plain *p, size_t w)
{
    p->state[w] = FETCH;
    p->base[w] = p->version[model(p, w)];
    p->due[w] = p->t + move(p, home(p, w), p->e->region_of[w]);
}

static inline void train(struct plain *p, size_t w)
{
    p->state[w] = TRAIN;
    p->begin[w] = p->t;
    p->due[w] = p->t +
                p->e->step * (double)p->h[w] * p->e->fastest / p->e->speed[w] +
                (barrier(p) ? 0 : 1e-9 * (double)w);
}

/* Best ring by trying all orders of at most four regions. */
static inline double ring_time(const struct plain *p)
{
    static const size_t orders[6][4] = {{0, 1, 2, 3}, {0, 1, 3, 2},
                                        {0, 2, 1, 3}, {0, 2, 3, 1},
                                        {0, 3, 1, 2}, {0, 3, 2, 1}};
    size_t n = p->e->nregions, all = p->e->nworkers;
    double best = 0, bytes;

    for (size_t o = 0; o < 6; o++) {
        double least = 1e300;
        size_t seen[4] = {0}, m = 0;

        for (size_t i = 0; i < 4; i++)
            if (orders[o][i] < n)
                seen[m++] = orders[o][i];
        for (size_t i = 0; n > 1 && i < n; i++)
            least = fmin(least, p->e->gbit_s[seen[i] * n + seen[(i + 1) % n]]);
        for (size_t r = 0; r < n; r++)
            if (p->e->region[r].workers > 1)
                least = fmin(least, p->e->gbit_s[r * n + r]);
        best = fmax(best, least);
    }
    bytes = (double)(p->e->parameters * p->e->bytes_per_parameter);
    return all < 2
               ? 0
               : 2 * (double)(all - 1) *
                     (bytes * 8 / (double)all / (1e9 * best) + p->e->latency);
}

/* A delta of worker w arrives at its server. */
static inline void deliver(struct plain *p, size_t w)
{
    size_t m = model(p, w), r = p->e->region_of[w];
    int tier = p->method == EP_METHOD_HALOS;

    p->stale[tier] += (double)(p->version[m] - p->base[w]);
    p->updates[tier]++;
    p->version[m]++;
    if (p->method == EP_METHOD_HALOS) {
        p->open_steps[r] += p->h[w];
        if (!p->phase[r] && p->version[r] - p->merged[r] == p->k) {
            p->phase[r] = 1;
            p->sent[r] = p->version[r];
            p->xsteps[r] = p->open_steps[r];
            p->open_steps[r] = 0;
            p->xdue[r] = p->t + move(p, r, p->e->gps_region);
        }
    } else {
        p->credit += p->h[w];
    }
    fetch(p, w);
}

static inline void exchange(struct plain *p, size_t r)
{
    if (p->phase[r] == 1) {
        p->stale[0] += (double)(p->version[MAX_R] - p->xbase[r]);
        p->updates[0]++;
        p->reply[r] = ++p->version[MAX_R];
        p->credit += p->xsteps[r];
        p->phase[r] = 2;
        p->xdue[r] = p->t + move(p, p->e->gps_region, r);
    } else {
        p->dropped += p->version[r] - p->sent[r];
        p->merged[r] = p->version[r];
        p->xbase[r] = p->reply[r];
        p->phase[r] = 0;
        p->xdue[r] = 1e300;
    }
}

static inline void next_turn(struct plain *p, size_t w, bool down)
{
    const struct ep_env *e = p->e;

    p->turn[w] = 1e300;
    if (p->failure[w] == e->nfailures || e->failure[p->failure[w]].worker != w)
        return;
    p->turn[w] =
        down ? e->failure[p->failure[w]].up : e->failure[p->failure[w]].down;
}

static inline void fail(struct plain *p, size_t w)
{
    double done =
        (p->t - p->begin[w]) * p->e->speed[w] / (p->e->step * p->e->fastest);

    if (p->state[w] == DOWN) {
        p->failure[w]++;
        next_turn(p, w, false);
        fetch(p, w);
        return;
    }
    if (p->state[w] == TRAIN)
        p->lost_steps += (uint64_t)fmin(floor(done), (double)p->h[w]);
    else if (p->state[w] != FETCH)
        p->lost_steps += p->h[w];
    p->state[w] = DOWN;
    p->due[w] = p->reduce = 1e300;
    next_turn(p, w, true);
}

static inline void step_worker(struct plain *p, size_t w)
{
    size_t ready = 0;

    if (p->state[w] == FETCH) {
        train(p, w);
    } else if (p->state[w] == SEND) {
        deliver(p, w);
    } else if (!barrier(p)) {
        p->state[w] = SEND;
        p->due[w] = p->t + move(p, p->e->region_of[w], home(p, w));
    } else {
        p->state[w] = READY;
        p->due[w] = 1e300;
        for (size_t i = 0; i < p->e->nworkers; i++)
            ready += p->state[i] == READY;
        if (ready == p->e->nworkers)
            p->reduce = p->t + ring_time(p);
    }
}

static inline void reduce(struct plain *p)
{
    p->updates[0]++;
    p->reduce = 1e300;
    for (size_t w = 0; w < p->e->nworkers; w++) {
        p->credit += p->h[w];
        train(p, w);
    }
}

static inline void plain_start(struct plain *p)
{
    p->reduce = 1e300;
    for (size_t r = 0; r < MAX_R; r++)
        p->xdue[r] = 1e300;
    for (size_t w = 0; w < p->e->nworkers; w++) {
        while (p->failure[w] < p->e->nfailures &&
               p->e->failure[p->failure[w]].worker < w)
            p->failure[w]++;
        next_turn(p, w, false);
        if (barrier(p))
            train(p, w);
        else
            fetch(p, w);
    }
}

static inline void plain_run(struct plain *p)
{
    plain_start(p);
    while (p->credit < p->e->total_steps) {
        size_t who = 0;
        double t = p->reduce;
        int what = 3;

        for (size_t w = 0; w < p->e->nworkers; w++) {
            if (p->turn[w] < t) {
                t = p->turn[w];
                who = w;
                what = 0;
            }
            if (p->due[w] < t) {
                t = p->due[w];
                who = w;
                what = 1;
            }
        }
        for (size_t r = 0; r < MAX_R; r++)
            if (p->xdue[r] < t) {
                t = p->xdue[r];
                who = r;
                what = 2;
            }
        p->t = t;
        if (what == 0)
            fail(p, who);
        else if (what == 1)
            step_worker(p, who);
        else if (what == 2)
            exchange(p, who);
        else
            reduce(p);
    }
}

#endif
