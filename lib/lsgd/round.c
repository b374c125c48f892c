/* SPDX-License-Identifier: Apache-2.0 */
/* round.c - see round.h. */
#include "config.h"

#include "lsgd/round.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

int ep_round_init(struct ep_round *r, const struct ep_outer *outer,
                  size_t nclients, struct ep_error *err)
{
    int rc = ep_outer_check(outer, err);

    if (rc < 0)
        return rc;
    if (nclients == 0)
        return ep_error_set(err, EP_EDOM, "clients: none");
    *r = (struct ep_round){.outer = *outer, .nclients = nclients};
    r->here = ep_calloc(nclients, sizeof *r->here);
    return 0;
}

void ep_round_free(struct ep_round *r)
{
    free(r->here);
    *r = (struct ep_round){0};
}

int ep_round_delta(struct ep_round *r, size_t client, const struct ep_work *w,
                   struct ep_round_effect *out, struct ep_error *err)
{
    if (client >= r->nclients)
        return ep_error_set(err, EP_EDOM,
                            "cannot apply delta: no client %zu, there are %zu",
                            client, r->nclients);
    if (r->here[client])
        return ep_error_set(err, EP_EDOM,
                            "cannot apply delta: client %zu has delivered in "
                            "this round already",
                            client);
    *out = (struct ep_round_effect){0};
    r->here[client] = true;
    ep_work_add(&r->current, w);
    if (++r->arrived < r->nclients)
        return 0;
    out->done = true;
    out->ops[out->nops++] = (struct ep_vecop){
        .kind = EP_OP_ROUND, .step = ep_outer_step_after(&r->outer, r->t)};
    r->t++;
    r->version++;
    ep_work_add(&r->work, &r->current);
    r->current = (struct ep_work){0};
    memset(r->here, 0, r->nclients * sizeof *r->here);
    r->arrived = 0;
    return 0;
}
