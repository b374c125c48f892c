/* SPDX-License-Identifier: Apache-2.0 */
/* skewdetect_state.h - skewdetect --state: when it is loaded and written. */
#ifndef EP_SKEWDETECT_STATE_H
#define EP_SKEWDETECT_STATE_H

#include "base/statefile.h"
#include "detect/state.h"

#include <stdint.h>

/* All-zero is without --state. */
struct memory {
    struct ep_statefile *file; /* NULL: nothing is kept */
    struct ep_state what;
    double written; /* s, ep_clock_mono; when it was written last */
    uint64_t taken; /* records */
    bool dirty;     /* some of them since it was written */
};

/*
 * Lock the file and load what it holds, if it is there. path NULL: do nothing.
 * verbose: say what was loaded. Errors have the whole message.
 */
int memory_open(struct memory *m, const char *path, bool verbose,
                struct ep_error *err) EP_MUST_USE;

/*
 * Is it time, while the program runs, to write it? Asked with each record, and
 * (waits) when there is none.
 */
bool memory_is_due(struct memory *m, bool waits);

int memory_write(struct memory *m, struct ep_error *err) EP_MUST_USE;
void memory_close(struct memory *m);

#endif
