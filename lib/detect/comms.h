/* SPDX-License-Identifier: Apache-2.0 */
/* comms.h - where communication became slow. */
#ifndef EP_DETECT_COMMS_H
#define EP_DETECT_COMMS_H

#include "base/buf.h"
#include "base/err.h"
#include "detect/calls.h"
#include "detect/watch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ep_comms; /* opaque */

struct ep_comms *ep_comms_new(double min_change);
void ep_comms_free(struct ep_comms *c);

/* One call of a collective or message, in the order of its rank. */
int ep_comms_take(struct ep_comms *c, const struct ep_call *call,
                  struct ep_error *err) EP_MUST_USE;

struct ep_comms_place {
    enum ep_scope scope;
    const char *id;
    double factor, p;
    const char *evidence;
    size_t candidates;
    int64_t rank;
    bool late;
};

/*
 * What explains best that communication of the job is slower since a time than
 * before (late: the cause is a rank that arrives late, not a transfer). false:
 * nothing does, or too few calls since. Strings are borrowed until the next
 * call.
 */
bool ep_comms_locate(struct ep_comms *c, struct ep_span job, double since_ts,
                     struct ep_comms_place *out);

#endif
