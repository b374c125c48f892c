/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - time as a value that tests can inject.
 *
 * A module that needs the time takes a struct ep_clock by const pointer and
 * never calls clock_gettime itself.
 */
#ifndef EP_BASE_CLOCK_H
#define EP_BASE_CLOCK_H

struct ep_clock {
    double (*now)(void *ctx); /* seconds */
    void *ctx;
};

/* Seconds since the epoch (CLOCK_REALTIME): for the ts of records. */
extern const struct ep_clock ep_clock_wall;

/* Seconds since some start (CLOCK_MONOTONIC): for durations. */
extern const struct ep_clock ep_clock_mono;

double ep_clock_now(const struct ep_clock *clock);

#endif
