/* SPDX-License-Identifier: Apache-2.0 */
/*
 * align.h - records of all hosts by one clock: what clock_skew.h finds, put
 * into words and into the records.
 *
 * Two passes: ep_align_estimate() reads the inputs, then a stream reads them
 * again with ep_align_record() as its correct.
 */
#ifndef EP_RECORD_ALIGN_H
#define EP_RECORD_ALIGN_H

#include "base/buf.h"
#include "base/err.h"
#include "base/lines.h"
#include "record/clock_skew.h"
#include "record/record.h"
#include "record/stream.h"

#include <stdbool.h>

/*
 * Can all n inputs be read twice, as files and folders can? EP_EUSAGE "cannot
 * use --align-clocks: ..." if not: of standard input (n is 0, or "-"), pipes,
 * URLs. A path that does not exist is not refused here.
 */
int ep_align_check(const char *const *paths, int n,
                   struct ep_error *err) EP_MUST_USE;

/*
 * Read all inputs and compare the clocks of their hosts; how is what they will
 * be read with (world, from; the rest is not used). Complains of nothing: what
 * is bad or missing is found again by the second pass. Never NULL. Cost: that
 * of reading, one input after the other.
 */
struct ep_clock_table *ep_align_estimate(const char *const *paths, int n,
                                         const struct ep_stream_config *how);

/* Is there a correction for the host of this record? Not for records of types
   that are not known, whose keys were not checked. O(length of host). */
bool ep_align_concerns(struct ep_clock_table *t, const struct ep_record *r);

/* Correct ts, and since, of a record; table is a struct ep_clock_table. */
void ep_align_record(void *table, struct ep_record *r);

/*
 * Append the line of a record that was corrected, '\n' included: as it was read
 * (unknown keys, order and spelling), but with ts and since of r.
 */
void ep_align_line(const struct ep_line *line, const struct ep_record *r,
                   struct ep_buf *out);

/*
 * The gauge "clock_offset" of a host whose line is known, all strings borrowed;
 * room is overwritten with what has to live as long as *r.
 */
void ep_align_gauge(const struct ep_clock_table *t,
                    const struct ep_clock_host *host, struct ep_record *r,
                    struct ep_buf *room);

/* Append a table for people, a row per host, the worst first. */
void ep_align_text(const struct ep_clock_table *t, struct ep_buf *out);

/* Remarks, each one line without '\n'; nothing is appended where there is
   nothing to say. */
void ep_align_say_corrected(const struct ep_clock_table *t, struct ep_buf *out);
void ep_align_say_unknown(const struct ep_clock_table *t, struct ep_buf *out);
void ep_align_say_groups(const struct ep_clock_table *t, struct ep_buf *out);
void ep_align_say_ambiguous(const struct ep_clock_table *t, struct ep_buf *out);

#endif
