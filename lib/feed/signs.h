/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signs.h - records as signs of life, and what time it is in a live
 * input that has nothing to tell.
 *
 * An input is live as long as the end of its latest record is within
 * EP_SIGNS_NEAR_S of the wall clock: an old file that comes through a pipe is not,
 * however long the pipe waits. The clock counts when the input has been silent
 * for a second; before, more of what is behind may be on its way. What comes late, since a collector sends what it
 * has every 30 s, does not make its ranks silent: after each wait of a second
 * the lag of the first record is measured, and the time is the wall clock less
 * the largest of the last lags.
 */
#ifndef EP_FEED_SIGNS_H
#define EP_FEED_SIGNS_H

#include "detect/watch.h"
#include "record/record.h"

#define EP_SIGNS_NEAR_S 600.0 /* s */
#define EP_SIGNS_LAGS 16

struct ep_signs {
    struct ep_watch *watch;
    double latest; /* end of the latest record */
    double lag[EP_SIGNS_LAGS];
    unsigned nlags;
    unsigned waits; /* calls of ep_signs_idle since the last record */
    bool live;
};

/* watch NULL: nothing is done. */
void ep_signs_init(struct ep_signs *s, struct ep_watch *watch);

/* A record that was accepted; as ep_watch_sign. */
int ep_signs_take(struct ep_signs *s, const struct ep_record *r,
                  struct ep_error *err) EP_MUST_USE;

/* The input has nothing to tell; called again each second. */
void ep_signs_idle(void *signs);

#endif
