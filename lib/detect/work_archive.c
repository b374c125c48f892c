/* SPDX-License-Identifier: Apache-2.0 */
/* work_archive.c - what is known of work in bytes; see base/archive.h. */
#include "config.h"

#include "detect/work.h"

#include <math.h>

#define COUNT_MAX (UINT32_C(1) << 31)
#define STEP_MAX (INT64_C(1) << 53)
#define UNIT_MAX 3

static uint32_t count(struct ep_archive *a, uint32_t n, uint32_t max)
{
    return (uint32_t)ep_archive_u64(a, n, max);
}

/* Nothing is known of most: one byte. */
void ep_work_slope_archive(struct ep_archive *a, struct ep_work_slope *s)
{
    if (!ep_archive_bool(a, s->n > 0))
        return;
    s->sxx = ep_archive_f64(a, s->sxx);
    s->sxy = ep_archive_f64(a, s->sxy);
    s->spread = ep_archive_f64(a, s->spread);
    s->amount = ep_archive_f64(a, s->amount);
    s->dur = ep_archive_f64(a, s->dur);
    s->x = ep_archive_f64(a, s->x);
    s->mean = ep_archive_f64(a, s->mean);
    s->moves = count(a, s->moves, UINT32_MAX);
    s->n = count(a, s->n, COUNT_MAX);
    s->joined = ep_archive_bool(a, s->joined);
    ep_archive_require(a, s->n > 0, "a slope rests on no steps");
}

static void amount(struct ep_archive *a, struct ep_work_amount *x)
{
    x->phase = ep_archive_i64(a, x->phase, INT64_MIN, INT64_MAX);
    if (!ep_archive_bool(a, x->unit || x->all != 0))
        return;
    x->unit = count(a, x->unit, UNIT_MAX);
    x->complete = ep_archive_bool(a, x->complete);
    x->all = ep_archive_finite(a, x->all);
    x->one = ep_archive_finite(a, x->one);
    x->most = ep_archive_finite(a, x->most);
}

static void level(struct ep_archive *a, struct ep_work_level *l)
{
    amount(a, &l->work);
    l->scale = ep_archive_f64(a, l->scale);
}

static void held(struct ep_archive *a, struct ep_work_step *s)
{
    s->step = ep_archive_i64(a, s->step, -1, STEP_MAX);
    s->n = ep_archive_i64(a, s->n, 0, INT64_MAX / 2);
    s->ts = ep_archive_finite(a, s->ts);
    s->end = ep_archive_finite(a, s->end);
    s->dur = ep_archive_finite(a, s->dur);
    s->scale = ep_archive_f64(a, s->scale);
    amount(a, &s->work);
    ep_archive_require(a, s->dur > 0, "a step that waits took no time");
}

static uint32_t least(uint32_t n, uint32_t most)
{
    return n < most ? n : most;
}

void ep_work_archive(struct ep_archive *a, struct ep_work *w)
{
    w->begun = ep_archive_bool(a, w->begun);
    if (!w->begun)
        return;
    w->varying = ep_archive_bool(a, w->varying);
    level(a, &w->now);
    w->nknown = count(a, w->nknown, COUNT_MAX);
    for (uint32_t i = 0; i < least(w->nknown, EP_WORK_LEVELS); i++)
        level(a, &w->known[i]);
    w->reference = ep_archive_f64(a, w->reference);
    ep_work_slope_archive(a, &w->slope);
    w->n = count(a, w->n, COUNT_MAX - 1);
    w->since = count(a, w->since, COUNT_MAX);
    ep_archive_require(a, w->since <= w->n || w->n >= EP_WORK_RECENT,
                       "a phase has more steps than there were");
    w->settled = count(a, w->settled, EP_WORK_RECENT);
    for (uint32_t i = 0; i < least(w->n, EP_WORK_RECENT); i++)
        w->recent[i] = ep_archive_f64(a, w->recent[i]);
    w->level = ep_archive_f64(a, w->level);
    w->lo = ep_archive_f64(a, w->lo);
    w->hi = ep_archive_f64(a, w->hi);
    w->nheld = count(a, w->nheld, EP_WORK_HOLD - 1);
    for (uint32_t i = 0; i < w->nheld && ep_archive_ok(a); i++)
        held(a, &w->held[i]);
}
