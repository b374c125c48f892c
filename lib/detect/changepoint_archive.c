/* SPDX-License-Identifier: Apache-2.0 */
/* changepoint_archive.c - a change-point tracker in bytes; see base/archive.h. */
#include "config.h"

#include "detect/changepoint_impl.h"

#include <math.h>

static void level(struct ep_archive *a, struct level *l)
{
    l->x = ep_archive_finite(a, l->x);
    l->n = (unsigned)ep_archive_u64(a, l->n, EP_RING);
}

static void spike(struct ep_archive *a, struct ep_changepoint *cp)
{
    cp->spike_n = (unsigned)ep_archive_u64(a, cp->spike_n, EP_RING);
    cp->spike_peak = ep_archive_finite(a, cp->spike_peak);
    cp->spike_pos = ep_archive_finite(a, cp->spike_pos);
    cp->spike_ts = ep_archive_finite(a, cp->spike_ts);
    cp->spike_step = ep_archive_i64(a, cp->spike_step, -1, INT64_MAX);
    ep_spikes_archive(a, &cp->spikes);
}

/* The samples; of those that were overwritten nothing is asked any more. */
static void ring(struct ep_archive *a, struct ep_changepoint *cp)
{
    unsigned n = cp->total < EP_RING ? (unsigned)cp->total : EP_RING;

    for (unsigned i = 0; i < n; i++) {
        cp->x[i] = ep_archive_finite(a, cp->x[i]);
        cp->ts[i] = ep_archive_finite(a, cp->ts[i]);
        cp->step[i] = ep_archive_i64(a, cp->step[i], -1, INT64_MAX);
    }
}

void ep_changepoint_archive(struct ep_archive *a, struct ep_changepoint *cp)
{
    cp->total = ep_archive_u64(a, cp->total, INT64_MAX);
    cp->state = (enum state)ep_archive_u64(a, cp->state, SLOW);
    cp->episode = (unsigned)ep_archive_u64(a, cp->episode, UINT32_MAX);
    level(a, &cp->best);
    level(a, &cp->mark);
    cp->sigma = ep_archive_finite(a, cp->sigma);
    cp->seg = (unsigned)ep_archive_u64(a, cp->seg, cp->c.window);
    cp->proposal = (unsigned)ep_archive_u64(a, cp->proposal, EP_RING);
    cp->up = ep_archive_f64(a, cp->up);
    cp->down = ep_archive_f64(a, cp->down);
    cp->hi = ep_archive_u64(a, cp->hi, UINT64_MAX);
    cp->lo = ep_archive_u64(a, cp->lo, UINT64_MAX);
    cp->low = ep_archive_u64(a, cp->low, UINT64_MAX);
    cp->near = ep_archive_u64(a, cp->near, UINT64_MAX);
    cp->left_ts = ep_archive_finite(a, cp->left_ts);
    cp->left_step = ep_archive_i64(a, cp->left_step, -1, INT64_MAX);
    cp->pos = ep_archive_finite(a, cp->pos);
    spike(a, cp);
    ring(a, cp);
    ep_bocd_archive(a, cp->bocd);
    ep_archive_require(a, !isnan(cp->up) && !isnan(cp->down) && cp->sigma > 0,
                       "a threshold or the noise is no number");
    ep_archive_require(a, cp->seg <= cp->total && (!cp->state || cp->best.n),
                       "more samples are counted than there were");
}
