/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - a worker as a state machine, and the rules of its rounds; pure
 * like lps.h.
 *
 *     on parameters of a version, and samples from first on:
 *         train H_i local steps from them
 *     when these are done:
 *         send g = theta_start - theta_end, steps, tokens
 */
#ifndef EP_LSGD_WORKER_H
#define EP_LSGD_WORKER_H

#include "lsgd/lps.h"

/*
 * Local steps by speed (dynamic local updates, arXiv 2506.04531, section 4;
 * NOTE: arXiv 2401.09135 rounds down):
 *
 *     H_i = max(1, ceil(H s_i / s_max))
 *
 * A quotient within 1e-9 (relative) above a whole number counts as that
 * number. EP_EDOM unless 0 < speed <= fastest, finite, h >= 1.
 */
int ep_local_steps(uint64_t h, double speed, double fastest, uint64_t *steps,
                   struct ep_error *err) EP_MUST_USE;

/*
 * Learning rate at a position of the run (in global batches): linear warm-up
 * over warmup positions, (pos + 1) / warmup, then a cosine from 1 to floor at
 * total; floor beyond. Times peak.
 */
struct ep_schedule {
    double peak;
    double floor; /* share of peak at the end, in [0, 1] */
    uint64_t warmup, total;
};
double ep_schedule_lr(const struct ep_schedule *s, uint64_t pos);

/* Hands out samples: the global order of data, by which the rate goes. */
struct ep_samples {
    uint64_t next;  /* first sample that nobody has */
    uint64_t batch; /* samples of one local step (the global batch), >= 1 */
};
/* Take steps batches; returns the position (sample / batch) they begin at. */
uint64_t ep_samples_take(struct ep_samples *s, uint64_t steps);

/* Read-only for others. */
struct ep_worker {
    uint64_t steps;  /* H_i */
    uint64_t tokens; /* per local step */
    bool training;
    uint64_t base;     /* version of the parameters in training */
    uint64_t position; /* of the schedule, at the start of the round */
    uint64_t exchange; /* rounds delivered */
    struct ep_work done;
};

struct ep_worker_effect {
    struct ep_work work; /* of the delta to be sent */
    uint64_t base;       /* version that it started from */
    uint64_t exchange;   /* its number, from 1 on */
};

/* EP_EDOM if steps is 0. */
int ep_worker_init(struct ep_worker *w, uint64_t steps, uint64_t tokens,
                   struct ep_error *err) EP_MUST_USE;

/* Parameters came: train from them. EP_EDOM while training. O(1). */
int ep_worker_start(struct ep_worker *w, uint64_t version, uint64_t position,
                    struct ep_error *err) EP_MUST_USE;

/* The steps are done: send. EP_EDOM if not training. O(1). */
int ep_worker_finish(struct ep_worker *w, struct ep_worker_effect *out,
                     struct ep_error *err) EP_MUST_USE;

/* It failed: what it was training is gone; it can start again. O(1). */
void ep_worker_fail(struct ep_worker *w);

#endif
