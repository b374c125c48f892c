/* SPDX-License-Identifier: Apache-2.0 */
/*
 * changepoint.c - the state machine described in changepoint.h.
 *
 * The last EP_RING samples are kept in a ring. What is tested at every push is
 * one bit per sample ("beyond the upper threshold" and so on) in 64-bit masks:
 * "the median of the last n is beyond" is then a popcount, and medians are only
 * computed when one says so. The masks hold the present segment (since the last
 * event) and are rebuilt when a threshold moves.
 *
 * "Back" is how many samples ago: back 0 is the latest. All levels are logs.
 */
#include "config.h"

#include "detect/changepoint_impl.h"

#include "base/mem.h"
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SE_MEDIAN 1.2533141373155003 /* sqrt(pi / 2): of a median, in sigma */
#define WARMUP_SCATTER 0.15          /* sigma of a level, at most */
#define WARMUP_MAX 32                /* samples: then a level is a level */
#define SPIKE_SIGMAS 6.0
#define SCATTERED_MIN 5 /* samples judged by their own scatter */
#define Z_SCATTERED 3.0 /* its standard errors */
#define UNSURE 1.645    /* standard errors: one in twenty */
#define NOISE_EVERY 32  /* samples between two estimates of the noise */
#define BOCD_WINDOW 32  /* run lengths: proposals need no more */
#define BOCD_KAPPA 0.05 /* prior: new levels lie within some 5 sigma ... */
#define BOCD_ALPHA 1.0
#define BOCD_BETA 4e-4 /* ... of the present one, and sigma is about 2 % */

static unsigned slot(const struct ep_changepoint *cp, unsigned back)
{
    return (unsigned)((cp->total - 1 - back) % EP_RING);
}

static unsigned stored(const struct ep_changepoint *cp)
{
    return cp->total < cp->c.window ? (unsigned)cp->total : cp->c.window;
}

/* Copy the n samples that begin at back (going into the past). */
static void copy(const struct ep_changepoint *cp, unsigned back, unsigned n,
                 double *v)
{
    for (unsigned i = 0; i < n; i++)
        v[i] = cp->x[slot(cp, back + i)];
}

static double median(const struct ep_changepoint *cp, unsigned back, unsigned n)
{
    double v[EP_RING];

    copy(cp, back, n, v);
    return ep_median(v, n);
}

/* Robust standard deviation of n samples, on the safe side if they are few. */
static double scatter(const struct ep_changepoint *cp, unsigned back,
                      unsigned n)
{
    double v[EP_RING];
    double centre = median(cp, back, n), s;

    copy(cp, back, n, v);
    s = EP_MAD_TO_SIGMA * ep_mad(v, n, centre) * (1 + 5.0 / n);
    return fmax(s, cp->c.noise_floor);
}

/* The same of the differences from one sample to the next: a ramp has none. */
static double jitter(const struct ep_changepoint *cp, unsigned n)
{
    double v[EP_RING];

    for (unsigned i = 0; i + 1 < n; i++)
        v[i] = cp->x[slot(cp, i)] - cp->x[slot(cp, i + 1)];
    return EP_MAD_TO_SIGMA * ep_mad(v, n - 1, 0) / M_SQRT2;
}

static unsigned count(uint64_t mask, unsigned n)
{
    if (n < 64)
        mask &= (UINT64_C(1) << n) - 1;
    return (unsigned)__builtin_popcountll(mask);
}

static double standard_error(double sigma, unsigned n, unsigned m)
{
    return SE_MEDIAN * sigma * sqrt(1.0 / n + 1.0 / m);
}

/* Below what is a sample evidence for a better level? */
static double low_threshold(const struct ep_changepoint *cp)
{
    return cp->best.x - fmax(0.01, cp->sigma);
}

static void shift_masks(struct ep_changepoint *cp, double x)
{
    cp->hi = cp->hi << 1 | (x >= cp->up);
    cp->lo = cp->lo << 1 | (x <= cp->down);
    cp->low = cp->low << 1 | (x < low_threshold(cp));
    cp->near = cp->near << 1 | (x <= cp->best.x + cp->min_log / 4);
}

