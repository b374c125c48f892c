/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch_comms.c - a watch that asks comms.h where communication is slow. Apart
 * from the rest, so that who has no calls does not link it.
 */
#include "config.h"

#include "detect/comms.h"
#include "detect/watch_impl.h"

void ep_watch_use_comms(struct ep_watch *w, struct ep_comms *c)
{
    w->comms = c;
    w->locate = ep_comms_locate;
}
