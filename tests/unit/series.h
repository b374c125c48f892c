/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series.h - random pace series with known changes, for property tests.
 *
 * A job: a warm-up, then healthy and slow stretches in turn. Noise is
 * lognormal, multiplicative; spikes are Pareto(1.5), at least 1.3 x.
 */
#ifndef EP_TEST_SERIES_H
#define EP_TEST_SERIES_H

#include <math.h>
#include <stdint.h>

struct rng {
    uint64_t s;
};

static inline double rng_uniform(struct rng *r)
{
    uint64_t z = (r->s += 0x9e3779b97f4a7c15U);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static inline double rng_normal(struct rng *r)
{
    return sqrt(-2 * log(rng_uniform(r))) * cos(2 * M_PI * rng_uniform(r));
}

struct series_config {
    double cv;     /* of the noise */
    double spikes; /* probability per iteration */
    double factor_lo, factor_hi;
    int stretch_lo, stretch_hi; /* iterations of a healthy or slow stretch */
    int healthy_only;
};

struct series {
    struct series_config c;
    struct rng rng;
    double base;    /* healthy seconds */
    double factor;  /* now */
    double warm;    /* size of the warm-up, in base */
    double cool;    /* its decay per iteration */
    int t;          /* iterations so far */
    int left;       /* iterations until the next change */
    int changes;    /* so far */
    int changed_at; /* iteration of the latest change */
};

static inline int series_stretch(struct series *s)
{
    return s->c.stretch_lo + (int)(rng_uniform(&s->rng) *
                                   (s->c.stretch_hi - s->c.stretch_lo + 1));
}

static inline void series_init(struct series *s, const struct series_config *c,
                               uint64_t seed)
{
    *s = (struct series){.c = *c, .rng = {seed}, .factor = 1};
    s->base = exp(6 * rng_uniform(&s->rng) - 3);
    s->warm = 60 * rng_uniform(&s->rng);
    s->cool = 0.1 + 0.6 * rng_uniform(&s->rng);
    s->left = 40 + series_stretch(s);
}

/* Next iteration time; s->t counts it. */
static inline double series_next(struct series *s)
{
    double v = s->base;

    if (s->left-- == 0 && !s->c.healthy_only) {
        s->factor =
            s->factor > 1
                ? 1
                : s->c.factor_lo * exp(rng_uniform(&s->rng) *
                                       log(s->c.factor_hi / s->c.factor_lo));
        s->left = series_stretch(s) - 1;
        s->changes++;
        s->changed_at = s->t;
    }
    v *= s->factor * exp(s->c.cv * rng_normal(&s->rng));
    v *= 1 + s->warm * pow(s->cool, s->t);
    if (rng_uniform(&s->rng) < s->c.spikes)
        v *= fmin(1.3 * pow(rng_uniform(&s->rng), -1 / 1.5), 100);
    s->t++;
    return v;
}

#endif
