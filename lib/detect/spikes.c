/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spikes.c - periodic spikes by looking for equal gaps in a short history.
 */
#include "config.h"

#include "detect/spikes.h"

#include <math.h>
#include <string.h>

/* Is pos on p's schedule? If so the schedule moves on to it. */
static bool on_schedule(struct ep_spikes_period *p, double pos, double height,
                        bool *tall)
{
    double k;

    if (p->length <= 0)
        return false;
    k = round((pos - p->last) / p->length);
    if (k < 1 || k > EP_SPIKES_MISSED ||
        fabs(pos - p->last - k * p->length) > 1)
        return false;
    *tall = height > p->height + log(EP_SPIKES_TALLER);
    p->last = pos;
    return true;
}

/* Is there a spike of the history within tol of pos? Its index, or -1. */
static int find(const struct ep_spikes *s, double pos, double tol)
{
    for (unsigned i = 0; i < s->n; i++)
        if (fabs(s->pos[i] - pos) <= tol)
            return (int)i;
    return -1;
}

/* Does a chain of "gaps" equal gaps of length g end at pos? */
static bool chain(const struct ep_spikes *s, double pos, double g, int gaps,
                  double tol, double *height)
{
    for (int k = 0; k < gaps; k++) {
        int i = find(s, pos - g, tol);

        if (i < 0)
            return false;
        pos = s->pos[i];
        *height = fmax(*height, s->height[i]);
    }
    return true;
}

static void learn(struct ep_spikes *s, double pos, double height)
{
    for (unsigned i = 0; i < s->n; i++) {
        double g = pos - s->pos[i];
        double tallest = height;

        if (g < EP_SPIKES_MIN_PERIOD)
            continue;
        if (!chain(s, pos, g, 2, 0, &tallest) &&
            !chain(s, pos, g, 3, 1, &tallest))
            continue;
        memmove(s->period + 1, s->period,
                (EP_SPIKES_PERIODS - 1) * sizeof *s->period);
        s->period[0].length = g;
        s->period[0].last = pos;
        s->period[0].height = tallest;
        return;
    }
}

bool ep_spikes_expected(struct ep_spikes *s, double pos, double height)
{
    bool expected = false;

    /* Where two schedules meet, both move on and the taller one counts. */
    for (unsigned i = 0; i < EP_SPIKES_PERIODS; i++) {
        bool tall = false;

        if (on_schedule(&s->period[i], pos, height, &tall))
            expected |= !tall;
    }
    if (expected)
        return true;
    learn(s, pos, height);
    if (s->n < EP_SPIKES_HISTORY)
        s->n++;
    memmove(s->pos + 1, s->pos, (s->n - 1) * sizeof *s->pos);
    memmove(s->height + 1, s->height, (s->n - 1) * sizeof *s->height);
    s->pos[0] = pos;
    s->height[0] = height;
    return false;
}

void ep_spikes_archive(struct ep_archive *a, struct ep_spikes *s)
{
    s->n = (unsigned)ep_archive_u64(a, s->n, EP_SPIKES_HISTORY);
    ep_archive_f64s(a, s->pos, s->n);
    ep_archive_f64s(a, s->height, s->n);
    for (unsigned i = 0; i < EP_SPIKES_PERIODS; i++) {
        struct ep_spikes_period *p = &s->period[i];

        p->length = ep_archive_f64(a, p->length);
        p->last = ep_archive_f64(a, p->last);
        p->height = ep_archive_f64(a, p->height);
    }
}