/* Thresholds from best and mark; the masks of the segment from its samples. */
static void set_thresholds(struct ep_changepoint *cp)
{
    double slow = cp->best.x + cp->min_log;
    double mark = cp->mark.x;

    if (cp->state == SLOW) {
        cp->up = mark + cp->min_log;
        cp->down = fmax(mark - cp->min_log, fmin(mark - cp->min_log / 2, slow));
    } else {
        cp->up = fmax(slow, mark + cp->min_log / 2);
        cp->down = -INFINITY;
    }
    cp->hi = cp->lo = cp->low = cp->near = 0;
    for (unsigned back = cp->seg; back-- > 0;)
        shift_masks(cp, cp->x[slot(cp, back)]);
}

static void set_best(struct ep_changepoint *cp, double x, unsigned n)
{
    cp->best = (struct level){x, n};
    if (cp->state == HEALTHY)
        cp->mark = cp->best;
    set_thresholds(cp);
}

/* Leave the warm-up when the last samples agree on a level. */
static void try_establish(struct ep_changepoint *cp)
{
    unsigned n = cp->c.settle;

    if (cp->total < n)
        return;
    if (cp->total < WARMUP_MAX) {
        double early = median(cp, n - n / 2, n / 2);
        double late = median(cp, 0, n / 2);

        if (early - late > cp->min_log ||
            scatter(cp, 0, n) / (1 + 5.0 / n) > WARMUP_SCATTER)
            return;
    }
    cp->sigma = scatter(cp, 0, n);
    cp->seg = n;
    cp->state = HEALTHY;
    cp->left_ts = cp->ts[slot(cp, n - 1)];
    cp->left_step = cp->step[slot(cp, n - 1)];
    set_best(cp, median(cp, 0, n), n);
}

/* Estimate the noise from the samples of the segment older than back. */
static double noise(struct ep_changepoint *cp, unsigned back)
{
    if (cp->seg >= back + 16)
        cp->sigma = scatter(cp, back, cp->seg - back);
    return cp->sigma;
}

/* As the segment grows, let its level rest on more samples. */
static void refine(struct ep_changepoint *cp)
{
    struct level *l =
        cp->state == SLOW || cp->mark.x != cp->best.x ? &cp->mark : &cp->best;
    double x;

    if (cp->seg <= l->n)
        return;
    x = median(cp, 0, cp->seg);
    if (fabs(x - l->x) > 2.5 * standard_error(cp->sigma, l->n, cp->seg))
        return;
    *l = (struct level){x, cp->seg};
    if (l == &cp->best)
        cp->mark = cp->best;
    set_thresholds(cp);
}

/*
 * While healthy: a significantly better level that lasts replaces the best
 * one, and the mark of the last relief is forgotten when the series is back
 * at the best level.
 */
static void check_best(struct ep_changepoint *cp)
{
    for (unsigned n = cp->c.settle; n <= cp->seg; n *= 2) {
        double x, se;

        if (count(cp->low, n) <= n / 2)
            continue;
        x = median(cp, 0, n);
        se = standard_error(fmax(noise(cp, n), scatter(cp, 0, n)), n,
                            cp->best.n);
        if (cp->best.x - x < fmax(0.01, cp->c.z * se))
            continue;
        cp->seg = n;
        set_best(cp, x, n);
        return;
    }
    if (cp->mark.x != cp->best.x && count(cp->near, 16) >= 12) {
        cp->mark = cp->best;
        set_thresholds(cp);
    }
}

/*
 * Where did the last n samples come to the level "to" from "from"? The split
 * that a step fits best: the largest sum of the deviations from the midpoint,
 * each cut at half the step. Returns the length of the new part.
 */
static unsigned find_step(const struct ep_changepoint *cp, double from,
                          double to)
{
    double mid = (from + to) / 2, half = fabs(to - from) / 2;
    double sum = 0, top = -INFINITY;
    unsigned best = 1;

    for (unsigned back = 0; back < cp->seg; back++) {
        double d = cp->x[slot(cp, back)] - mid;

        sum += fmax(-half, fmin(half, to > from ? d : -d));
        if (sum > top) {
            top = sum;
            best = back + 1;
        }
    }
    return best;
}

