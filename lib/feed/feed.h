/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - between records and detectors: records as samples, findings as
 * event records. The one place that knows both.
 */
#ifndef EP_FEED_FEED_H
#define EP_FEED_FEED_H

#include "base/err.h"
#include "detect/calls.h"
#include "detect/watch.h"
#include "record/record.h"

/* Strings of all of them are borrowed from the record. */

/* A coll or p2p record. */
void ep_feed_call(const struct ep_record *r, struct ep_call *out);

/*
 * A gauge record; of a record of another type with a rank and a gpu or
 * gpu_index, which device the rank runs on (ep_watch_device).
 */
void ep_feed_gauge(const struct ep_record *r, struct ep_watch_gauge *out);

/* A link record. */
void ep_feed_link(const struct ep_record *r, struct ep_watch_link *out);

/* A step record. */
void ep_feed_step(const struct ep_record *r, struct ep_watch_step *out);

/* A probe record. Errors: EP_EFORMAT (better is neither high nor low). */
int ep_feed_probe(const struct ep_record *r, struct ep_watch_probe *out,
                  struct ep_error *err) EP_MUST_USE;

/*
 * The event record of a finding, from which its strings are borrowed. What is
 * NaN, NULL or -1 is left out: ts of an open episode, too, which no record may
 * lack that is written. Of what is missing so is the factor: it has no pace.
 */
void ep_feed_event(const struct ep_finding *f, struct ep_record *out);

/* An iteration that was found in calls, as a step record. */
void ep_feed_iteration(const struct ep_calls_step *x, struct ep_record *out);

#endif
