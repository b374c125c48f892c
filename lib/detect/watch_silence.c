/* SPDX-License-Identifier: Apache-2.0 */
/* watch_silence.c - signs of life, and the clock; see watch.h. */
#include "config.h"

#include "detect/watch_impl.h"

int ep_watch_sign(struct ep_watch *w, const struct ep_sign *x,
                  struct ep_error *err)
{
    return ep_silence_take(w->silence, x, err);
}

void ep_watch_tick(struct ep_watch *w, double now)
{
    ep_silence_tick(w->silence, now);
}
