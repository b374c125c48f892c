/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lps.c - see lps.h.
 *
 * An update that comes while an exchange is outstanding, without carry, is
 * lost at once: the delta that could hold it has been sent, and the next one
 * starts from the snapshot of a merge that is still to come. So at any time
 *
 *     version = updates in the deltas sent + lost + pending
 *
 * where a delta has K updates in it (with carry: all since the one before).
 */
#include "config.h"

#include "lsgd/lps.h"

#include <inttypes.h>

void ep_work_add(struct ep_work *sum, const struct ep_work *w)
{
    sum->updates += w->updates;
    sum->steps += w->steps;
    sum->tokens += w->tokens;
}

int ep_lps_init(struct ep_lps *l, const struct ep_lps_config *config,
                struct ep_error *err)
{
    int rc = ep_outer_check(&config->outer, err);

    if (rc < 0)
        return rc;
    if (config->k == 0)
        return ep_error_set(err, EP_EDOM, "k: not above 0");
    if (!(config->alpha >= 0 && config->alpha <= 1))
        return ep_error_set(err, EP_EDOM, "alpha: %g is not within 0 to 1",
                            config->alpha);
    *l = (struct ep_lps){.config = *config};
    return 0;
}

/* Send all that was applied since the merge (carry: since the last send). */
static void send_delta(struct ep_lps *l, struct ep_lps_effect *out)
{
    out->ops[out->nops++] = (struct ep_vecop){
        .kind = EP_OP_SEND, .q4 = l->config.q4, .carry = l->config.carry};
    out->send = true;
    out->exchange = ++l->exchange;
    out->base = l->global_version;
    out->work = l->pending;
    ep_work_add(&l->sent, &l->pending);
    l->pending = (struct ep_work){0};
    l->sent_version = l->version;
    l->outstanding = true;
}

int ep_lps_delta(struct ep_lps *l, const struct ep_work *w, uint64_t base,
                 struct ep_lps_effect *out, struct ep_error *err)
{
    if (base > l->version)
        return ep_error_set(err, EP_EDOM,
                            "cannot apply delta: its base is version %" PRIu64
                            ", the server is at %" PRIu64,
                            base, l->version);
    *out = (struct ep_lps_effect){.staleness = l->version - base};
    out->ops[out->nops++] =
        (struct ep_vecop){.kind = EP_OP_STEP,
                          .step = ep_outer_step_after(&l->config.outer, l->t)};
    l->t++;
    l->version++;
    ep_work_add(&l->pending, w);
    if (l->outstanding)
        l->lost += l->config.carry ? 0 : 1;
    else if (l->version - l->merged_version == l->config.k)
        send_delta(l, out);
    return 0;
}

int ep_lps_merge(struct ep_lps *l, uint64_t x, uint64_t global_version,
                 struct ep_lps_effect *out, struct ep_error *err)
{
    if (!l->outstanding)
        return ep_error_set(err, EP_EDOM,
                            "cannot merge reply to exchange %" PRIu64
                            ": none is outstanding",
                            x);
    if (x != l->exchange)
        return ep_error_set(err, EP_EDOM,
                            "cannot merge reply to exchange %" PRIu64
                            ": %" PRIu64 " is outstanding",
                            x, l->exchange);
    *out = (struct ep_lps_effect){0};
    out->ops[out->nops++] = (struct ep_vecop){.kind = EP_OP_MERGE,
                                              .alpha = l->config.alpha,
                                              .q4 = l->config.q4,
                                              .carry = l->config.carry};
    l->merged_version = l->version;
    l->global_version = global_version;
    l->outstanding = false;
    return 0;
}

uint64_t ep_lps_pending_updates(const struct ep_lps *l)
{
    if (l->config.carry)
        return l->version - l->sent_version;
    return l->outstanding ? 0 : l->version - l->merged_version;
}
