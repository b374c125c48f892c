/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whatif_text.h - the result of whatif.h, for people.
 */
#ifndef EP_REPLAY_WHATIF_TEXT_H
#define EP_REPLAY_WHATIF_TEXT_H

#include "base/buf.h"
#include "replay/whatif.h"

/*
 * One line without its end: the answer. "1.97x slower than without
 * stragglers: worker dp 0, stage 0 costs 100 % of it". At most 80 columns, with
 * S below 100 and fewer than 10,000 ranks.
 */
void ep_whatif_answer(const struct ep_whatif *w, enum ep_whatif_cause cause,
                      struct ep_buf *out);

/* The figures behind it, in one line without its end. */
void ep_whatif_evidence(const struct ep_whatif *w, const struct ep_ops *ops,
                        struct ep_buf *out);

/* The cause's place: "dp=0,pp=0", "pp=3"; nothing if it is the job. */
void ep_whatif_place(const struct ep_whatif *w, enum ep_whatif_cause cause,
                     struct ep_buf *out);

/*
 * One screen of 80 columns: the answer, what was replayed, then operations,
 * workers and steps, each the worst first. step [steps] are the steps' numbers.
 */
void ep_whatif_text(const struct ep_whatif *w, const struct ep_ops *ops,
                    const int64_t *step, enum ep_whatif_cause cause,
                    struct ep_buf *out);

#endif
