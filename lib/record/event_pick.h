/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_pick.h - of all episodes, the one that somebody asks for by its eid,
 * or as much of it as tells it apart.
 *
 * Which one that is is known at the end only: until then what is said of each
 * that it may be is kept. In this order, the first of these rules that fits
 * exactly one episode tells which: the eid is what was asked for; it begins with
 * that, and '@', '/' or '#' follow ("rank=1" is not "rank=10@3"); it begins with
 * that; the part behind the job's name does.
 */
#ifndef EP_RECORD_EVENT_PICK_H
#define EP_RECORD_EVENT_PICK_H

#include "base/buf.h"
#include "record/record.h"

struct ep_pick; /* opaque */

struct ep_pick *ep_pick_new(const char *wanted); /* borrowed */
void ep_pick_free(struct ep_pick *p);            /* NULL allowed */

/*
 * An event: where to append what is to be said of it, until the next call; NULL
 * if it cannot be the one. Memory: 100 bytes for each episode, and what is
 * appended.
 */
struct ep_buf *ep_pick_take(struct ep_pick *p, const struct ep_record *r);

/*
 * What was said of the one; NULL if there is none or more than one, and *why
 * is a message then: "cannot explain X: ..." and some of those there are.
 */
const struct ep_buf *ep_pick_choose(const struct ep_pick *p,
                                    struct ep_buf *why);

#endif