/* A change that passed verification. */
struct verdict {
    int dir;          /* +1 slower, -1 faster */
    unsigned n;       /* samples at the new level */
    struct level ref; /* what it was compared with */
    double level;
    double p;
};

/*
 * Few samples have to agree: no transition, no chance row of spikes. Or, if it
 * is the slow-down that scatters (pauses), all lie far out; *z is then what
 * their own scatter has to leave.
 */
static bool agree(const struct ep_changepoint *cp, unsigned n,
                  const struct verdict *v, double change, double sigma,
                  double *z)
{
    double lo = INFINITY, hi = -INFINITY;

    for (unsigned i = 0; i < n; i++) {
        lo = fmin(lo, cp->x[slot(cp, i)]);
        hi = fmax(hi, cp->x[slot(cp, i)]);
    }
    if (hi - lo <= fmax(fabs(change) / 4, 4.5 * sigma))
        return true;
    *z = Z_SCATTERED;
    return n >= SCATTERED_MIN && cp->state == HEALTHY &&
           lo >= fmax(cp->up, v->ref.x + SPIKE_SIGMAS * sigma);
}

static bool verify(struct ep_changepoint *cp, unsigned n, struct verdict *v)
{
    double after = median(cp, 0, n), sigma = noise(cp, n);
    double own = scatter(cp, 0, n), change, z, enough = cp->c.z;

    v->ref = cp->state == SLOW || cp->mark.x > cp->best.x ? cp->mark : cp->best;
    change = after - v->ref.x;
    if (v->dir > 0 ? after < cp->up : after > cp->down)
        return false;
    /* a slow-down that scatters itself: is its median beyond the threshold? */
    if (v->dir > 0 && n >= SCATTERED_MIN && jitter(cp, n) > 2 * sigma &&
        after - UNSURE * SE_MEDIAN * own / sqrt(n) < cp->up)
        return false;
    if (n < cp->c.settle && (cp->proposal > n + cp->c.lag ||
                             !agree(cp, n, v, change, sigma, &enough)))
        return false;
    if (n >= cp->c.settle || enough < cp->c.z)
        sigma = fmax(sigma, own);
    z = fabs(change) / standard_error(sigma, n, v->ref.n);
    if (z < enough)
        return false;
    v->n = find_step(cp, v->ref.x, after);
    v->level = median(cp, 0, v->n);
    if (v->dir > 0 ? v->level < cp->up : v->level > cp->down) {
        v->n = n;
        v->level = after;
    }
    v->p = ep_bocd_mass(cp->bocd, v->n + cp->c.lag);
    if (v->n + cp->c.lag >= BOCD_WINDOW - 1 || v->p < cp->c.propose)
        v->p = erf(z / M_SQRT2); /* older than BOCD sees, or not seen by it */
    return true;
}

/* Try the windows, shortest first. */
static bool check_change(struct ep_changepoint *cp, uint64_t mask,
                         struct verdict *v)
{
    unsigned n = cp->c.confirm;

    while (n <= cp->seg) {
        unsigned need = n < cp->c.settle ? n - n / 4 : n / 2 + 1;

        if (need < cp->c.confirm)
            need = cp->c.confirm;
        if (count(mask, n) >= need && verify(cp, n, v))
            return true;
        n += n < cp->c.settle ? 1 : (n + 1) / 2;
    }
    return false;
}

/*
 * First sample of the change: a step's transition belongs to it (two samples
 * at most); a ramp begins where the best level was left.
 */
static void backdate(const struct ep_changepoint *cp, const struct verdict *v,
                     double before, struct ep_change *e)
{
    double enough = fmax(cp->min_log / 2, 4 * cp->sigma);
    unsigned n = v->n;

    while (n < cp->seg && n < v->n + 2 &&
           v->dir * (cp->x[slot(cp, n)] - before) >= enough)
        n++;
    e->since_ts = cp->ts[slot(cp, n - 1)];
    e->since_step = cp->step[slot(cp, n - 1)];
    if (cp->state == HEALTHY && v->level - before < cp->min_log &&
        cp->left_ts < e->since_ts) {
        e->since_ts = cp->left_ts;
        e->since_step = cp->left_step;
    }
}

