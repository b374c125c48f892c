/* SPDX-License-Identifier: Apache-2.0 */
/*
 * changepoint.h - the pace of one series: when it became slow, and when not.
 *
 * One handle follows one series of iteration times (of a job, a rank, a
 * collective) and reports onsets, reliefs and spikes. BOCD (bocd.h) on
 * log(value) proposes change points; verification decides, as in FALCON
 * (arXiv 2410.12588, section 4) [1], with its gaps closed:
 *
 * Level. The healthy level is the best level that was sustained: the median
 * of at least "settle" samples that neither scatter by more than 15 % nor
 * fall by more than min_change (a warm-up does; after 32 samples the level is
 * taken as it is). Warm-up is therefore neither onset nor relief. The level
 * is refined until it rests on 64 samples. A significantly lower sustained
 * level lowers it without an event.
 *
 * Change. Of the last n samples (n = confirm .. window, smallest first) the
 * most must lie beyond the threshold, and so must their median:
 *
 *     onset           >= (1 + min_change) healthy, and at least half of
 *                     min_change above the level of the last event
 *     onset, worsening >= (1 + min_change) x the level of the last event
 *     relief          <= that level / (1 + min_change), or below
 *                     (1 + min_change) healthy and at least half of
 *                     min_change below that level
 *     relief, partial a relief that stays >= (1 + min_change) healthy
 *
 * and differ from the earlier level by z standard errors of a median,
 * 1.2533 sigma sqrt(1/n + 1/n_before), where sigma is 1.4826 MAD, not less
 * than noise_floor, enlarged by 1 + 5/m if it comes from m samples. Windows
 * shorter than "settle" are the fast path: BOCD must have proposed a change
 * there (lagged mass P(r <= lag) >= propose; P(r = 0) is always the hazard),
 * and the samples must agree with each other (within a quarter of the change
 * or 4.5 sigma), so that neither the transition nor a chance row of spikes
 * passes. What scatters because it is slow (pauses) does not agree: 5 samples or
 * more, all beyond the threshold and 6 sigma, have to differ by 3 standard
 * errors of their own scatter. Where samples since an onset jitter by more than
 * 2 sigma (successive differences, which a ramp has not), their median has to be
 * beyond the threshold by 1.645 of its own standard errors. The long windows
 * compare with the best sustained level, which finds ramps whose steps are each
 * too small; the scatter of a window is that about a rising line through the
 * medians of its halves, if that is less.
 *
 * Spike. Samples >= spike_factor x level and 6 sigma above it that do not
 * last. Reported when over; periodic ones only until the period is known
 * (spikes.h).
 *
 * NOTE: differs from [1]: medians instead of means, lagged mass instead of
 * P(r = 0) > 0.9 (which never fires), the best sustained level besides the
 * previous one, significance besides the 10 %.
 *
 * Limits. A series that is slow from its first sample has no known healthy
 * level: its relief is silent. A lasting change of the work itself (a longer
 * batch) is an onset that never ends: make a new handle when the job changes.
 *
 * The noise is taken as independent from one sample to the next. A level that
 * itself wanders by 10 % is reported: with lag-1 correlation 0.9 there are
 * 1.3 onsets in 10,000 healthy samples at a standard deviation of 2 %, and 59
 * at 5 % (independent noise: none in 400,000 of either).
 *
 * Memory: 3.6 KB per series whatever the window, 36 MB for 10,000 series.
 */
#ifndef EP_DETECT_CHANGEPOINT_H
#define EP_DETECT_CHANGEPOINT_H

#include "base/archive.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct ep_changepoint_config {
    double hazard;       /* of BOCD, in (0, 1) */
    double propose;      /* lagged mass that is a proposal, in (0, 1) */
    double min_change;   /* relative, in (0, 10] */
    double z;            /* standard errors a change must have, > 0 */
    double noise_floor;  /* least relative noise assumed, in (0, 1] */
    double spike_factor; /* > 1 */
    unsigned lag;        /* w of the lagged mass, 1..16 */
    unsigned confirm;    /* iterations a change must last, 1..16 */
    unsigned settle;     /* samples that make a level, confirm+1..32 */
    unsigned window;     /* samples remembered, max(16, settle)..64 */
};

/* The defaults; start from them and change what you need. */
#define EP_CHANGEPOINT_DEFAULTS                                                \
    {                                                                          \
        .hazard = 0.01, .propose = 0.5, .min_change = 0.10, .z = 5,            \
        .noise_floor = 0.005, .spike_factor = 1.25, .lag = 3, .confirm = 3,    \
        .settle = 8, .window = 64                                              \
    }

enum ep_change_kind { EP_CHANGE_ONSET, EP_CHANGE_RELIEF, EP_CHANGE_SPIKE };

struct ep_change {
    enum ep_change_kind kind;
    double since_ts;    /* seconds: first sample that differs, backdated */
    int64_t since_step; /* its step, -1 if it had none */
    double factor;      /* level now / healthy level; a spike: peak / level */
    double before;      /* seconds, median level before the change */
    double after;       /* seconds, median level since; a spike: its peak */
    double p;           /* how sure, 0..1: BOCD's P(r <= age + lag); where it
                           saw none, and for spikes, 1 - P(|noise| > z) */
    bool worsening;     /* ONSET: of an episode that was open already */
    bool partial;       /* RELIEF: still slow, the episode stays open */
    unsigned episode;   /* 1, 2, ..; a spike: the open episode, or 0 */
};

#define EP_CHANGEPOINT_MAX_EVENTS 2 /* by one push */

struct ep_changepoint;

/*
 * A tracker that has seen nothing. Free with ep_changepoint_free. config may
 * be NULL (defaults). NULL with EP_EDOM if a field is out of its range.
 */
struct ep_changepoint *
ep_changepoint_new(const struct ep_changepoint_config *config,
                   struct ep_error *err);
void ep_changepoint_free(struct ep_changepoint *cp);

/*
 * Take the next sample of the series.
 *
 * ts      seconds, finite; of the sample, returned as since_ts
 * step    iteration number or -1; used for since_step and, where it grows,
 *         for the period of spikes
 * value   seconds, finite and > 0
 * out     [EP_CHANGEPOINT_MAX_EVENTS], written; oldest event first
 * Returns the number of events, or EP_EDOM if ts or value is refused; the
 * state is then untouched.
 * Cost: O(window), no allocation.
 */
int ep_changepoint_push(struct ep_changepoint *cp, double ts, int64_t step,
                        double value, struct ep_change *out) EP_MUST_USE;

/*
 * Save or load all that it knows; cp has to be of the configuration of the one
 * that was saved. What it says afterwards is what that one would have said.
 */
void ep_changepoint_archive(struct ep_archive *a, struct ep_changepoint *cp);

/* Median of the last 5 samples, seconds; NaN before the first. */
double ep_changepoint_level(const struct ep_changepoint *cp);

/* Best sustained level, seconds; NaN while unknown. */
double ep_changepoint_healthy(const struct ep_changepoint *cp);

/* Relative noise assumed (sigma of log(value)); NaN while unknown. */
double ep_changepoint_noise(const struct ep_changepoint *cp);

/* Number of the open episode, 0 if the series is healthy or unknown. */
unsigned ep_changepoint_episode(const struct ep_changepoint *cp);

#endif
