/* SPDX-License-Identifier: Apache-2.0 */
/* replay_span.h - a span record for lib/replay, which knows no records. */
#ifndef EP_TEST_REPLAY_SPAN_H
#define EP_TEST_REPLAY_SPAN_H

#include "record/record.h"
#include "replay/ops.h"
#include "replay/spans.h"

/* type is -1 if ops does not have the operation. */
static inline struct ep_replay_span replay_span_of(const struct ep_ops *ops,
                                                   const struct ep_record *r)
{
    return (struct ep_replay_span){
        .step = ep_record_int(r, EP_K_STEP, 0),
        .dp = ep_record_int(r, EP_K_DP, 0),
        .pp = ep_record_int(r, EP_K_PP, 0),
        .mb = ep_record_int(r, EP_K_MB, -1),
        .chunk = ep_record_int(r, EP_K_CHUNK, -1),
        .seq = ep_record_int(r, EP_K_SEQ, -1),
        .type = ep_ops_find(ops, ep_record_str(r, EP_K_OP)),
        .start = ep_record_num(r, EP_K_TS),
        .dur = ep_record_num(r, EP_K_DUR),
    };
}

#endif
