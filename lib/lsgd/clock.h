/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - virtual time: a heap of events by when they are due.
 *
 * Deterministic: events that are due at the same moment come in the order in
 * which they were entered. An event carries three numbers that the clock does
 * not look at; one that is no longer wanted is not taken out but found out of
 * date by its owner when it comes (gen).
 */
#ifndef EP_LSGD_CLOCK_H
#define EP_LSGD_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ep_vevent {
    double t;      /* s */
    uint64_t seq;  /* the how manieth that was entered */
    uint64_t gen;  /* the owner's */
    uint32_t kind; /* the owner's */
    uint32_t id;   /* the owner's */
};

/* Read-only for others. */
struct ep_vclock {
    struct ep_vevent *heap; /* [n], owned; heap[0] is the next */
    size_t n, cap;
    uint64_t entered, passed; /* events */
    double now;               /* s, from 0 */
};

void ep_vclock_init(struct ep_vclock *c);
void ep_vclock_free(struct ep_vclock *c); /* all-zero allowed */

/* Enter an event that is due at t; a t before now counts as now. t is not
   NaN. Cost: O(log n). */
void ep_vclock_at(struct ep_vclock *c, double t, uint32_t kind, uint32_t id,
                  uint64_t gen);

/* Take out the next event and make it now; false if there is none.
   Cost: O(log n). */
bool ep_vclock_next(struct ep_vclock *c, struct ep_vevent *e);

#endif
