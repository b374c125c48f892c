/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_rounds.c - methods with a barrier: all train, then a ring all-reduce
 * over all workers makes the mean.
 *
 * A delta counts when the all-reduce is over; a worker that goes down before
 * that breaks it, trains its round again, and the all-reduce is begun anew.
 */
#include "config.h"

#include "lsgd/sim_impl.h"

static int begin(struct ep_sim *s)
{
    size_t workers[EP_LINKS_REGIONS];
    int rc =
        ep_round_init(&s->round, &s->settings->gps, s->env->nworkers, s->err);

    for (size_t r = 0; r < s->env->nregions; r++)
        workers[r] = s->env->region[r].workers;
    s->ring = ep_links_allreduce(s->links, workers, s->bytes, &s->ring_between,
                                 &s->ring_inside);
    for (size_t w = 0; rc == 0 && w < s->env->nworkers; w++)
        rc = ep_sim_train(s, w);
    return rc;
}

static uint64_t version(const struct ep_sim *s, size_t worker)
{
    (void)worker;
    return s->round.version;
}

static void finished(struct ep_sim *s, size_t worker)
{
    (void)worker;
    if (++s->finished < s->env->nworkers)
        return;
    ep_vclock_at(&s->clock, s->clock.now + s->ring, EP_EV_REDUCED, 0,
                 s->attempt);
}

static void lost(struct ep_sim *s, size_t worker)
{
    if (s->agent[worker].state != EP_AT_WAIT)
        return;
    s->finished--;
    s->attempt++;
}

static int reduced(struct ep_sim *s)
{
    struct ep_round_effect e = {.done = false};
    uint64_t steps = s->round.work.steps, tokens = s->round.work.tokens;
    int rc = 0;

    ep_links_credit(s->links, s->ring_between, s->ring_inside);
    for (size_t w = 0; rc == 0 && w < s->env->nworkers; w++) {
        rc = ep_round_delta(&s->round, w, &s->agent[w].delta.work, &e, s->err);
        s->out->worker_updates++;
        s->out->worker[w].updates++;
        s->out->region[s->env->region_of[w]].updates++;
    }
    if (rc < 0)
        return rc;
    s->finished = 0;
    s->attempt++;
    s->credited = s->round.work.steps;
    s->done = s->credited >= s->env->total_steps;
    ep_sim_count(
        s, &s->out->gps,
        &(struct ep_sim_merge){.t = s->clock.now,
                               .global = true,
                               .region = EP_SIM_NONE,
                               .worker = EP_SIM_NONE,
                               .version = s->round.version,
                               .base = s->round.version - 1,
                               .steps = s->credited - steps,
                               .tokens = s->round.work.tokens - tokens});
    for (size_t w = 0; rc == 0 && !s->done && w < s->env->nworkers; w++) {
        s->agent[w].fetched = s->round.version;
        rc = ep_sim_train(s, w);
    }
    return rc;
}

static void end(struct ep_sim *s)
{
    (void)s;
}

const struct ep_sim_ops ep_sim_rounds = {.begin = begin,
                                         .end = end,
                                         .version = version,
                                         .finished = finished,
                                         .lost = lost,
                                         .reduced = reduced};
