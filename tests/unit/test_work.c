/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_work.c - work.h against made-up series whose dependence on the work is
 * known, bounds computed by hand, and a plain least-squares fit.
 */
#include "config.h"

#include "base/rng.h"
#include "detect/work.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

#define MAX 4000

static struct ep_work w;
static struct ep_work_step got[MAX];
static int n_in, n_got;

static void begin(void)
{
    memset(&w, 0, sizeof w);
    n_in = n_got = 0;
}

/* A step of mb micro-batches with one tokens each; what comes out into got. */
static uint32_t take(double dur, double mb, double one)
{
    struct ep_work_step s = {.step = n_in,
                             .n = 4,
                             .ts = n_in,
                             .end = n_in + 1,
                             .dur = dur,
                             .scale = 1,
                             .work = {.all = mb * (one > 0 ? one : 1),
                                      .one = one,
                                      .unit = one > 0 ? 2 : 1}};
    uint32_t n = ep_work_push(&w, &s, got + n_got);

    n_in++;
    n_got += (int)n;
    return n;
}

/* A ripple of 0.2 % whose medians over five steps are 0. */
static double ripple(int i)
{
    return 1 + 0.001 * (i * 2 % 5 - 2);
}

static double normal(struct ep_rng *r)
{
    double u = 1 - ep_rng_uniform(r), v = ep_rng_uniform(r);

    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* Largest deviation of what came out from a level, from number i on. */
static double worst(int i, double level)
{
    double d = 0;

    for (; i < n_got; i++)
        d = fmax(d, fabs(got[i].dur / level - 1));
    return d;
}

static void test_constant(void)
{
    bool same = true;

    begin();
    for (int i = 0; i < 100; i++) {
        double dur = i == 40 ? 9 : i < 60 ? 1 + 0.01 * i : 3;

        /* work within 2 % is the same */
        same = same && take(dur, 8, 2048 * (1 + 0.01 * (i % 2))) == 1 &&
               got[i].dur == dur && got[i].scale == 1 && got[i].step == i;
    }
    ok(same);

    begin(); /* nothing is told */
    same = true;
    for (int i = 0; i < 50; i++)
        same = same && take(1 + i % 3, 0, 0) == 1 && got[i].dur == 1 + i % 3;
    ok(same);
}

/* dur = 0.4 + 0.6 work / 8: what a phase with twice the work is scaled by. */
static void test_phase(void)
{
    begin();
    for (int i = 0; i < 40; i++)
        (void)take(1.0 * ripple(i), 8, 0);
    for (int i = 40; i < 44; i++)
        ok(take(1.6 * ripple(i), 16, 0) == 0);
    ok(take(1.6 * ripple(44), 16, 0) == EP_WORK_HOLD);
    near(got[40].scale, 1.6, 1e-9); /* the median of five ripples is 0 */
    for (int i = 45; i < 80; i++)
        ok(take(1.6 * ripple(i), 16, 0) == 1 || i < 0);
    ok(n_got == 80 && worst(40, 1) < 0.0021);
    for (int i = 80; i < 100; i++) /* a fail-slow later on */
        (void)take(1.6 * 1.3 * ripple(i), 16, 0);
    ok(worst(80, 1.3) < 0.0021);
    /* back, and there again: known scales, nothing held back */
    for (int i = 100; i < 120; i++)
        ok(take(1.0 * ripple(i), 8, 0) == 1 || i < 0);
    ok(worst(100, 1) < 0.0021);
    ok(take(1.6, 16, 0) == 1);
    near(got[n_got - 1].scale, 1.6, 1e-3);
}

/* A recompilation and a checkpoint at the boundary are passed over. */
static void test_boundary(void)
{
    begin();
    for (int i = 0; i < 40; i++)
        (void)take(i >= 38 ? 3 : 1, 4, 1000);
    for (int i = 40; i < 60; i++)
        (void)take(i < 42 ? 12 : 1.5, 4, 1700);
    near(got[45].scale, 1.5, 1e-9);
    near(got[40].dur, 8, 1e-6);
    ok(worst(42, 1) < 1e-9);
}

/* Slow before the phase: goes on, and ends, on the same scale. */
static void test_open(void)
{
    begin();
    for (int i = 0; i < 80; i++)
        (void)take((i < 40 ? 1 : 1.8) * (i >= 30 && i < 60 ? 1.4 : 1) *
                       ripple(i),
                   i < 40 ? 8 : 16, 512);
    ok(n_got == 80);
    near(got[50].dur, 1.4, 0.005);
    near(got[70].dur, 1, 0.005);
}

/* What the work does not allow stays in the values. */
static void test_exceeds(void)
{
    begin();
    for (int i = 0; i < 60; i++)
        (void)take(i < 40 ? 1 : 2.52, i < 40 ? 8 : 12, 0);
    near(got[45].dur, 2.52 / (1.5 * 1.05), 1e-9);
    near(got[59].dur, 2.52 / (1.5 * 1.05), 1e-9);

    begin(); /* work grows, and the job gets faster: not its doing */
    for (int i = 0; i < 60; i++)
        (void)take(i < 40 ? 1 : 0.8, i < 40 ? 8 : 12, 0);
    near(got[59].dur, 0.8 * 1.05, 1e-9);
}

static void test_bounds(void)
{
    /* all, tokens of one, before and after; flops; bounds by hand */
    static const struct {
        double all[2], one[2];
        bool complete;
        double lo, hi;
    } t[] = {
        {{8, 16}, {0, 0}, false, 1, 2},
        {{16, 8}, {0, 0}, false, 0.5, 1},
        {{8, 8}, {0, 0}, false, 1, 1},
        /* more micro-batches of the same: 1 .. 2 */
        {{8000, 16000}, {1000, 1000}, false, 1, 2},
        /* as many of twice the length: 2 (3/4 + 1/4 2) */
        {{8000, 16000}, {1000, 2000}, false, 1, 2.5},
        {{8000, 16000}, {1000, 2000}, true, 1, 2},
        {{16000, 8000}, {2000, 1000}, false, 1 / 2.5, 1},
        /* the same tokens in twice as many: the bubble may be halved */
        {{8000, 8000}, {1000, 500}, false, 0.5 / 1.25, 1},
        {{8000, 8000}, {1000, 500}, true, 0.5, 1},
    };

    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        struct ep_work_amount a = {.all = t[i].all[0],
                                   .one = t[i].one[0],
                                   .unit = 2,
                                   .complete = t[i].complete};
        struct ep_work_amount b = a;
        double lo, hi;

        b.all = t[i].all[1];
        b.one = t[i].one[1];
        ep_work_bounds(&a, &b, &lo, &hi);
        near(exp(lo), t[i].lo / 1.05, 1e-12);
        near(exp(hi), t[i].hi * 1.05, 1e-12);
        b.unit = 3;
        ep_work_bounds(&a, &b, &lo, &hi);
        ok(isinf(lo) && isinf(hi));
    }
}

