/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - the pace of a job whose steps have unequal work; see work.h. */
#include "config.h"

#include "detect/work.h"

#include "base/stats.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define COUNT_MAX (UINT32_C(1) << 31)
#define SE_MEDIAN 1.2533141373155003 /* sqrt(pi / 2): of a median, in sigma */
#define AGREE 2.5                    /* standard errors */
#define NOISE_FLOOR 0.005

#define FORGET 0.98
#define BETA 0.8   /* before anything is known: mostly compute */
#define PRIOR 0.05 /* sxx that this counts for: one difference by 22 % */
#define SPREAD 0.05
#define HUBER 2.5
#define ABS_TO_SIGMA 1.2533141373155003

#define MOVES 16    /* steps that are looked at */
#define ENTER 6     /* moves among them: the work varies */
#define LEAVE 2     /* so few: it does no more */
#define FAR_OFF 0.3 /* logs: the reference is moved */
#define LEVEL_MIN 3 /* steps before which there is no level */

static bool moved(double a, double b)
{
    return !(fabs(a - b) <= EP_WORK_SAME);
}

static void count(uint32_t *n)
{
    *n += *n < COUNT_MAX;
}

/* ==== Where work varies: the slope ==== */

double ep_work_beta(const struct ep_work_slope *s)
{
    double b = (s->sxy + BETA * PRIOR) / (s->sxx + PRIOR);

    return fmin(fmax(b, 0), 1 + EP_WORK_ATTENTION);
}

static void learn(struct ep_work_slope *s, double dx, double dy)
{
    double r, sigma, weight;

    if (!(s->spread > 0))
        s->spread = SPREAD;
    sigma = fmax(ABS_TO_SIGMA * s->spread, NOISE_FLOOR);
    r = fabs(dy - ep_work_beta(s) * dx);
    weight = r <= HUBER * sigma ? 1 : HUBER * sigma / r;
    s->sxx = FORGET * s->sxx + weight * dx * dx;
    s->sxy = FORGET * s->sxy + weight * dx * dy;
    s->spread += 0.05 * (fmin(r, HUBER * sigma) - s->spread);
}

/*
 * One more step of that work (> 0) and duration. Logarithms are taken when the
 * work has moved only.
 */
static void follow(struct ep_work_slope *s, double amount, double dur)
{
    double x = amount == s->amount ? s->x : log(amount);
    bool move = s->joined && moved(x, s->x);

    if (move)
        learn(s, x - s->x, log(dur / s->dur));
    s->moves = s->moves << 1 | move;
    count(&s->n);
    s->mean += (x - s->mean) / (s->n < MOVES ? s->n : MOVES);
    s->amount = amount;
    s->x = x;
    s->dur = dur;
    s->joined = true;
}

static bool varies(const struct ep_work_slope *s, bool did)
{
    uint32_t bits = s->moves & ((UINT32_C(1) << MOVES) - 1);
    int n = __builtin_popcount(bits);

    return did ? n > LEAVE : n >= ENTER;
}

double ep_work_steady(struct ep_work_slope *s, double value, double amount)
{
    if (!(amount > 0)) {
        s->joined = false;
        return value;
    }
    follow(s, amount, value);
    return varies(s, false) ? value / exp(ep_work_beta(s) * (s->x - s->mean))
                            : value;
}

/* ==== Phases ==== */

static bool comparable(const struct ep_work_amount *a,
                       const struct ep_work_amount *b)
{
    return a->unit == b->unit && a->all > 0 && b->all > 0;
}

void ep_work_bounds(const struct ep_work_amount *a,
                    const struct ep_work_amount *b, double *lo, double *hi)
{
    double r, q = 0, more = 0;

    if (!comparable(a, b) || a->phase != b->phase) {
        *lo = (double)-INFINITY;
        *hi = (double)INFINITY;
        return;
    }
    r = log(b->all / a->all);
    if (a->one > 0 && b->one > 0)
        q = log(b->one / a->one);
    if (!b->complete)
        more = copysign(log1p(EP_WORK_ATTENTION * expm1(fabs(q))), q);
    *lo = fmin(fmin(0, r + fmin(more, 0)), q + fmin(more, 0)) -
          log1p(EP_WORK_SLACK);
    *hi = fmax(fmax(0, r + fmax(more, 0)), q + fmax(more, 0)) +
          log1p(EP_WORK_SLACK);
}

static bool same(const struct ep_work_amount *a, const struct ep_work_amount *b)
{
    if (a->phase != b->phase && a->phase && b->phase)
        return false;
    if (!comparable(a, b))
        return true; /* not known to be another */
    return !moved(log(a->all), log(b->all)) &&
           !(a->one > 0 && b->one > 0 && moved(log(a->one), log(b->one)));
}

