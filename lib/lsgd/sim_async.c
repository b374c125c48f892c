/* SPDX-License-Identifier: Apache-2.0 */
/* sim_async.c - asynchronous local SGD: the workers are the global server's
 * clients. */
#include "config.h"

#include "lsgd/sim_impl.h"

static int begin(struct ep_sim *s)
{
    const struct ep_gps_config gps = {.outer = s->settings->gps};
    int rc = ep_gps_init(&s->gps, &gps, s->env->nworkers, s->err);

    for (size_t w = 0; rc == 0 && w < s->env->nworkers; w++)
        ep_sim_fetch(s, w);
    return rc;
}

static uint64_t version(const struct ep_sim *s, size_t worker)
{
    (void)worker;
    return s->gps.version;
}

/*
 * A worker that has rejoined did not start from the last reply to it, but from
 * what it fetched then: the delta says which version that was. Numbers are
 * given here, as deltas arrive; a delta that was lost on its way has none.
 */
static int serve(struct ep_sim *s, size_t server,
                 const struct ep_sim_message *m)
{
    const struct ep_gps_client *c = &s->gps.client[m->from];
    struct ep_gps_effect e;
    int rc = 0;

    (void)server;
    if (c->version != m->base)
        rc = ep_gps_fetch(&s->gps, m->from, m->base, s->err);
    if (rc == 0)
        rc = ep_gps_delta(&s->gps, m->from, c->exchange + 1, &m->work, &e,
                          s->err);
    if (rc < 0)
        return rc;
    ep_sim_count(s, &s->out->gps,
                 &(struct ep_sim_merge){.t = s->clock.now,
                                        .global = true,
                                        .region = EP_SIM_NONE,
                                        .worker = m->from,
                                        .version = e.version,
                                        .base = m->base,
                                        .staleness = e.staleness,
                                        .steps = m->work.steps,
                                        .tokens = m->work.tokens});
    s->credited = s->gps.work.steps;
    s->done = s->credited >= s->env->total_steps;
    if (m->life == s->agent[m->from].life)
        ep_sim_fetch(s, m->from);
    return 0;
}

static void end(struct ep_sim *s)
{
    (void)s;
}

const struct ep_sim_ops ep_sim_async = {
    .begin = begin, .end = end, .version = version, .serve = serve};
