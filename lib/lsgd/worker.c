/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - see worker.h. */
#include "config.h"

#include "lsgd/worker.h"

#include <math.h>

#define PI 3.14159265358979323846

int ep_local_steps(uint64_t h, double speed, double fastest, uint64_t *steps,
                   struct ep_error *err)
{
    double quotient, whole;

    if (h == 0)
        return ep_error_set(err, EP_EDOM, "local steps: not above 0");
    if (!(fastest > 0 && isfinite(fastest)))
        return ep_error_set(err, EP_EDOM,
                            "fastest speed: %g is not finite and above 0",
                            fastest);
    if (!(speed > 0 && speed <= fastest))
        return ep_error_set(err, EP_EDOM,
                            "speed: %g is not above 0 and at "
                            "most the fastest, %g",
                            speed, fastest);
    quotient = (double)h * (speed / fastest);
    whole = floor(quotient);
    if (quotient - whole > 1e-9 * quotient)
        whole++;
    if (whole >= (double)h) /* also where double does not resolve h */
        *steps = h;
    else
        *steps = whole < 1 ? 1 : (uint64_t)whole;
    return 0;
}

double ep_schedule_lr(const struct ep_schedule *s, uint64_t pos)
{
    double share;

    if (pos < s->warmup)
        return s->peak * (((double)pos + 1) / (double)s->warmup);
    if (pos >= s->total)
        return s->peak * s->floor;
    share = (double)(pos - s->warmup) / (double)(s->total - s->warmup);
    return s->peak * (s->floor + (1 - s->floor) * (1 + cos(PI * share)) / 2);
}

uint64_t ep_samples_take(struct ep_samples *s, uint64_t steps)
{
    uint64_t first = s->next;

    s->next += steps * s->batch;
    return first / s->batch;
}

int ep_worker_init(struct ep_worker *w, uint64_t steps, uint64_t tokens,
                   struct ep_error *err)
{
    if (steps == 0)
        return ep_error_set(err, EP_EDOM, "local steps: not above 0");
    *w = (struct ep_worker){.steps = steps, .tokens = tokens};
    return 0;
}

int ep_worker_start(struct ep_worker *w, uint64_t version, uint64_t position,
                    struct ep_error *err)
{
    if (w->training)
        return ep_error_set(err, EP_EDOM,
                            "cannot start a round: one is in training");
    w->training = true;
    w->base = version;
    w->position = position;
    return 0;
}

int ep_worker_finish(struct ep_worker *w, struct ep_worker_effect *out,
                     struct ep_error *err)
{
    if (!w->training)
        return ep_error_set(err, EP_EDOM,
                            "cannot finish a round: none is in training");
    w->training = false;
    *out = (struct ep_worker_effect){.work = {.updates = 1,
                                              .steps = w->steps,
                                              .tokens = w->steps * w->tokens},
                                     .base = w->base,
                                     .exchange = ++w->exchange};
    ep_work_add(&w->done, &out->work);
    return 0;
}

void ep_worker_fail(struct ep_worker *w)
{
    w->training = false;
}