/* The last n values that were given out, n <= what there is. */
static double recent_median(const struct ep_work *w, uint32_t n)
{
    double v[EP_WORK_RECENT];

    for (uint32_t i = 0; i < n; i++)
        v[i] = w->recent[(w->n - 1 - i) % EP_WORK_RECENT];
    return ep_median(v, n);
}

static uint32_t stored(const struct ep_work *w)
{
    return w->n < EP_WORK_RECENT ? w->n : EP_WORK_RECENT;
}

/* Noise, by successive differences: a change of level spoils one. */
static double noise(const struct ep_work *w)
{
    double v[EP_WORK_RECENT];
    uint32_t n = stored(w), k = 0;

    for (uint32_t i = 0; i + 1 < n; i++)
        v[k++] = w->recent[(w->n - 1 - i) % EP_WORK_RECENT] -
                 w->recent[(w->n - 2 - i) % EP_WORK_RECENT];
    if (k < 2)
        return NOISE_FLOOR;
    return fmax(EP_MAD_TO_SIGMA * ep_mad(v, k, 0) / M_SQRT2, NOISE_FLOOR);
}

static bool agrees(double d, double sigma, uint32_t n, uint32_t m)
{
    return fabs(d) <= AGREE * SE_MEDIAN * sigma * sqrt(1.0 / n + 1.0 / m);
}

/* The present level: of as many values as agree with the last five. */
static double level_of(const struct ep_work *w)
{
    uint32_t have = stored(w), n = have < 5 ? have : 5;
    double level = recent_median(w, n), sigma = noise(w);

    for (uint32_t m = 2 * n; m <= have && m > n; m *= 2) {
        double x = recent_median(w, m);

        if (!agrees(x - level, sigma, n, m))
            break;
        level = x;
        n = m;
    }
    return level;
}

static double clip(double x, double lo, double hi)
{
    return fmin(fmax(x, lo), hi);
}

static void give(struct ep_work *w, const struct ep_work_step *s, double scale,
                 struct ep_work_step *out)
{
    double y = log(s->dur) - scale;

    *out = *s;
    out->scale = exp(scale);
    out->dur = s->dur / out->scale;
    w->recent[w->n % EP_WORK_RECENT] = y;
    count(&w->n);
    if (w->n == COUNT_MAX) /* the ring goes on where it was */
        w->n = COUNT_MAX - EP_WORK_RECENT;
}

/* Keep the scale of the present phase for its return. */
static void remember(struct ep_work *w)
{
    uint32_t n = w->nknown < EP_WORK_LEVELS ? w->nknown : EP_WORK_LEVELS;

    for (uint32_t i = 0; i < n; i++)
        if (same(&w->known[i].work, &w->now.work)) {
            w->known[i] = w->now;
            return;
        }
    w->known[w->nknown % EP_WORK_LEVELS] = w->now;
    count(&w->nknown);
}

static const struct ep_work_level *recall(const struct ep_work *w,
                                          const struct ep_work_amount *work)
{
    uint32_t n = w->nknown < EP_WORK_LEVELS ? w->nknown : EP_WORK_LEVELS;

    for (uint32_t i = 0; i < n; i++)
        if (same(&w->known[i].work, work) &&
            (comparable(&w->known[i].work, work) || work->phase))
            return &w->known[i];
    return NULL;
}

/* The steps held back are no phase: as near to the level as work allows. */
static uint32_t give_interlude(struct ep_work *w, struct ep_work_step *out)
{
    uint32_t n = w->nheld;
    double level = w->n >= LEVEL_MIN ? level_of(w) : (double)NAN;

    for (uint32_t i = 0; i < n; i++) {
        const struct ep_work_step *s = &w->held[i];
        double d = log(s->dur) - w->now.scale - level, lo, hi;

        ep_work_bounds(&w->now.work, &s->work, &lo, &hi);
        give(w, s, w->now.scale + (isnan(d) ? 0 : clip(d, lo, hi)), &out[i]);
    }
    w->nheld = 0;
    return n;
}

/* The steps held back are a phase: learn its scale. */
static uint32_t give_phase(struct ep_work *w, struct ep_work_step *out)
{
    double v[EP_WORK_HOLD], d, lo, hi, was = w->now.scale;
    uint32_t n = w->nheld;

    remember(w);
    for (uint32_t i = 0; i < n; i++)
        v[i] = log(w->held[i].dur);
    w->settled = 0;
    if (w->n >= LEVEL_MIN) {
        w->level = level_of(w);
        d = ep_median(v, n) - was - w->level;
        ep_work_bounds(&w->now.work, &w->held[n - 1].work, &lo, &hi);
        w->lo = was + lo;
        w->hi = was + hi;
        w->now.scale = was + clip(d, lo, hi);
        w->settled = d >= lo && d <= hi ? n : 0;
    }
    w->now.work = w->held[n - 1].work;
    for (uint32_t i = 0; i < n; i++)
        give(w, &w->held[i], w->now.scale, &out[i]);
    w->since = n;
    w->nheld = 0;
    return n;
}

