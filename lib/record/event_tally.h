/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_tally.h - what the events of a run came to, and what is still open.
 *
 * It is fed each event, and at the end each episode that is open then, and
 * tells them as the end of a listing for people, or as a check of a monitoring
 * system:
 *
 *     SKEWDETECT CRITICAL - 1 straggler: rank=3 (n1) 2.03x since step 118 | ...
 *
 * That is the format of the Monitoring Plugins (Nagios, Icinga, Naemon; also
 * fit for Slurm's HealthCheckProgram): the status and what there is to say on
 * one line, behind '|' performance data 'label'=value;warn;crit;min;max, and
 * more text on the lines below. Ranges are theirs: "0" alerts above 0.
 *
 * It is judged by what is open, not by what is over. Something is
 *     critical  if an open factor is at least "critical", or anything is missing
 *     warning   if an open factor is at least "warning"
 *     unknown   if there was trouble: what was not read may be slow
 *
 * Reference: Monitoring Plugins Development Guidelines, "Plugin Output for
 * Nagios", "Threshold and ranges", "Performance data".
 */
#ifndef EP_RECORD_EVENT_TALLY_H
#define EP_RECORD_EVENT_TALLY_H

#include "base/buf.h"
#include "record/episodes.h"
#include "record/record.h"

#include <stdbool.h>
#include <stdint.h>

/* Exit statuses of such a check. */
enum { EP_NAGIOS_OK, EP_NAGIOS_WARNING, EP_NAGIOS_CRITICAL, EP_NAGIOS_UNKNOWN };

/* Of what is open, so many are listed, the slowest first. */
#define EP_TALLY_SHOWN 10

struct ep_tally; /* opaque */

struct ep_tally *ep_tally_new(void);
void ep_tally_free(struct ep_tally *t); /* NULL allowed */

/*
 * Take an event, and say what is new in it. Nothing is borrowed. Cost: as
 * ep_episodes_take.
 */
enum ep_event_news ep_tally_event(struct ep_tally *t,
                                  const struct ep_record *r);

/*
 * An episode is open at the end: an event record (ts and evidence are not
 * needed). What the events said was missing and did not come back need not be
 * told again. Cost: O(EP_TALLY_SHOWN).
 */
void ep_tally_open(struct ep_tally *t, const struct ep_record *r);

/* Was there an onset, or anything missing? */
bool ep_tally_found(const struct ep_tally *t);

/* "still slow: rank=1 2.03x since step 118" of each, or of the slowest. */
void ep_tally_print_open(const struct ep_tally *t, struct ep_buf *out);

/* "2 onsets, 1 relief, 0 spikes"; missing and updates only if there are any. */
void ep_tally_print_counts(const struct ep_tally *t, struct ep_buf *out);

/* A message, of which the first one is why the status is unknown. */
void ep_tally_message(struct ep_tally *t, const char *text);

struct ep_nagios {
    const char *name;         /* "SKEWDETECT" */
    double warning, critical; /* factors, 1 <= warning <= critical */
    bool trouble;             /* the status is unknown */
    const char *read;         /* "320 step and 0 probe records" */
};

/* Append all of it; returns the exit status. */
int ep_tally_print_nagios(const struct ep_tally *t, const struct ep_nagios *how,
                          struct ep_buf *out);

#endif
