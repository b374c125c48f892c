/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spikes.h - which spikes of a series are expected, because they are periodic.
 *
 * Checkpoints and evaluations make one iteration slow every so many. The rule
 * is kept simple: a period is known after three spikes at exactly equal
 * distances, or four whose distances differ by one iteration at most; from
 * then on a spike that comes a whole number of periods (up to
 * EP_SPIKES_MISSED) after the last expected one, give or take one iteration,
 * and is not more than EP_SPIKES_TALLER times as tall, is expected. Two
 * periods are kept, so a checkpoint and an evaluation can coexist.
 *
 * Random spikes are taken for periodic now and then: when 2 % of the
 * iterations are spikes, 3 % of them are hidden. They cost no correctness,
 * as a lasting change is judged without this module.
 */
#ifndef EP_DETECT_SPIKES_H
#define EP_DETECT_SPIKES_H

#include "base/archive.h"

#include <stdbool.h>

#define EP_SPIKES_HISTORY 8
#define EP_SPIKES_PERIODS 2
#define EP_SPIKES_MISSED 4
#define EP_SPIKES_TALLER 1.5
#define EP_SPIKES_MIN_PERIOD 3

struct ep_spikes_period {
    double length; /* iterations; 0: unused */
    double last;   /* position of the last expected spike */
    double height; /* log(peak / level), the tallest so far */
};

/* Saved by ep_spikes_archive. All zero is the state before the first spike. */
struct ep_spikes {
    double pos[EP_SPIKES_HISTORY]; /* latest first */
    double height[EP_SPIKES_HISTORY];
    unsigned n;
    struct ep_spikes_period period[EP_SPIKES_PERIODS]; /* latest first */
};

/*
 * Take a spike and say whether it was expected.
 *
 * pos     iteration at which it began; must grow from call to call
 * height  log(peak / level), > 0
 * Cost: O(1); no allocation.
 */
bool ep_spikes_expected(struct ep_spikes *s, double pos, double height);

/* Save or load it. */
void ep_spikes_archive(struct ep_archive *a, struct ep_spikes *s);

#endif
