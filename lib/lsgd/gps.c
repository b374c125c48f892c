/* SPDX-License-Identifier: Apache-2.0 */
/* gps.c - see gps.h. */
#include "config.h"

#include "lsgd/gps.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdlib.h>

int ep_gps_init(struct ep_gps *g, const struct ep_gps_config *config,
                size_t nclients, struct ep_error *err)
{
    int rc = ep_outer_check(&config->outer, err);

    if (rc < 0)
        return rc;
    if (nclients == 0)
        return ep_error_set(err, EP_EDOM, "clients: none");
    *g = (struct ep_gps){.config = *config, .nclients = nclients};
    g->client = ep_calloc(nclients, sizeof *g->client);
    return 0;
}

void ep_gps_free(struct ep_gps *g)
{
    free(g->client);
    *g = (struct ep_gps){0};
}

int ep_gps_delta(struct ep_gps *g, size_t client, uint64_t x,
                 const struct ep_work *w, struct ep_gps_effect *out,
                 struct ep_error *err)
{
    struct ep_gps_client *c;

    if (client >= g->nclients)
        return ep_error_set(err, EP_EDOM,
                            "cannot apply delta: no client %zu, there are %zu",
                            client, g->nclients);
    c = &g->client[client];
    if (x != c->exchange + 1)
        return ep_error_set(err, EP_EDOM,
                            "cannot apply delta: exchange %" PRIu64
                            " of client %zu, and %" PRIu64 " is next",
                            x, client, c->exchange + 1);
    *out =
        (struct ep_gps_effect){.staleness = g->version - c->version, .nops = 2};
    out->ops[0] =
        (struct ep_vecop){.kind = EP_OP_STEP,
                          .step = ep_outer_step_after(&g->config.outer, g->t)};
    out->ops[1] = (struct ep_vecop){
        .kind = EP_OP_REPLY, .q4 = g->config.q4, .client = client};
    g->t++;
    out->version = ++g->version;
    ep_work_add(&g->work, w);
    ep_work_add(&c->work, w);
    c->exchange = x;
    c->version = g->version;
    return 0;
}

int ep_gps_fetch(struct ep_gps *g, size_t client, uint64_t version,
                 struct ep_error *err)
{
    if (client >= g->nclients)
        return ep_error_set(err, EP_EDOM,
                            "cannot fetch parameters: no client %zu, there "
                            "are %zu",
                            client, g->nclients);
    if (version > g->version || (g->config.q4 && version < g->version))
        return ep_error_set(err, EP_EDOM,
                            "cannot fetch parameters: version %" PRIu64
                            " for client %zu, and %" PRIu64 " is current",
                            version, client, g->version);
    g->client[client].version = version;
    return 0;
}
