/* SPDX-License-Identifier: Apache-2.0 */
/*
 * changepoint_impl.h - what changepoint.c and changepoint_archive.c share; for
 * them alone.
 */
#ifndef EP_DETECT_CHANGEPOINT_IMPL_H
#define EP_DETECT_CHANGEPOINT_IMPL_H

#include "detect/bocd.h"
#include "detect/changepoint.h"
#include "detect/spikes.h"

#define EP_RING 64 /* samples, and bits of a mask */

enum state { WARMUP, HEALTHY, SLOW };

/* A level and the number of samples it rests on. */
struct level {
    double x;
    unsigned n;
};

/* Saved by changepoint_archive.c: a field more here is one there. */
struct ep_changepoint {
    struct ep_changepoint_config c;
    struct ep_bocd *bocd;
    double min_log; /* log(1 + min_change) */
    uint64_t total; /* samples taken */
    enum state state;
    unsigned episode;   /* of the last onset */
    struct level best;  /* healthy */
    struct level mark;  /* of the last event; thresholds refer to it */
    double sigma;       /* noise */
    unsigned seg;       /* samples of this segment, at most EP_RING */
    unsigned proposal;  /* samples since BOCD's last proposal */
    double up, down;    /* thresholds of an onset and of a relief */
    uint64_t hi, lo;    /* bits: x >= up, x <= down */
    uint64_t low, near; /* bits: below the best level, or close to it */
    double left_ts;     /* the sample at which the best level was left */
    int64_t left_step;
    double pos; /* position of the latest sample, in iterations */
    /* The spike under way. */
    unsigned spike_n; /* samples since its start, 0: none */
    double spike_peak, spike_pos, spike_ts;
    int64_t spike_step;
    struct ep_spikes spikes;
    double x[EP_RING];
    double ts[EP_RING];
    int64_t step[EP_RING];
};

#endif
