/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - all that skewdetect knows, as one archive (base/archive.h): the
 * options that it rests on, the calls of ranks, their transfers, the watch.
 */
#ifndef EP_DETECT_STATE_H
#define EP_DETECT_STATE_H

#include "base/archive.h"
#include "detect/calls.h"
#include "detect/comms.h"
#include "detect/watch.h"

/* Changes with each change of what is saved. */
#define EP_STATE_FORMAT 1

/* Options of the command line that have to be the same in each run. */
struct ep_state_options {
    double min_change;
    int64_t confirm, window, world; /* world: 0 if not given */
    double hazard, z, spike, hang;
};

struct ep_state {
    const struct ep_state_options *options;
    struct ep_calls *calls;
    struct ep_comms *comms;
    struct ep_watch *watch;
};

/* Save it. version: of the program. Free a with ep_archive_free. */
int ep_state_save(const struct ep_state *s, struct ep_archive *a,
                  const char *version, struct ep_error *err) EP_MUST_USE;

/*
 * Load into new objects. EP_EFORMAT with a reason, for "cannot read state FILE":
 * also if an option differs. The objects are then good for nothing but to be
 * freed.
 */
int ep_state_load(struct ep_state *s, struct ep_span bytes,
                  struct ep_error *err) EP_MUST_USE;

#endif