/* The last batch of an epoch is small: no phase, and no spike. */
static void test_interlude(void)
{
    begin();
    for (int i = 0; i < 100; i++) {
        bool small = i % 30 == 29;

        (void)take(small ? 0.7 : 1, small ? 4 : 8, 0);
    }
    ok(n_got == 100 && worst(0, 1) < 1e-9);

    begin(); /* slower than its work explains: the rest is seen */
    for (int i = 0; i < 60; i++)
        (void)take(i == 50 ? 4 : 1, i == 50 ? 16 : 8, 0);
    near(got[50].dur, 4 / 2.1, 1e-9);

    begin(); /* held back at the end */
    for (int i = 0; i < 60; i++)
        (void)take(i < 57 ? 1 : 1.5, i < 57 ? 8 : 16, 0);
    ok(n_got == 57);
    n_got += (int)ep_work_flush(&w, got + n_got);
    ok(n_got == 60 && worst(0, 1) < 1e-9);
    ok(ep_work_flush(&w, got) == 0);
}

/* Known by its calls: another loop has any scale. */
static void test_loops(void)
{
    begin();
    for (int i = 0; i < 90; i++) {
        struct ep_work_step s = {.step = i,
                                 .dur = i < 40   ? 1
                                        : i < 70 ? 7
                                                 : 1.2};

        s.work.phase = i < 40 || i >= 70 ? 3 : 8;
        n_got += (int)ep_work_push(&w, &s, got + n_got);
    }
    ok(n_got == 90 && worst(40, 1) < 0.2001);
    near(got[69].dur, 1, 1e-9);
    near(got[70].dur, 1.2, 1e-9); /* a known loop, and slower than before */
}

/*
 * Work that varies by 30 % from step to step, dur = (0.3 + 0.7 work) with
 * noise of 1 % and a change by 1.4: the slope is that of a plain least-squares
 * fit of log dur to log work and the change, and the change is what is left.
 */
