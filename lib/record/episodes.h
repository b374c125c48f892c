/* SPDX-License-Identifier: Apache-2.0 */
/*
 * episodes.h - what an event adds to what was known of its episode.
 *
 * Events of one episode share job and eid: an onset or missing begins it, more
 * of them say that it got worse, or is placed or explained better, a relief
 * ends it, or a part of it.
 */
#ifndef EP_RECORD_EPISODES_H
#define EP_RECORD_EPISODES_H

#include "record/record.h"

#include <stddef.h>

enum ep_event_news {
    EP_EVENT_FIRST,  /* the first of its episode, or no onset */
    EP_EVENT_WORSE,  /* same place and cause, a larger factor */
    EP_EVENT_UPDATE, /* another place, cause, or figure */
};

struct ep_episodes; /* opaque */

struct ep_episodes *ep_episodes_new(void);
void ep_episodes_free(struct ep_episodes *e); /* NULL allowed */

/*
 * Take an event record; nothing of it is borrowed. What an onset or missing is
 * after those before with the same job and eid; EP_EVENT_FIRST of every other
 * kind. Cost: O(bytes of the names) expected; 100 bytes per episode and its
 * names.
 */
enum ep_event_news ep_episodes_take(struct ep_episodes *e,
                                    const struct ep_record *r);

/* How many episodes began. */
size_t ep_episodes_count(const struct ep_episodes *e);

#endif
