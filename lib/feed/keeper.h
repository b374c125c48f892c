/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h - what detectors know, kept in a file from one run to the next: when
 * it is loaded and written.
 */
#ifndef EP_FEED_KEEPER_H
#define EP_FEED_KEEPER_H

#include "base/statefile.h"
#include "detect/state.h"

#include <stdbool.h>
#include <stdint.h>

/* All-zero keeps nothing. */
struct ep_keeper {
    struct ep_statefile *file; /* NULL: nothing is kept */
    struct ep_state what;      /* set by the caller before it is opened */
    double written;            /* s, ep_clock_mono; when it was written last */
    uint64_t taken;            /* records */
    bool dirty;                /* some of them since it was written */
};

/*
 * Lock the file and load what it holds; path NULL: do nothing. Returns the bytes
 * that were loaded, 0 if there is no file yet; errors have the whole message.
 */
int64_t ep_keeper_open(struct ep_keeper *k, const char *path,
                       struct ep_error *err) EP_MUST_USE;

/*
 * Is it time, while the program runs, to write it? Asked with each record, and
 * (waits) when there is none. Cost: O(1); looks at the clock now and then.
 */
bool ep_keeper_is_due(struct ep_keeper *k, bool waits);

/* Put the state in place, whole or not at all. */
int ep_keeper_write(struct ep_keeper *k, struct ep_error *err) EP_MUST_USE;

/* Let go of the lock. */
void ep_keeper_close(struct ep_keeper *k);

#endif
