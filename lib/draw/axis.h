/* SPDX-License-Identifier: Apache-2.0 */
/*
 * axis.h - where the ticks of an axis are and what stands at them.
 *
 * Linear axes have steps of 1, 2 or 5 times a power of ten [1]: of those the
 * smallest that gives no more ticks than there is room for. One prefix of the
 * SI serves a whole axis. Axes of time count in what clocks have (1, 2, 5, 10,
 * 15, 30 s and min, 1, 2, 3, 6, 12 h, days), on the local clock (TZ).
 * Times before 1973 are no dates but time since
 * the start of something (a simulation), as are those beyond the year 5138.
 *
 * [1] P. S. Heckbert, "Nice numbers for graph labels", Graphics Gems, 1990.
 */
#ifndef EP_DRAW_AXIS_H
#define EP_DRAW_AXIS_H

#include "base/buf.h"

#include <stdbool.h>

enum ep_axis_kind {
    EP_AXIS_LINEAR,
    EP_AXIS_INTEGER, /* linear, ticks at whole numbers only */
    EP_AXIS_LOG,     /* lo > 0 */
    EP_AXIS_TIME,    /* seconds since the epoch, or since a start */
};

enum { EP_TICKS = 24 };

/* Values of larger magnitude are drawn as this one, lest sums overflow. */
#define EP_DRAW_LARGEST 1e300

struct ep_tick {
    double at; /* in the axis' own values */
    char label[24];
};

/* Read-only; a value type. */
struct ep_axis {
    enum ep_axis_kind kind;
    double lo, hi; /* values at the ends, lo < hi */
    int n;
    struct ep_tick tick[EP_TICKS]; /* lo <= at <= hi, rising */
    char unit[48]; /* "ms", "min", "2026-11-30, local time"; "" for none */
};

/*
 * Make an axis over [lo, hi] (finite, lo <= hi; an empty range is widened)
 * with at most ticks labels (2..EP_TICKS).
 *
 * unit    of the values: "s", "B/s", ...; "" for none; not used by time
 * loose   move the ends out to the next tick (linear and log)
 * A log axis whose range is not above 0 becomes linear.
 * Cost: O(ticks).
 */
void ep_axis_init(struct ep_axis *a, enum ep_axis_kind kind, double lo,
                  double hi, int ticks, const char *unit, bool loose);

/* 0 at lo, 1 at hi; what is outside is taken to the nearer end. */
double ep_axis_pos(const struct ep_axis *a, double v);

/* Is ts a date (1973 to 5138), not the time since a start? */
bool ep_axis_is_date(double ts);

/*
 * The factor of the SI prefix (n to E; for seconds none above 1) that suits
 * values up to max, and its letter in *prefix (static). Without unit, and out
 * of that range: 1 and "".
 */
double ep_axis_prefix(double max, const char *unit, const char **prefix);

/* A time for people: "2026-11-30 22:14:03", or "3.2 h" since the start. */
void ep_axis_add_time(struct ep_buf *b, double ts);

/* A value with its unit, three digits: "1.41 s", "12 GB/s", "1.97". */
void ep_axis_add_value(struct ep_buf *b, double v, const char *unit);

#endif
