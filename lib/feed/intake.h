/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake.h - records of all types into the detectors: steps, calls, probes,
 * links and sensors into the watch, and of each record that it is a sign of
 * life.
 */
#ifndef EP_FEED_INTAKE_H
#define EP_FEED_INTAKE_H

#include "base/buf.h"
#include "base/err.h"
#include "detect/calls.h"
#include "detect/comms.h"
#include "detect/watch.h"
#include "feed/signs.h"
#include "record/record.h"

/*
 * The caller owns watch, calls and comms, and sets them; the rest begins as
 * zeros.
 */
struct ep_intake {
    struct ep_watch *watch;
    struct ep_calls
        *calls; /* its function is ep_intake_iteration, or another */
    struct ep_comms *comms; /* NULL: calls are not looked at for places */
    struct ep_signs signs;
    bool calls_only; /* nothing but the iterations of calls is wanted */
    bool resumable;  /* another run goes on where this one ends */
    uint64_t steps, probes, links, iterations; /* that were accepted */
};

/*
 * One record, in the order of time. Of types that detectors do not look at
 * nothing is taken. Errors: those of watch.h and calls.h; the record then
 * counts for nothing. Cost: that of the detector.
 */
int ep_intake_take(struct ep_intake *in, const struct ep_record *r,
                   struct ep_error *err) EP_MUST_USE;

/* An ep_calls_fn, ctx an intake: an iteration that was found in calls. */
void ep_intake_iteration(void *ctx, const struct ep_calls_step *x);

/* Why nothing could be judged; NULL if something was. A constant. */
const char *ep_intake_idle(const struct ep_intake *in);

/* Append "12 step and 0 probe records and 3 iterations". */
void ep_intake_print(const struct ep_intake *in, struct ep_buf *b);

#endif
