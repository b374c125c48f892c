/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_fit.h - clocks of hosts from events that all of them saw at once.
 *
 * Host h reads y at the common time T:
 *     T = y - offset_h - rate_h (y - t0).
 * Each event gives readings of some hosts; nothing else is known of its T. One
 * host of each group (hosts that events join, directly or through others)
 * starts as the clock of all; hosts that share events with known ones become
 * known, until no more do. Then, over and over, each reading is compared with
 * the middle one of the corrected readings of the event's other hosts, and each
 * host's line is moved: by a Theil-Sen slope [1] over at most 32 windows'
 * medians, and the median of what is left. Medians, because a few events are no
 * such thing (a number that was used twice, a record of another run), because
 * hosts that lag in some events must not move the others, and because chance is
 * skewed: an end is late by a tail, never early. The host itself is left out:
 * in events of three it is the middle one every third time, and a line that is
 * a little wrong would stay where it is.
 *
 * In the end the clocks are made relative to the host nearest to the median of
 * its group, so that one wrong clock stays one wrong clock, and rates that are
 * not significant become 0.
 *
 * [1] Sen, "Estimates of the regression coefficient based on Kendall's tau",
 *     Journal of the American Statistical Association 63 (1968).
 */
#ifndef EP_RECORD_CLOCK_FIT_H
#define EP_RECORD_CLOCK_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Host's reading at an event. */
struct ep_clock_reading {
    double y; /* s */
    uint32_t event, host;
};

/* What is known of a host's clock. */
struct ep_clock_line {
    double offset;  /* s ahead of the reference when it itself shows t0 */
    double rate;    /* s per s; 0 if it is not significant */
    double t0;      /* s, a reading of the clock; one per group */
    double error;   /* standard error of offset, s, against those with which
                       it shares events; along a chain of hosts these add up */
    double spread;  /* MAD of single readings from the line, s */
    uint64_t n;     /* events that tell */
    uint32_t group; /* 0, 1, ...; of hosts without n: no meaning */
    bool known;     /* false: no event with another host */
    bool reference; /* of its group */
};

/*
 * Fit lines[nhosts].
 *
 * r        [n] borrowed, reordered: at return by host, then y
 * nevents  event and host of all r are below nevents and nhosts; an event has
 *          at most one reading of each host
 * lines    [nhosts] written
 * Returns the number of groups. Cost: about a dozen passes of O(n); memory
 * about 40 bytes per reading.
 */
size_t ep_clock_fit(struct ep_clock_reading *r, size_t n, size_t nevents,
                    size_t nhosts, struct ep_clock_line *lines);

/* A reading on the reference's clock; as it is if the line is not known. */
double ep_clock_line_correct(const struct ep_clock_line *line, double y);

/*
 * Seconds that the clock is ahead when the reference shows t0 (T = t0 above):
 *     y - t0 = offset / (1 - rate).
 * This and not offset is for people: of a clock that is 30 years behind and 3
 * ppm fast, offset is where its line is 30 years later, and off by 47 minutes.
 */
double ep_clock_line_ahead(const struct ep_clock_line *line);

#endif
