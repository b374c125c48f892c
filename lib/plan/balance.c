/* SPDX-License-Identifier: Apache-2.0 */
/* balance.c - see balance.h. */
#include "config.h"

#include "plan/balance.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct ep_balance {
    struct ep_shares_problem problem; /* t and now are those below */
    size_t window;
    double min_gain;
    struct ep_rates *rates;
    struct ep_rates_group *paces; /* [D] */
    double *t;                    /* [D], of paces */
    int64_t *now, *best;          /* [D] */
    int64_t *asked, *asked_now;   /* [D] the last plan: to and from */
    bool has_asked;
    bool due; /* the second plan of an event */
};

void ep_balance_free(struct ep_balance *b)
{
    if (!b)
        return;
    ep_rates_free(b->rates);
    free(b->paces);
    free(b->t);
    free(b->now);
    free(b->best);
    free(b->asked);
    free(b->asked_now);
    free(b);
}

struct ep_balance *ep_balance_new(const struct ep_balance_config *config,
                                  struct ep_error *err)
{
    struct ep_balance *b = ep_calloc(1, sizeof *b);
    size_t n = config->groups;

    b->window = config->window;
    b->min_gain = config->min_gain;
    b->rates = ep_rates_new(n, config->window, config->microbatches);
    b->paces = ep_calloc(n, sizeof *b->paces);
    b->t = ep_calloc(n, sizeof *b->t);
    b->now = ep_calloc(n, sizeof *b->now);
    b->best = ep_calloc(n, sizeof *b->best);
    b->asked = ep_calloc(n, sizeof *b->asked);
    b->asked_now = ep_calloc(n, sizeof *b->asked_now);
    b->problem =
        (struct ep_shares_problem){.ngroups = n,
                                   .t = b->t,
                                   .microbatches = config->microbatches,
                                   .pp = config->pp,
                                   .block = config->block,
                                   .now = b->now};
    if (ep_shares_even(&b->problem, b->now, err) < 0) {
        ep_balance_free(b);
        return NULL;
    }
    return b;
}

int ep_balance_sample(struct ep_balance *b, const struct ep_rates_sample *s,
                      struct ep_error *err)
{
    int rc = ep_rates_sample(b->rates, s, err);

    if (rc < 0 || !b->due || ep_rates_fresh(b->rates) < b->window)
        return rc;
    b->due = false;
    return 1;
}

int64_t ep_balance_group_of(const struct ep_balance *b, int64_t reporter)
{
    return ep_rates_group_of(b->rates, reporter);
}

int ep_balance_event(struct ep_balance *b, const struct ep_rates_event *e,
                     struct ep_error *err)
{
    int rc = ep_rates_event(b->rates, e, err);

    if (rc == 0)
        b->due = true;
    return rc;
}

static bool in_blocks(const struct ep_balance *b)
{
    for (size_t g = 0; g < b->problem.ngroups; g++)
        if (b->now[g] % b->problem.block)
            return false;
    return true;
}

/* b->now, and in out where it is from. */
static int find_shares(struct ep_balance *b, struct ep_balance_plan *out,
                       struct ep_error *err)
{
    out->shares_told = ep_rates_shares(b->rates, b->now, &out->shares_groups,
                                       &out->shares_sum);
    if (out->shares_told == EP_RATES_ALL) {
        out->odd_shares = !in_blocks(b);
        if (!out->odd_shares)
            return 0;
    }
    if (out->shares_told == EP_RATES_NONE && b->has_asked) {
        memcpy(b->now, b->asked, b->problem.ngroups * sizeof *b->now);
        return 0;
    }
    return ep_shares_even(&b->problem, b->now, err);
}

/* Was the last plan not applied yet? */
static bool is_pending(const struct ep_balance *b)
{
    return b->has_asked && memcmp(b->now, b->asked_now,
                                  b->problem.ngroups * sizeof *b->now) == 0;
}

/* Is the best plan, with that makespan, hardly better than the last one? */
static bool is_no_better(const struct ep_balance *b, double after)
{
    const struct ep_shares_problem *p = &b->problem;
    size_t bytes = p->ngroups * sizeof *b->best;
    double asked;

    asked = ep_shares_makespan(p->ngroups, p->t, p->pp, b->asked);
    return memcmp(b->best, b->asked, bytes) == 0 ||
           ep_shares_gain(asked, after) < b->min_gain;
}

int ep_balance_plan(struct ep_balance *b, struct ep_balance_plan *out,
                    struct ep_error *err)
{
    size_t n = b->problem.ngroups, told = ep_rates_paces(b->rates, b->paces);
    int rc;

    *out = (struct ep_balance_plan){.groups = n,
                                    .microbatches = b->problem.microbatches,
                                    .block = b->problem.block,
                                    .from = b->now,
                                    .to = b->best,
                                    .paces = b->paces};
    out->relative = told == 0;
    for (size_t g = n; g-- > 0;) {
        b->t[g] = b->paces[g].pace;
        if (b->paces[g].source == EP_RATES_ASSUMED) {
            out->assumed++;
            out->first_assumed = g;
        }
    }
    rc = find_shares(b, out, err);
    if (rc < 0)
        return rc;
    if (!told && !ep_rates_named(b->rates))
        return EP_BALANCE_BLIND;
    rc = ep_shares_solve(&b->problem, b->best, &out->res, err);
    if (rc < 0)
        return rc;
    out->gain = ep_shares_gain(out->res.before, out->res.after);
    if (!out->res.changed || out->gain < b->min_gain) {
        if (is_pending(b))
            b->has_asked = false;
        return EP_BALANCE_NONE;
    }
    if (is_pending(b) && is_no_better(b, out->res.after))
        return EP_BALANCE_PENDING;
    memcpy(b->asked, b->best, n * sizeof *b->asked);
    memcpy(b->asked_now, b->now, n * sizeof *b->asked_now);
    b->has_asked = true;
    return EP_BALANCE_PLAN;
}
