/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_skew.h - how far the clocks of hosts are apart, from collectives that
 * end everywhere at once.
 *
 * An all_reduce, all_gather or reduce_scatter cannot end on any rank before the
 * last one has joined, and then ends on all within microseconds: what is left
 * of the difference of the ends, over many of them, is that of the clocks. A
 * late rank does not matter, since it is late for all. The root of a broadcast
 * or reduce may leave early; those, and point-to-point, are not used.
 *
 * Of each collective the ends of a host are their median over its ranks (the
 * first or the last would depend on how many ranks it has). Which collectives
 * are kept: clock_sample.h; offsets and rates: clock_fit.h. Limits:
 *   - what a host's ends are always later than the others' (a slow last link,
 *     microseconds) counts as its clock;
 *   - a clock is a line: offset and rate. One that was set while it ran is a
 *     line with a large spread.
 *   - hosts that no communicator joins, directly or through other hosts, cannot
 *     be compared: they are in different groups.
 * A communicator's name and number may come again after a restart (ends of one
 * host more than EP_CLOCK_GAP apart). If the hosts do not all have it as often,
 * its ends are put together by time, first as it was read, and again with what
 * was found. A name that means different communicators on different hosts (the
 * same rank on two of them at once) is not used.
 */
#ifndef EP_RECORD_CLOCK_SKEW_H
#define EP_RECORD_CLOCK_SKEW_H

#include "base/buf.h"
#include "record/clock_fit.h"
#include "record/record.h"

#include <stddef.h>
#include <stdint.h>

/* Ends of one collective on one host are closer than that, s. */
#define EP_CLOCK_GAP 30.0

/* Ends that are kept by default: about 30 MB at most, and as much again while
   they are evaluated. */
#define EP_CLOCK_MAX ((size_t)1 << 19)

struct ep_clock_skew; /* opaque: what was seen */

/* max as in clock_sample.h; 0: EP_CLOCK_MAX. */
struct ep_clock_skew *ep_clock_skew_new(size_t max);
void ep_clock_skew_free(struct ep_clock_skew *s); /* NULL allowed */

/*
 * Take a record; all but coll records of these three operations with ts, host,
 * comm and seq are passed over. In any order. Cost: O(1) expected, amortised.
 */
void ep_clock_skew_take(struct ep_clock_skew *s, const struct ep_record *r);

struct ep_clock_host {
    const char *name; /* owned by the table */
    struct ep_clock_line line;
};

struct ep_clock_table; /* opaque: clocks of hosts */

/* What the records say. Cost: O(kept log kept), some 1 s for EP_CLOCK_MAX. */
struct ep_clock_table *ep_clock_skew_solve(const struct ep_clock_skew *s);
void ep_clock_table_free(struct ep_clock_table *t); /* NULL allowed */

/*
 * The hosts: by group, in a group the farthest off (ep_clock_line_ahead) first;
 * at the end those with line.known false, by name. Borrowed. *n is how many.
 */
const struct ep_clock_host *ep_clock_table_hosts(const struct ep_clock_table *t,
                                                 size_t *n);
size_t ep_clock_table_groups(const struct ep_clock_table *t);

/* Collectives used; those whose name is no single communicator's. */
uint64_t ep_clock_table_used(const struct ep_clock_table *t);
uint64_t ep_clock_table_ambiguous(const struct ep_clock_table *t);

/* The host's clock; NULL if nothing is known of it. O(length of host). */
const struct ep_clock_host *ep_clock_table_find(struct ep_clock_table *t,
                                                struct ep_span host);

/* What the reference's clock showed when the host's showed ts, at least 0; ts
   if that is not known. Cost: as above. */
double ep_clock_skew_correct(struct ep_clock_table *t, struct ep_span host,
                             double ts);

#endif