static void report(struct ep_changepoint *cp, const struct verdict *v,
                   struct ep_change *e)
{
    unsigned older = cp->seg - v->n < 16 ? cp->seg - v->n : 16;
    double before = older >= 3 ? median(cp, v->n, older) : v->ref.x;

    memset(e, 0, sizeof *e);
    backdate(cp, v, before, e);
    e->factor = exp(v->level - cp->best.x);
    e->before = exp(before);
    e->after = exp(v->level);
    e->p = v->p;
    if (v->dir > 0) {
        e->kind = EP_CHANGE_ONSET;
        e->worsening = cp->state == SLOW;
        cp->episode += cp->state == HEALTHY;
        cp->state = SLOW;
        cp->spike_n = 0;
    } else {
        e->kind = EP_CHANGE_RELIEF;
        e->partial = v->level >= cp->best.x + cp->min_log;
        cp->state = e->partial ? SLOW : HEALTHY;
        /* whatever comes, it did not begin before this was over */
        cp->left_ts = e->since_ts;
        cp->left_step = e->since_step;
    }
    e->episode = cp->episode;
    cp->mark = (struct level){v->level, v->n};
    cp->seg = v->n;
    set_thresholds(cp);
}

/* The spike under way is over: is it news? */
static int end_spike(struct ep_changepoint *cp, struct ep_change *e)
{
    unsigned n = cp->spike_n;
    unsigned older = stored(cp) > n + 1 ? stored(cp) - n - 1 : 0;
    double level = cp->mark.x, height;

    cp->spike_n = 0;
    older = older < 16 ? older : 16;
    if (older >= 5)
        level = median(cp, n + 1, older);
    height = cp->spike_peak - level;
    if (height < log(cp->c.spike_factor) ||
        ep_spikes_expected(&cp->spikes, cp->spike_pos, height))
        return 0;
    memset(e, 0, sizeof *e);
    e->kind = EP_CHANGE_SPIKE;
    e->since_ts = cp->spike_ts;
    e->since_step = cp->spike_step;
    e->factor = exp(height);
    e->before = exp(level);
    e->after = exp(cp->spike_peak);
    e->p = erf(height / cp->sigma / M_SQRT2);
    e->episode = ep_changepoint_episode(cp);
    return 1;
}

static int check_spike(struct ep_changepoint *cp, struct ep_change *e)
{
    double x = cp->x[slot(cp, 0)];
    double gate = fmax(log(cp->c.spike_factor), SPIKE_SIGMAS * cp->sigma);

    if (cp->spike_n > 0) {
        if (x < cp->up && x < cp->mark.x + gate)
            return end_spike(cp, e);
        cp->spike_n += cp->spike_n < EP_RING;
        cp->spike_peak = fmax(cp->spike_peak, x);
    } else if (x >= cp->mark.x + gate) {
        cp->spike_n = 1;
        cp->spike_peak = x;
        cp->spike_pos = cp->pos;
        cp->spike_ts = cp->ts[slot(cp, 0)];
        cp->spike_step = cp->step[slot(cp, 0)];
    }
    return 0;
}

/* Put the sample into the ring, the detector and the masks. */
static void record(struct ep_changepoint *cp, double ts, int64_t step, double x)
{
    unsigned s = (unsigned)(cp->total++ % EP_RING);

    cp->x[s] = x;
    cp->ts[s] = ts;
    cp->step[s] = step;
    cp->pos = step >= 0 && (double)step > cp->pos ? (double)step : cp->pos + 1;
    cp->seg += cp->seg < cp->c.window;
    ep_bocd_set_mean(cp->bocd, cp->state == WARMUP ? x : cp->mark.x);
    if (ep_bocd_push(cp->bocd, x) == 0 &&
        ep_bocd_mass(cp->bocd, cp->c.lag) >= cp->c.propose)
        cp->proposal = 0;
    else
        cp->proposal += cp->proposal < EP_RING;
    if (cp->state == WARMUP)
        return;
    shift_masks(cp, x);
    if (cp->state == HEALTHY && count(cp->near, 8) >= 4) {
        cp->left_ts = ts;
        cp->left_step = step;
    }
}

