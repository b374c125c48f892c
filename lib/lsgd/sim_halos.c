/* SPDX-License-Identifier: Apache-2.0 */
/* sim_halos.c - HALoS: a server per region, and a global one. */
#include "config.h"

#include "lsgd/sim_impl.h"

static int begin(struct ep_sim *s)
{
    const struct ep_env *env = s->env;
    const struct ep_lps_config lps = {.outer = s->settings->lps,
                                      .k = s->settings->k,
                                      .alpha = s->settings->alpha,
                                      .carry = env->carry,
                                      .q4 = env->q4};
    const struct ep_gps_config gps = {.outer = s->settings->gps, .q4 = env->q4};
    int rc = ep_gps_init(&s->gps, &gps, env->nregions, s->err);

    for (size_t r = 0; rc == 0 && r < env->nregions; r++)
        rc = ep_lps_init(&s->lps[r], &lps, s->err);
    for (size_t w = 0; rc == 0 && w < env->nworkers; w++)
        ep_sim_fetch(s, w);
    return rc;
}

static uint64_t version(const struct ep_sim *s, size_t worker)
{
    return s->lps[s->env->region_of[worker]].version;
}

/* Put a region's exchange on the link to, or from, the global server. */
static void exchange(struct ep_sim *s, size_t region, bool is_up,
                     const struct ep_sim_message *m)
{
    size_t gps = s->env->gps_region;

    s->exchange[region] = (struct ep_sim_exchange){.up = is_up, .message = *m};
    ep_links_send(s->links, s->env->nworkers + region,
                  ep_links_between(s->links, is_up ? region : gps,
                                   is_up ? gps : region, !is_up),
                  s->q4_bytes);
}

static int exchanged(struct ep_sim *s, size_t region)
{
    const struct ep_sim_exchange *x = &s->exchange[region];

    return ep_sim_arrive(s, x->up ? s->env->nregions : region, &x->message);
}

/* A worker's delta at its region's server. */
static int serve_delta(struct ep_sim *s, size_t r,
                       const struct ep_sim_message *m)
{
    struct ep_lps_effect e;
    int rc = ep_lps_delta(&s->lps[r], &m->work, m->base, &e, s->err);

    if (rc < 0)
        return rc;
    ep_sim_count(s, &s->out->lps,
                 &(struct ep_sim_merge){.t = s->clock.now,
                                        .region = r,
                                        .worker = m->from,
                                        .version = s->lps[r].version,
                                        .base = m->base,
                                        .staleness = e.staleness,
                                        .steps = m->work.steps,
                                        .tokens = m->work.tokens});
    if (e.send) {
        s->out->region[r].sent +=
            s->lps[r].config.carry ? e.work.updates : s->lps[r].config.k;
        exchange(s, r, true,
                 &(struct ep_sim_message){.from = r,
                                          .exchange = true,
                                          .number = e.exchange,
                                          .base = e.base,
                                          .work = e.work});
    }
    if (m->life == s->agent[m->from].life)
        ep_sim_fetch(s, m->from);
    return 0;
}

static int serve_exchange(struct ep_sim *s, const struct ep_sim_message *m)
{
    struct ep_gps_effect e;
    int rc = ep_gps_delta(&s->gps, m->from, m->number, &m->work, &e, s->err);

    if (rc < 0)
        return rc;
    ep_sim_count(s, &s->out->gps,
                 &(struct ep_sim_merge){.t = s->clock.now,
                                        .global = true,
                                        .region = m->from,
                                        .worker = EP_SIM_NONE,
                                        .version = e.version,
                                        .base = m->base,
                                        .staleness = e.staleness,
                                        .steps = m->work.steps,
                                        .tokens = m->work.tokens});
    s->credited = s->gps.work.steps;
    s->done = s->credited >= s->env->total_steps;
    exchange(s, m->from, false,
             &(struct ep_sim_message){.from = m->from,
                                      .exchange = true,
                                      .number = m->number,
                                      .version = e.version});
    return 0;
}

static int serve(struct ep_sim *s, size_t server,
                 const struct ep_sim_message *m)
{
    struct ep_lps_effect e;
    int rc;

    if (server == s->env->nregions)
        return serve_exchange(s, m);
    if (!m->exchange)
        return serve_delta(s, server, m);
    rc = ep_lps_merge(&s->lps[server], m->number, m->version, &e, s->err);
    s->dropped[server] = s->lps[server].lost;
    return rc;
}

/*
 * The machine counts an update as lost as soon as no delta can hold it; what
 * is reported as unsent is what merges have dropped, as the published figures
 * have it. The two differ by what came in during the last exchange.
 */
static void end(struct ep_sim *s)
{
    for (size_t r = 0; r < s->env->nregions; r++) {
        s->out->region[r].unsent = s->dropped[r];
        s->out->region[r].pending =
            ep_lps_pending_updates(&s->lps[r]) + s->lps[r].lost - s->dropped[r];
    }
}

const struct ep_sim_ops ep_sim_halos = {.begin = begin,
                                        .end = end,
                                        .version = version,
                                        .serve = serve,
                                        .exchanged = exchanged,
                                        .regional = true};
