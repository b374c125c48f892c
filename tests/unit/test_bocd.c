/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_bocd.c - the detector against a direct O(T^2) evaluation of the
 * recursion in long double, with two-pass posteriors and no truncation.
 */
#include "config.h"

#include "detect/bocd.h"

#include "tap.h"

#include <stdint.h>
#include <stdlib.h>

#define T_MAX 200

static uint64_t state;

static double uniform(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15U);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/*
 * log pi of x after the r samples before it: the closed form of the
 * posterior from the sample mean and the centred sum of squares (Murphy,
 * "Conjugate Bayesian analysis of the Gaussian distribution", 2007).
 */
static long double log_predictive(const struct ep_bocd_config *c,
                                  const double *x, unsigned r)
{
    long double mean = 0;
    long double ss = 0;
    long double k = c->kappa0 + (long double)r;
    long double a = c->alpha0 + r / 2.0L;
    long double mu;
    long double beta;
    long double s2;

    for (unsigned i = 1; i <= r; i++)
        mean += x[-(int)i] - (long double)c->mu0;
    mean = r ? mean / r : 0; /* relative to mu0 */
    for (unsigned i = 1; i <= r; i++) {
        long double d = x[-(int)i] - (long double)c->mu0 - mean;

        ss += d * d;
    }
    mu = c->mu0 + r * mean / k;
    beta = c->beta0 + ss / 2 + c->kappa0 * r * mean * mean / (2 * k);
    s2 = beta * (k + 1) / (a * k);
    return lgammal(a + 0.5L) - lgammal(a) -
           logl(2 * a * 3.14159265358979323846L * s2) / 2 -
           (a + 0.5L) * log1pl((*x - mu) * (*x - mu) / (2 * a * s2));
}

/* P(r_t = r), r = 0..t+1 after x[0..t], row by row. */
static long double joint[T_MAX + 1][T_MAX + 2];

static void reference(const struct ep_bocd_config *c, const double *x,
                      unsigned n)
{
    joint[0][0] = 1;
    for (unsigned t = 0; t < n; t++) {
        long double sum = 0;

        for (unsigned r = 0; r <= t; r++) {
            long double w = joint[t][r] * expl(log_predictive(c, x + t, r));

            joint[t + 1][r + 1] = w * (1 - (long double)c->hazard);
            sum += w;
        }
        joint[t + 1][0] = sum * c->hazard;
        for (unsigned r = 0; r <= t + 1; r++)
            joint[t + 1][r] /= sum;
    }
}

/* Largest difference of a probability; beyond the cap, of the lumped tail. */
static double compare(const struct ep_bocd_config *c, const double *x,
                      unsigned n)
{
    struct ep_bocd *b = ep_bocd_new(c, NULL);
    double worst = 0;

    reference(c, x, n);
    for (unsigned t = 0; t < n; t++) {
        const double *p;
        size_t len;
        double total = 0;

        if (ep_bocd_push(b, x[t]))
            worst = INFINITY;
        len = ep_bocd_posterior(b, &p);
        for (size_t r = 0; r < len; r++) {
            total += p[r];
            if (r + 1 < len || len < c->window)
                worst = fmax(worst, fabs(p[r] - (double)joint[t + 1][r]));
        }
        worst = fmax(worst, fabs(total - 1));
    }
    ep_bocd_free(b);
    return worst;
}

static void series(double *x, unsigned n, double base, double cv, double step)
{
    for (unsigned t = 0; t < n; t++) {
        x[t] = base * (1 + cv * normal());
        if (t >= n / 2)
            x[t] += base * step;
    }
}

static void check_reference(void)
{
    static const struct {
        double base, cv, step, mu0, kappa0, beta0;
    } cases[] = {
        {1, 0.01, 0.2, 1, 0.01, 1e-4}, {1, 0.05, -0.4, 0, 0.1, 1e-2},
        {0.003, 0.1, 3, 0, 1, 1e-6},   {1, 0, 0, 1, 1, 1e-8},
        {1e3, 0.02, 1, 1e3, 2, 1},
    };
    double x[T_MAX];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ep_bocd_config c = {.hazard = 0.01,
                                   .mu0 = cases[i].mu0,
                                   .kappa0 = cases[i].kappa0,
                                   .alpha0 = 1,
                                   .beta0 = cases[i].beta0,
                                   .window = T_MAX + 2};

        state = 100 + i;
        series(x, T_MAX, cases[i].base, cases[i].cv, cases[i].step);
        near(compare(&c, x, T_MAX), 0, 1e-9);
    }
}