static void test_varying(uint64_t seed)
{
    struct ep_rng r;
    double sx = 0, sy = 0, sxx = 0, sxy = 0, fit, before = 0, after = 0, ss = 0;
    int n = 300;

    printf("# seed %llu\n", (unsigned long long)seed);
    ep_rng_seed(&r, seed, 0);
    begin();
    for (int i = 0; i < n; i++) {
        double work = exp(0.3 * normal(&r));
        double dur = (0.3 + 0.7 * work) * exp(0.01 * normal(&r));
        double x = log(work), y = log(dur);

        sx += x, sy += y, sxx += x * x, sxy += x * y;
        if (i == 120)
            dur *= 20; /* a spike */
        (void)take(dur * (i >= 200 ? 1.4 : 1), 1, 1000 * work);
    }
    fit = (sxy - sx * sy / n) / (sxx - sx * sx / n);
    ok(n_got == n && w.varying);
    near(ep_work_beta(&w.slope), fit, 0.08);
    for (int i = 150; i < 200; i++)
        before += log(got[i].dur) / 50;
    for (int i = 150; i < 200; i++)
        ss += pow(log(got[i].dur) - before, 2) / 50;
    for (int i = 210; i < 260; i++)
        after += log(got[i].dur) / 50;
    near(exp(after - before), 1.4, 0.06);
    ok(sqrt(ss) < 0.05); /* it was 0.22 */

    /* it does no longer vary, at twice the mean: one scale, no onset */
    for (int i = 0; i < 60; i++)
        (void)take(1.4 * 1.7 * ripple(i), 1, 2000);
    ok(!w.varying);
    near(log(got[n_got - 1].dur), after, 0.12);
}

/* A rank: what varies goes, what lasts stays. */
static void test_steady(uint64_t seed)
{
    struct ep_work_slope s = {.n = 0};
    struct ep_rng r;
    double mean[3] = {0}, spread = 0;

    printf("# seed %llu\n", (unsigned long long)seed);
    ep_rng_seed(&r, seed, 0);
    for (int i = 0; i < 300; i++) {
        double work = exp(0.2 * normal(&r)) * (i >= 150 ? 1.5 : 1);
        double v = ep_work_steady(&s, 0.05 * work, 100 * work);

        if (i >= 100 && i < 150) {
            mean[0] += log(v) / 50;
            spread += fabs(log(v / 0.05)) / 50;
        }
        if (i >= 200)
            mean[1] += log(v) / 100;
    }
    /* means of 50 and 100 of sigma 0.2: 0.035; five times that */
    near(exp(mean[1] - mean[0]), 1.5, 0.25);
    ok(spread < 0.09); /* of the running mean; it was 0.16 */

    memset(&s, 0, sizeof s);
    for (int i = 0; i < 100; i++) /* one lasting change is none of its */
        if (ep_work_steady(&s, i < 50 ? 1 : 1.6, i < 50 ? 100 : 160) !=
            (i < 50 ? 1 : 1.6))
            spread = 1;
    ok(spread < 0.09);
    near(ep_work_steady(&s, 2, 0), 2, 0);
}

/* Whatever comes: each step out once, in order, divided by a scale > 0. */
static void test_any(uint64_t seed)
{
    struct ep_rng r;
    static double dur[MAX];
    bool sound = true;
    double mb = 8, one = 1000;

    printf("# seed %llu\n", (unsigned long long)seed);
    ep_rng_seed(&r, seed, 0);
    begin();
    for (int i = 0; i < MAX - EP_WORK_HOLD; i++) {
        uint64_t what = ep_rng_next(&r) % 64;

        if (what < 2)
            mb = (double)(1 + ep_rng_next(&r) % 64);
        else if (what < 4)
            one = (double)(ep_rng_next(&r) % 3000);
        else if (what < 5)
            mb = 0;
        dur[i] = exp(3 * normal(&r));
        sound = sound && take(dur[i], mb, one) <= EP_WORK_HOLD;
    }
    n_got += (int)ep_work_flush(&w, got + n_got);
    ok(sound && n_got == n_in);
    for (int i = 0; i < n_got; i++)
        sound = sound && got[i].step == i && got[i].scale > 0 &&
                isfinite(got[i].scale) && got[i].dur > 0 &&
                fabs(got[i].dur * got[i].scale / dur[i] - 1) < 1e-12;
    ok(sound);
}

int main(void)
{
    test_constant();
    test_phase();
    test_boundary();
    test_open();
    test_exceeds();
    test_bounds();
    test_interlude();
    test_loops();
    for (uint64_t seed = 1; seed <= 5; seed++) {
        test_varying(seed);
        test_steady(seed);
        test_any(seed);
    }
    return tap_done();
}
