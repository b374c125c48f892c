/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balance_text.h - plans and what they rest on, in words.
 *
 * Lines of at most 80 columns, as long as an eid fits.
 */
#ifndef EP_PLAN_BALANCE_TEXT_H
#define EP_PLAN_BALANCE_TEXT_H

#include "base/buf.h"
#include "plan/balance.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Append a plan, with '\n' at the end of each line:
 *
 *     plan S2 shares: throughput +31 %, cost 5 s   (rank=1@118)
 *       dp 0   12 -> 15
 *       dp 1   12 ->  9
 *     predicted step 1.31 s -> 1 s (bound 0.98 s)
 *
 * cost    s; NaN: left out
 * eid     of the event that led to it, escaped here; ptr NULL: left out
 */
void ep_balance_text(const struct ep_balance_plan *p, double cost,
                     struct ep_span eid, struct ep_buf *b);

/* Append why no plan helps; no '\n', as with all that follow. eid as above. */
void ep_balance_text_none(const struct ep_balance_plan *p, double min_gain,
                          struct ep_span eid, struct ep_buf *b);

/* Append which paces had to be assumed beside others that were measured;
 * false, and nothing, if there are none. */
bool ep_balance_text_paces(const struct ep_balance_plan *p, struct ep_buf *b);

/* Append why the shares that were told are of no use; false, and nothing, if
 * they are, or none were told. */
bool ep_balance_text_shares(const struct ep_balance_plan *p, struct ep_buf *b);

/* Append what is known of group g. */
void ep_balance_text_group(const struct ep_balance_plan *p, size_t g,
                           struct ep_buf *b);

#endif