/* An offset of 1e6 with a spread of 0.01: same posterior as without it. */
static void check_offset(void)
{
    struct ep_bocd_config c = {.hazard = 0.01,
                               .kappa0 = 0.1,
                               .alpha0 = 1,
                               .beta0 = 1e-4,
                               .window = 64};
    struct ep_bocd *near0 = ep_bocd_new(&c, NULL);
    struct ep_bocd *far;
    double worst = 0;

    c.mu0 = 1e6;
    far = ep_bocd_new(&c, NULL);
    state = 7;
    for (int t = 0; t < 500; t++) {
        double v = 0.01 * normal() + (t / 100 % 2 ? 0.1 : 0);

        worst += ep_bocd_push(near0, v) != 0;
        worst += ep_bocd_push(far, 1e6 + v) != 0;
        for (unsigned w = 0; w < 63; w++)
            worst = fmax(worst,
                         fabs(ep_bocd_mass(near0, w) - ep_bocd_mass(far, w)));
    }
    /* 1e6 + v is rounded to 1.2e-10, 1e-8 of the spread. */
    near(worst, 0, 1e-5);
    ep_bocd_free(near0);
    ep_bocd_free(far);
}

/*
 * A step 1.0 -> 1.2 s, H = 0.01: the lagged mass P(r <= 3) jumps at the
 * first slow sample and is gone when the run is older than the lag.
 */
static void check_step(void)
{
    struct ep_bocd_config c = {.hazard = 0.01,
                               .mu0 = 1,
                               .kappa0 = 1,
                               .alpha0 = 1,
                               .beta0 = 1e-4,
                               .window = 64};
    struct ep_bocd *b = ep_bocd_new(&c, NULL);
    double first = 0;
    double later = 0;
    double before = 0;
    int hazard_always = 1;
    int bad = 0;

    state = 3;
    for (int t = 0; t < 100; t++) {
        double x = (t < 50 ? 1.0 : 1.2) + 0.005 * normal();

        bad += ep_bocd_push(b, x) != 0;
        hazard_always &= fabs(ep_bocd_mass(b, 0) - 0.01) < 1e-12;
        if (t >= 20 && t < 50)
            before = fmax(before, ep_bocd_mass(b, 3));
        if (t == 50)
            first = ep_bocd_mass(b, 3);
        if (t >= 54)
            later = fmax(later, ep_bocd_mass(b, 3));
        if (t == 60)
            ok(ep_bocd_map(b) == 11);
    }
    printf("# P(r <= 3): before %.4f, first slow sample %.4f, later %.4f\n",
           before, first, later);
    ok(bad == 0);
    ok(hazard_always);
    ok(first > 0.99);
    ok(later < 0.05);
    ok(before < 0.1);
    ep_bocd_free(b);
}

static void check_hostile(void)
{
    struct ep_bocd_config c = {.hazard = 0.01,
                               .kappa0 = 0.01,
                               .alpha0 = 1,
                               .beta0 = 1e-4,
                               .window = 16};
    struct ep_bocd *b = ep_bocd_new(&c, NULL);
    double before;
    double sum = 0;
    const double *p;
    size_t n;

    for (int t = 0; t < 1000; t++)
        sum += ep_bocd_push(b, 0.1) != 0;
    ok(sum == 0);
    ok(ep_bocd_map(b) == 15);
    before = ep_bocd_mass(b, 3);
    ok(ep_bocd_push(b, NAN) == EP_EDOM);
    ok(ep_bocd_push(b, INFINITY) == EP_EDOM);
    ok(ep_bocd_push(b, -2e100) == EP_EDOM);
    ok(ep_bocd_mass(b, 3) == before);
    ok(ep_bocd_push(b, 1e100) == 0);
    ok(ep_bocd_push(b, -1e100) == 0);
    for (int t = 0; t < 100; t++)
        sum += ep_bocd_push(b, t % 2 ? 1e-300 : 1e90) != 0;
    ok(sum == 0);
    n = ep_bocd_posterior(b, &p);
    for (size_t r = 0; r < n; r++)
        sum += p[r];
    near(sum, 1, 1e-12);
    ok(ep_bocd_mass(b, 1000) == 1);
    ep_bocd_free(b);
}

static void check_config(void)
{
    static const struct ep_bocd_config good = {
        .hazard = 0.01, .kappa0 = 1, .alpha0 = 1, .beta0 = 1, .window = 8};
    struct ep_bocd_config c[9];
    struct ep_error err;

    for (int i = 0; i < 9; i++)
        c[i] = good;
    c[0].hazard = 0;
    c[1].hazard = 1;
    c[2].hazard = NAN;
    c[3].mu0 = INFINITY;
    c[4].kappa0 = 0;
    c[5].alpha0 = -1;
    c[6].beta0 = 0;
    c[7].window = 1;
    c[8].window = EP_BOCD_MAX_WINDOW + 1;
    for (int i = 0; i < 9; i++) {
        err.code = 0;
        ok(!ep_bocd_new(&c[i], &err) && err.code == EP_EDOM);
    }
}

int main(void)
{
    check_reference();
    check_offset();
    check_step();
    check_hostile();
    check_config();
    return tap_done();
}
