/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_text.h - records as lines for people.
 *
 *     -- 2026-11-30 UTC --
 *     22:13:22.000 step    rank=2 step=7 dur=0.2
 *
 * Times are local. The line with the date and the time zone comes before the
 * first record with a ts, and wherever the day is another one than that of the
 * record before: a time of day always belongs to the date above it, and lines
 * stay short.
 */
#ifndef EP_RECORD_RECORD_TEXT_H
#define EP_RECORD_RECORD_TEXT_H

#include "base/buf.h"
#include "record/episodes.h"
#include "record/record.h"

/* All-zero to begin with: no date was printed yet. */
struct ep_record_text {
    char day[48];                 /* the line that was */
    struct ep_episodes *episodes; /* NULL until there is an event */
};

void ep_record_text_free(struct ep_record_text *t);

/*
 * Append a record of a known type: the date if it has to be, then the time (as
 * many blanks if there is no ts), the type and key=value. Strings are escaped
 * as ep_escape does, numbers have seven digits, integers all. An event is two
 * lines, as event_text.h has them.
 */
void ep_record_print_text(struct ep_record_text *t, const struct ep_record *r,
                          struct ep_buf *out);

#endif