/* As a phase grows, let its scale rest on more steps. */
static void refine(struct ep_work *w)
{
    uint32_t n = w->since;
    double d;

    if (!w->settled || (n != 10 && n != 20 && n != EP_WORK_RECENT))
        return;
    d = recent_median(w, n) - w->level;
    if (!agrees(d, noise(w), w->settled, n)) {
        w->settled = 0; /* something else has happened */
        return;
    }
    d = clip(w->now.scale + d, w->lo, w->hi) - w->now.scale;
    w->now.scale += d;
    for (uint32_t i = 0; i < n; i++)
        w->recent[(w->n - 1 - i) % EP_WORK_RECENT] -= d;
    w->settled = n;
}

static uint32_t give_now(struct ep_work *w, const struct ep_work_step *s,
                         struct ep_work_step *out)
{
    give(w, s, w->now.scale, out);
    count(&w->since);
    refine(w);
    return 1;
}

/* ==== Both ==== */

static double most_of(const struct ep_work_amount *a)
{
    return a->most > 0 ? a->most : a->all;
}

static double varying_scale(struct ep_work *w, double x)
{
    double beta = ep_work_beta(&w->slope);

    if (w->n < MOVES) {
        w->reference = w->slope.mean;
    } else if (fabs(w->slope.mean - w->reference) > FAR_OFF) {
        w->now.scale += beta * (w->slope.mean - w->reference);
        w->reference = w->slope.mean;
    }
    return w->now.scale + beta * (x - w->reference);
}

static uint32_t push_varying(struct ep_work *w, const struct ep_work_step *s,
                             struct ep_work_step *out)
{
    double x = w->slope.x, scale = varying_scale(w, x);

    if (!varies(&w->slope, true)) {
        w->varying = false;
        w->now = (struct ep_work_level){s->work, scale};
        w->nknown = w->settled = w->since = 0;
    }
    give(w, s, scale, out);
    return 1;
}

/* From here on the work varies: what was held back is judged by the slope. */
static uint32_t begin_varying(struct ep_work *w, const struct ep_work_step *s,
                              struct ep_work_step *out)
{
    uint32_t n = w->nheld;

    w->varying = true;
    w->reference = log(most_of(&w->now.work));
    for (uint32_t i = 0; i < n; i++)
        give(w, &w->held[i], varying_scale(w, log(most_of(&w->held[i].work))),
             &out[i]);
    w->nheld = 0;
    return n + push_varying(w, s, out + n);
}

static uint32_t push_other(struct ep_work *w, const struct ep_work_step *s,
                           struct ep_work_step *out)
{
    const struct ep_work_level *known = recall(w, &s->work);
    uint32_t n = 0;

    if (w->nheld && (known || !same(&w->held[0].work, &s->work)))
        n = give_interlude(w, out);
    if (known) {
        struct ep_work_level next = {s->work, known->scale};

        remember(w);
        w->now = next;
        w->since = w->settled = 0;
        return n + give_now(w, s, out + n);
    }
    w->held[w->nheld++] = *s;
    return w->nheld == EP_WORK_HOLD ? give_phase(w, out) : n;
}

uint32_t ep_work_push(struct ep_work *w, const struct ep_work_step *s,
                      struct ep_work_step out[EP_WORK_HOLD])
{
    const struct ep_work_amount *now = &w->now.work;
    bool known = s->work.all > 0;
    uint32_t n;

    if (!w->begun ||
        (known && (!(now->all > 0) || now->unit != s->work.unit))) {
        n = give_interlude(w, out);
        w->begun = true;
        w->varying = false;
        w->now.work = s->work;
        w->slope.joined = false;
        if (known)
            follow(&w->slope, most_of(&s->work), s->dur);
        return n + give_now(w, s, out + n);
    }
    if (!now->phase)
        w->now.work.phase = s->work.phase;
    if (known)
        follow(&w->slope, most_of(&s->work), s->dur);
    else
        w->slope.joined = false;
    if (known && w->varying)
        return push_varying(w, s, out);
    if (known && varies(&w->slope, false))
        return begin_varying(w, s, out);
    if (!same(now, &s->work))
        return push_other(w, s, out);
    n = give_interlude(w, out);
    return n + give_now(w, s, out + n);
}

uint32_t ep_work_flush(struct ep_work *w, struct ep_work_step out[EP_WORK_HOLD])
{
    return give_interlude(w, out);
}