int ep_changepoint_push(struct ep_changepoint *cp, double ts, int64_t step,
                        double value, struct ep_change *out)
{
    struct verdict v;
    unsigned seg = cp->seg;
    int n;

    if (!isfinite(ts) || !isfinite(value) || value <= 0)
        return EP_EDOM;
    record(cp, ts, step < 0 ? -1 : step, log(value));
    if (cp->state == WARMUP) {
        try_establish(cp);
        return 0;
    }
    n = check_spike(cp, out);
    v.dir = 1;
    if (check_change(cp, cp->hi, &v)) {
        report(cp, &v, out + n);
        return n + 1;
    }
    v.dir = -1;
    if (cp->state == SLOW && check_change(cp, cp->lo, &v)) {
        report(cp, &v, out + n);
        return n + 1;
    }
    if (cp->state == HEALTHY)
        check_best(cp);
    if (cp->seg != seg && (cp->seg == 16 || cp->seg == 32 || cp->seg == 64))
        refine(cp);
    if (cp->total % NOISE_EVERY == 0)
        noise(cp, 0);
    return n;
}

double ep_changepoint_level(const struct ep_changepoint *cp)
{
    unsigned n = stored(cp);

    return exp(median(cp, 0, n < 5 ? n : 5));
}

double ep_changepoint_healthy(const struct ep_changepoint *cp)
{
    return cp->state == WARMUP ? NAN : exp(cp->best.x);
}

double ep_changepoint_noise(const struct ep_changepoint *cp)
{
    return cp->state == WARMUP ? NAN : cp->sigma;
}

unsigned ep_changepoint_episode(const struct ep_changepoint *cp)
{
    return cp->state == SLOW ? cp->episode : 0;
}

static int check(const struct ep_changepoint_config *c, struct ep_error *err)
{
    if (!(c->propose > 0 && c->propose < 1))
        return ep_error_set(err, EP_EDOM, "propose is not in (0, 1)");
    if (!(c->min_change > 0 && c->min_change <= 10))
        return ep_error_set(err, EP_EDOM, "min_change is not in (0, 10]");
    if (!(c->z > 0 && isfinite(c->z)))
        return ep_error_set(err, EP_EDOM, "z is not positive");
    if (!(c->noise_floor > 0 && c->noise_floor <= 1))
        return ep_error_set(err, EP_EDOM, "noise floor is not in (0, 1]");
    if (!(c->spike_factor > 1 && isfinite(c->spike_factor)))
        return ep_error_set(err, EP_EDOM, "spike factor is not above 1");
    if (c->lag < 1 || c->lag > 16)
        return ep_error_set(err, EP_EDOM, "lag is not in 1..16");
    if (c->confirm < 1 || c->confirm > 16)
        return ep_error_set(err, EP_EDOM, "confirm is not in 1..16");
    if (c->settle <= c->confirm || c->settle < 4 || c->settle > 32)
        return ep_error_set(err, EP_EDOM, "settle is not in confirm+1..32");
    if (c->window < 16 || c->window < c->settle || c->window > EP_RING)
        return ep_error_set(err, EP_EDOM, "window is not in 16..%d", EP_RING);
    return 0;
}

struct ep_changepoint *
ep_changepoint_new(const struct ep_changepoint_config *config,
                   struct ep_error *err)
{
    static const struct ep_changepoint_config defaults =
        EP_CHANGEPOINT_DEFAULTS;
    const struct ep_changepoint_config *c = config ? config : &defaults;
    struct ep_bocd_config b = {.hazard = c->hazard,
                               .kappa0 = BOCD_KAPPA,
                               .alpha0 = BOCD_ALPHA,
                               .beta0 = BOCD_BETA,
                               .window = BOCD_WINDOW};
    struct ep_changepoint *cp;
    struct ep_bocd *bocd;

    if (check(c, err))
        return NULL;
    bocd = ep_bocd_new(&b, err);
    if (!bocd)
        return NULL;
    cp = ep_calloc(1, sizeof *cp);
    cp->c = *c;
    cp->bocd = bocd;
    cp->min_log = log1p(c->min_change);
    cp->sigma = c->noise_floor;
    cp->proposal = EP_RING;
    cp->pos = -1;
    return cp;
}

void ep_changepoint_free(struct ep_changepoint *cp)
{
    if (!cp)
        return;
    ep_bocd_free(cp->bocd);
    free(cp);
}
