/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - see clock.h. */
#include "config.h"

#include "base/clock.h"

#include <stddef.h>
#include <time.h>

static double read_clock(clockid_t id)
{
    struct timespec ts;

    if (clock_gettime(id, &ts) != 0) /* only for an id that does not exist */
        return 0;
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static double now_wall(void *ctx)
{
    (void)ctx;
    return read_clock(CLOCK_REALTIME);
}

static double now_mono(void *ctx)
{
    (void)ctx;
    return read_clock(CLOCK_MONOTONIC);
}

const struct ep_clock ep_clock_wall = {now_wall, NULL};
const struct ep_clock ep_clock_mono = {now_mono, NULL};

double ep_clock_now(const struct ep_clock *clock)
{
    return clock->now(clock->ctx);
}
