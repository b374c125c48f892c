/* SPDX-License-Identifier: Apache-2.0 */
/* balance_text.c - see balance_text.h. */
#include "config.h"

#include "plan/balance_text.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void add_percent(struct ep_buf *b, double x)
{
    ep_buf_addf(b, fabs(x) < 0.0995 ? "%.2g %%" : "%.0f %%", 100 * x);
}

static int digits(int64_t v)
{
    return snprintf(NULL, 0, "%lld", (long long)v);
}

/* "  dp 0   12 -> 15": one group to a line, or as many as fit. */
static void add_changes(struct ep_buf *b, const struct ep_balance_plan *p)
{
    int from = 2, to = 2, dp = digits((int64_t)p->groups - 1);
    size_t per_line = 1, n = 0;

    for (size_t g = 0; g < p->groups; g++) {
        from = digits(p->from[g]) > from ? digits(p->from[g]) : from;
        to = digits(p->to[g]) > to ? digits(p->to[g]) : to;
    }
    if (p->res.changed > 10)
        per_line = 80 / (size_t)(12 + dp + from + to);
    for (size_t g = 0; g < p->groups; g++) {
        if (p->to[g] == p->from[g])
            continue;
        n++;
        ep_buf_addf(b, "  dp %*zu   %*lld -> %*lld", dp, g, from,
                    (long long)p->from[g], to, (long long)p->to[g]);
        if (n == p->res.changed || per_line < 2 || n % per_line == 0)
            ep_buf_addc(b, '\n');
    }
}

/* "   (rank=1@118)", on a line of its own where it does not fit. */
static void add_eid(struct ep_buf *b, size_t start, struct ep_span eid)
{
    char shown[72];

    if (!eid.ptr)
        return;
    (void)ep_escape(shown, sizeof shown, eid.ptr, eid.len);
    ep_buf_adds(b, b->len - start + strlen(shown) + 5 > 80 ? "\n  " : "   ");
    ep_buf_addf(b, "(%s)", shown);
}

void ep_balance_text(const struct ep_balance_plan *p, double cost,
                     struct ep_span eid, struct ep_buf *b)
{
    size_t start = b->len;

    ep_buf_adds(b, "plan S2 shares: throughput +");
    add_percent(b, p->gain);
    if (!isnan(cost)) {
        ep_buf_adds(b, ", cost ");
        ep_num_format_duration(b, cost);
    }
    add_eid(b, start, eid);
    ep_buf_addc(b, '\n');
    add_changes(b, p);
    ep_buf_adds(b, "predicted step ");
    if (p->relative) {
        add_percent(b, p->res.after / p->res.before);
        ep_buf_adds(b, " of the present one (relative, from events only)\n");
        return;
    }
    ep_num_format_duration(b, p->res.before);
    ep_buf_adds(b, " -> ");
    ep_num_format_duration(b, p->res.after);
    ep_buf_adds(b, " (bound ");
    ep_num_format_duration(b, p->res.bound);
    ep_buf_adds(b, ")\n");
}

void ep_balance_text_none(const struct ep_balance_plan *p, double min_gain,
                          struct ep_span eid, struct ep_buf *b)
{
    size_t start = b->len;

    ep_buf_adds(b, "no plan helps: ");
    if (p->res.changed) {
        ep_buf_adds(b, "the best shares gain ");
        add_percent(b, p->gain);
        ep_buf_adds(b, ", less than --min-gain ");
        add_percent(b, min_gain);
    } else {
        ep_buf_adds(b, "the present shares are the best");
    }
    add_eid(b, start, eid);
}

bool ep_balance_text_paces(const struct ep_balance_plan *p, struct ep_buf *b)
{
    if (p->relative || !p->assumed)
        return false;
    ep_buf_addf(b,
                "no pace of %zu of %zu groups, first dp %zu: taken as that "
                "of the others when healthy, times the factor of its event",
                p->assumed, p->groups, p->first_assumed);
    return true;
}

bool ep_balance_text_shares(const struct ep_balance_plan *p, struct ep_buf *b)
{
    if (p->odd_shares)
        ep_buf_addf(b,
                    "shares in the steps are no multiples of %d, which an "
                    "interleaved schedule needs: taken as even",
                    p->block);
    else if (p->shares_told == EP_RATES_SOME)
        ep_buf_addf(b, "no mb of %zu of %zu groups: shares taken as even",
                    p->groups - p->shares_groups, p->groups);
    else if (p->shares_told == EP_RATES_OTHER)
        ep_buf_addf(b,
                    "steps have %lld micro-batches in all, the layout %lld: "
                    "shares taken as even",
                    (long long)p->shares_sum, (long long)p->microbatches);
    else
        return false;
    return true;
}

void ep_balance_text_group(const struct ep_balance_plan *p, size_t g,
                           struct ep_buf *b)
{
    const struct ep_rates_group *x = &p->paces[g];

    ep_buf_addf(b, "dp %zu: share %lld, pace ", g, (long long)p->from[g]);
    if (p->relative)
        ep_buf_addf(b, "%.3g", x->pace);
    else
        ep_num_format_duration(b, x->pace);
    switch (x->source) {
    case EP_RATES_MEASURED:
        ep_buf_addf(b, ", median of %zu", x->samples);
        break;
    case EP_RATES_BEFORE:
        ep_buf_adds(b, ", from before the event");
        break;
    case EP_RATES_ASSUMED:
        ep_buf_adds(b, ", assumed");
        break;
    }
}
