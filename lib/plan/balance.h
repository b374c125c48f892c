/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balance.h - when to ask a job for which micro-batch shares.
 *
 * Puts together what ranks and events tell (rates.h) and the shares that are
 * best then (shares.h), and remembers what was asked for:
 *
 *   - A plan is due at once when an event came, and once more when "window"
 *     samples of a rank have come since: the median is over samples of the
 *     new state alone then.
 *   - The present shares are those that the ranks report. If they report
 *     none, the last plan counts as applied, and before the first plan, and
 *     where reports make no sense, they are even.
 *   - A plan that was asked for and is not applied yet is not asked for
 *     again, nor is one that is better by less than min_gain. It is forgotten
 *     when no plan helps any more.
 *
 * Pure: no records, no files, no clock.
 */
#ifndef EP_PLAN_BALANCE_H
#define EP_PLAN_BALANCE_H

#include "base/err.h"
#include "plan/rates.h"
#include "plan/shares.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ep_balance_config {
    size_t groups;        /* D, 1..EP_RATES_REPORTERS_MAX */
    int64_t microbatches; /* M, of all groups together */
    int pp, block;        /* as in struct ep_shares_problem */
    size_t window;        /* samples, 1..EP_RATES_WINDOW_MAX */
    double min_gain;      /* least gain in throughput, >= 0 */
};

struct ep_balance; /* opaque */

/*
 * Free with ep_balance_free. NULL on error: that of ep_shares_even, as the
 * bare reason.
 */
struct ep_balance *ep_balance_new(const struct ep_balance_config *config,
                                  struct ep_error *err) EP_MUST_USE;
void ep_balance_free(struct ep_balance *b); /* NULL allowed */

/* As ep_rates_sample, but returns 1 when the second plan is due. */
int ep_balance_sample(struct ep_balance *b, const struct ep_rates_sample *s,
                      struct ep_error *err) EP_MUST_USE;

/* As ep_rates_event. A plan is due when it worked. */
int ep_balance_event(struct ep_balance *b, const struct ep_rates_event *e,
                     struct ep_error *err) EP_MUST_USE;

/* As ep_rates_group_of. */
int64_t ep_balance_group_of(const struct ep_balance *b, int64_t reporter);

enum ep_balance_verdict {
    EP_BALANCE_BLIND,   /* nothing tells a pace; only shares_told is set */
    EP_BALANCE_NONE,    /* the best shares gain nothing, or too little */
    EP_BALANCE_PENDING, /* what was asked for is as good, and not applied yet */
    EP_BALANCE_PLAN,    /* ask for it */
};

/* Pointers are borrowed until the next call. */
struct ep_balance_plan {
    size_t groups;
    int64_t microbatches;
    int block;
    const int64_t *from, *to;           /* [D] */
    const struct ep_rates_group *paces; /* [D] */
    struct ep_shares_result res;
    double gain;    /* in throughput, ep_shares_gain */
    bool relative;  /* paces and makespans have no unit */
    size_t assumed; /* groups without a pace of their own */
    size_t first_assumed;
    /* where from is from */
    enum ep_rates_told shares_told;
    bool odd_shares;      /* told, but no multiples of block */
    size_t shares_groups; /* groups that told */
    int64_t shares_sum;   /* of what they told */
};

/*
 * The plan now; what is returned as EP_BALANCE_PLAN counts as asked for.
 * Returns an enum ep_balance_verdict, or EP_EDOM, EP_ERANGE of
 * ep_shares_solve: a pace that is not finite.
 * Cost: ep_rates_paces and ep_shares_solve; see there.
 */
int ep_balance_plan(struct ep_balance *b, struct ep_balance_plan *out,
                    struct ep_error *err) EP_MUST_USE;

#endif
