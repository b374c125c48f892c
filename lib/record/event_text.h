/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_text.h - event records for people.
 *
 *     14:22:31  ONSET   rank=1 (n17) 2.03x since step 118, sure 0.99
 *               cpu-contention: busy per micro-batch 21.3 ms -> 43.1 ms
 *
 * All programs that show events do it by this. Names of the input are escaped
 * as ep_escape does and never cut; times are local. Lines end before column 80
 * where names allow it.
 */
#ifndef EP_RECORD_EVENT_TEXT_H
#define EP_RECORD_EVENT_TEXT_H

#include "base/buf.h"
#include "record/episodes.h"
#include "record/record.h"

/*
 * Who it is of: "rank=1 (n17)", "lm/rank=1 (n17)", "job lm", "host=n1",
 * "stage lm/pp=2", "link src=n1,dst=n4", "group comm=0x1f".
 */
void ep_event_add_who(const struct ep_record *r, struct ep_buf *out);

/*
 * " 2.03x since step 118", " 2.03x since 14:22:31"; without the factor where
 * the record has none, or the kind is missing.
 */
void ep_event_add_since(const struct ep_record *r, struct ep_buf *out);

/* "compute: busy 20 ms -> 43 ms, 0.02 device hours lost"; nothing if nothing
   of that is told. */
void ep_event_add_why(const struct ep_record *r, struct ep_buf *out);

/*
 * An event, as above. news: what ep_episodes_take said of it, which an onset is
 * headed by ("worse", "update"). The eid is added where the line does not say it
 * anyway, as job/id@step.
 */
void ep_event_print_text(const struct ep_record *r, enum ep_event_news news,
                         struct ep_buf *out);

/* Append text in lines of at most 80 columns, each behind indent blanks. */
void ep_event_add_wrapped(struct ep_buf *out, const char *text, size_t indent);

#endif
