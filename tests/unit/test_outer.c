/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_outer.c - the outer optimiser against its formula in double, the forms
 * of the kernels against each other bit for bit.
 *
 * With "--dump FILE" it writes what Nesterov momentum makes of random
 * gradients, for the comparison with PyTorch in tests/lsgd-torch.bats.
 */
#include "config.h"

#include "base/mem.h"
#include "base/simd.h"
#include "lsgd/outer.h"

#include "series.h"
#include "tap.h"

#include <float.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SEED 20260711
#define STEPS 20
#define MOST 3000 /* elements: more than a block of the kernels */
#define GUARD 8
#define LEVELS (EP_SIMD_AVX512 + 1)

static struct rng rng = {SEED};

static const struct ep_outer rules[] = {
    {0.7, 0.9, 0, 1},     {0.3, 0, 0, 1},         {0.15, 0.5, 0, 2},
    {0.2, 0.9, 0, 16},    {0.1, 0.8, 1.0 / 8, 8}, {0.1, 0.8, 0.05, 4},
    {1.5, 0, 0, 3},       {0.1, 0.99, 0, 40},     {1e-3, 0.9, 1, 1},
    {4.4, 0.8, 0.02, 16},
};
#define RULES (sizeof rules / sizeof *rules)

/* theta, m, D and gradients of each type, with guards around them. */
struct vectors {
    float *f[3], *fg[STEPS];
    double *d[3], *dg[STEPS];
    size_t off, n;
};

static float *floats(size_t off, size_t n)
{
    float *p = ep_calloc(n + off + GUARD, sizeof *p);

    for (size_t i = 0; i < n + off + GUARD; i++)
        p[i] = 12345;
    return p + off;
}

static double *doubles(size_t off, size_t n)
{
    double *p = ep_calloc(n + off + GUARD, sizeof *p);

    for (size_t i = 0; i < n + off + GUARD; i++)
        p[i] = 12345;
    return p + off;
}

/* off: how many elements off the alignment of malloc; at least 1, a guard. */
static void vectors_init(struct vectors *v, size_t off, size_t n)
{
    v->off = off;
    v->n = n;
    for (int k = 0; k < 3; k++) {
        v->f[k] = floats(off, n);
        v->d[k] = doubles(off, n);
        for (size_t i = 0; i < n; i++)
            v->d[k][i] = v->f[k][i] = (float)rng_normal(&rng);
    }
    for (int s = 0; s < STEPS; s++) {
        v->fg[s] = floats(off, n);
        v->dg[s] = doubles(off, n);
        for (size_t i = 0; i < n; i++)
            v->dg[s][i] = v->fg[s][i] = (float)rng_normal(&rng);
    }
}

static void vectors_copy(struct vectors *to, const struct vectors *from)
{
    for (int k = 0; k < 3; k++) {
        memcpy(to->f[k], from->f[k], from->n * sizeof(float));
        memcpy(to->d[k], from->d[k], from->n * sizeof(double));
    }
    for (int s = 0; s < STEPS; s++) {
        memcpy(to->fg[s], from->fg[s], from->n * sizeof(float));
        memcpy(to->dg[s], from->dg[s], from->n * sizeof(double));
    }
}

static bool guarded_f32(const float *p, size_t off, size_t n)
{
    for (size_t i = 1; i <= off; i++)
        if (*(p - i) != 12345)
            return false;
    for (size_t i = n; i < n + GUARD; i++)
        if (p[i] != 12345)
            return false;
    return true;
}

static bool guarded_f64(const double *p, size_t off, size_t n)
{
    for (size_t i = 1; i <= off; i++)
        if (*(p - i) != 12345)
            return false;
    for (size_t i = n; i < n + GUARD; i++)
        if (p[i] != 12345)
            return false;
    return true;
}

static bool guarded(const struct vectors *v)
{
    for (int k = 0; k < 3; k++)
        if (!guarded_f32(v->f[k], v->off, v->n) ||
            !guarded_f64(v->d[k], v->off, v->n))
            return false;
    return true;
}

/* Bit for bit; the gradients too, which must not change. */
static bool equal(const struct vectors *a, const struct vectors *b)
{
    bool same = a->n == b->n;

    for (int k = 0; k < 3; k++)
        same = same && memcmp(a->f[k], b->f[k], a->n * sizeof(float)) == 0 &&
               memcmp(a->d[k], b->d[k], a->n * sizeof(double)) == 0;
    for (int s = 0; s < STEPS; s++)
        same = same && memcmp(a->fg[s], b->fg[s], a->n * sizeof(float)) == 0 &&
               memcmp(a->dg[s], b->dg[s], a->n * sizeof(double)) == 0;
    return same;
}

static void vectors_free(struct vectors *v)
{
    for (int k = 0; k < 3; k++) {
        free(v->f[k] - v->off);
        free(v->d[k] - v->off);
    }
    for (int s = 0; s < STEPS; s++) {
        free(v->fg[s] - v->off);
        free(v->dg[s] - v->off);
    }
}

/* Steps from t on, with the gradients from first on, in both types. */
static void apply(struct vectors *v, const struct ep_outer *o, uint64_t t,
                  size_t first, size_t nsteps)
{
    struct ep_outer_step step[STEPS];

    for (size_t s = 0; s < nsteps; s++)
        step[s] = ep_outer_step_after(o, t + s);
    ep_outer_apply_f32(v->f[0], v->f[1], v->f[2],
                       (const float *const *)v->fg + first, step, nsteps, v->n);
    ep_outer_apply_f64(v->d[0], v->d[1], v->d[2],
                       (const double *const *)v->dg + first, step, nsteps,
                       v->n);
}

static void test_check(void)
{
    static const struct {
        struct ep_outer o;
        const char *told;
    } bad[] = {
        {{0, 0.9, 0, 1}, "lr: "},
        {{-1, 0.9, 0, 1}, "lr: "},
        {{(double)INFINITY, 0.9, 0, 1}, "lr: "},
        {{(double)NAN, 0.9, 0, 1}, "lr: "},
        {{1, -0.1, 0, 1}, "beta: "},
        {{1, 1, 0, 1}, "beta: "},
        {{1, (double)NAN, 0, 1}, "beta: "},
        {{1, 0.9, -0.1, 1}, "c: "},
        {{1, 0.9, 0.126, 8}, "c: "},
        {{1, 0.9, (double)NAN, 8}, "c: "},
        {{1, 0.9, 0, 0}, "n: "},
    };
    struct ep_error err;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err.msg[0] = '\0';
        ok(ep_outer_check(&bad[i].o, &err) == EP_EDOM && err.code == EP_EDOM);
        if (!ok(strncmp(err.msg, bad[i].told, strlen(bad[i].told)) == 0))
            printf("# %zu: %s\n", i, err.msg);
    }
    for (size_t i = 0; i < RULES; i++)
        ok(ep_outer_check(&rules[i], NULL) == 0);
    for (uint64_t n = 1; n < 100; n++) { /* the end of the range is in it */
        const struct ep_outer o = {1, 0.5, 1 / (double)n, n};

        if (ep_outer_check(&o, NULL) < 0)
            ok(!"c = 1 / n");
    }
}

static void test_coefficients(void)
{
    static const struct ep_outer o = {0.5, 0.8, 0.125, 4};

    for (uint64_t t = 0; t < 12; t++) {
        struct ep_outer_step s = ep_outer_step_after(&o, t);

        ok(s.flush == (t == 3 || t == 7 || t == 11) && s.buffer);
        near(s.inv_n, 0.25, 0);
        /* (1 - 4/8 + 1/8) 0.8 or 0.8 / 8 */
        near(s.look, s.flush ? 0.5 : 0.1, 1e-16);
        near(s.lr, 0.5, 0);
        near(s.beta, 0.8, 0);
    }
    ok(ep_outer_step_after(&rules[0], 77).flush);
    ok(!ep_outer_step_after(&rules[0], 77).buffer);
}

/* The rule of outer.h as it is printed there. */
static void formula(double *theta, double *m, double *d, double g,
                    const struct ep_outer *o, uint64_t t)
{
    double n = (double)o->n;

    *d += g;
    if ((t + 1) % o->n == 0) {
        *m = o->beta * *m + *d / n;
        *theta -= o->lr * ((1 - o->c * n + o->c) * o->beta * *m + g / n);
        *d = 0;
    } else {
        *theta -= o->lr * (o->c * o->beta * *m + g / n);
    }
}

/*
 * Tolerance: a step rounds at most 12 times, coefficients included, each by
 * half an epsilon of the largest magnitude that occurs (theta, m, D and their
 * terms), and passes the error on at a factor below 1 + lr.
 */
static void test_formula(const struct ep_outer *o, enum ep_simd level)
{
    struct vectors v;
    double *ref[3], err_f32 = 0, err_f64 = 0, most = 0;
    size_t n = 301;

    vectors_init(&v, 1, n);
    for (int k = 0; k < 3; k++) {
        ref[k] = ep_calloc(n, sizeof **ref);
        /* D is 0 at the start where it is not used */
        if (k == 2 && o->n == 1)
            continue;
        memcpy(ref[k], v.d[k], n * sizeof(double));
    }
    for (uint64_t t = 0; t < STEPS; t++)
        for (size_t i = 0; i < n; i++) {
            formula(&ref[0][i], &ref[1][i], &ref[2][i], v.dg[t][i], o, t);
            most =
                fmax(most, fmax(1, o->lr) * (fabs(ref[0][i]) + fabs(ref[1][i]) +
                                             fabs(ref[2][i]) + 4));
        }
    ep_simd_limit(level);
    apply(&v, o, 0, 0, STEPS);
    for (int k = 0; k < (o->n == 1 ? 2 : 3); k++)
        for (size_t i = 0; i < n; i++) {
            err_f32 = fmax(err_f32, fabs((double)v.f[k][i] - ref[k][i]));
            err_f64 = fmax(err_f64, fabs(v.d[k][i] - ref[k][i]));
        }
    near(err_f32, 0, STEPS * 12 * FLT_EPSILON / 2 * most);
    near(err_f64, 0, STEPS * 12 * DBL_EPSILON / 2 * most);
    for (int k = 0; k < 3; k++)
        free(ref[k]);
    vectors_free(&v);
}

/* N = 1, c = 0 is PyTorch's SGD: b = beta b + g; p -= lr (g + beta b). */
static void test_nesterov(void)
{
    const struct ep_outer o = {0.7, 0.9, 0, 1};
    struct ep_outer_step step[STEPS];
    struct vectors v;
    double want[100], err = 0, most = 0;

    vectors_init(&v, 1, 100);
    for (size_t i = 0; i < v.n; i++) {
        double b = v.d[1][i];

        want[i] = v.d[0][i];
        for (int s = 0; s < STEPS; s++) {
            b = o.beta * b + v.dg[s][i];
            want[i] -= o.lr * (v.dg[s][i] + o.beta * b);
            most = fmax(most, fabs(want[i]) + fabs(b));
        }
    }
    for (uint64_t s = 0; s < STEPS; s++)
        step[s] = ep_outer_step_after(&o, s);
    ep_outer_apply_f64(v.d[0], v.d[1], NULL, (const double *const *)v.dg, step,
                       STEPS, v.n);
    for (size_t i = 0; i < v.n; i++)
        err = fmax(err, fabs(v.d[0][i] - want[i]));
    near(err, 0, STEPS * 6 * DBL_EPSILON * most);
    vectors_free(&v);
}

/*
 * All steps in one pass, at every level, give what one call per step gives at
 * the portable level; nothing around the vectors is written.
 */
static void test_one_pass(void)
{
    static const size_t sizes[] = {0,   1,   2,    3,    7,    8,
                                   15,  16,  17,   31,   33,   64,
                                   100, 257, 1024, 2048, 2049, MOST};

    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (size_t r = 0; r < RULES; r++) {
            struct vectors start, want, got;
            bool same = true, safe = true;
            uint64_t t = (uint64_t)(rng_uniform(&rng) * 40);
            size_t off = 1 + (size_t)(rng_uniform(&rng) * 17);

            vectors_init(&start, off, sizes[k]);
            vectors_init(&want, off, sizes[k]);
            vectors_init(&got, off, sizes[k]);
            vectors_copy(&want, &start);
            ep_simd_limit(EP_SIMD_PORTABLE);
            for (size_t s = 0; s < STEPS; s++)
                apply(&want, &rules[r], t + s, s, 1);
            for (int level = 0; level < LEVELS; level++) {
                size_t cut = (size_t)(rng_uniform(&rng) * STEPS);

                ep_simd_limit((enum ep_simd)level);
                vectors_copy(&got, &start);
                apply(&got, &rules[r], t, 0, STEPS);
                same = same && equal(&got, &want);
                safe = safe && guarded(&got);
                vectors_copy(&got, &start);
                apply(&got, &rules[r], t, 0, cut);
                apply(&got, &rules[r], t + cut, cut, STEPS - cut);
                same = same && equal(&got, &want);
            }
            if (!ok(same && safe))
                printf("# rule %zu, n %zu, t %" PRIu64 "\n", r, sizes[k], t);
            vectors_free(&start);
            vectors_free(&want);
            vectors_free(&got);
        }
}

/* What is not needed is not touched, and may be absent. */
static void test_absent(enum ep_simd level)
{
    const struct ep_outer plain = {0.5, 0, 0, 1}, sum = {0.5, 0, 0, 2};
    struct ep_outer_step step[2];
    struct vectors v;

    ep_simd_limit(level);
    vectors_init(&v, 1, 21);
    /* beta 0, N 1: theta - lr g, no m, no D */
    step[0] = ep_outer_step_after(&plain, 0);
    v.f[0][20] = 3;
    v.fg[0][20] = 4;
    ep_outer_apply_f32(v.f[0], NULL, NULL, (const float *const *)v.fg, step, 1,
                       v.n);
    near((double)v.f[0][20], 1, 0);
    /* beta 0, N 2, no m: theta - lr g / 2 twice; D is cleared in the end */
    step[0] = ep_outer_step_after(&sum, 0);
    step[1] = ep_outer_step_after(&sum, 1);
    v.d[0][20] = 3;
    v.dg[0][20] = 4;
    v.dg[1][20] = 8;
    ep_outer_apply_f64(v.d[0], NULL, v.d[2], (const double *const *)v.dg, step,
                       2, v.n);
    near(v.d[0][20], 0, 0);
    ok(v.d[2][0] == 0 && v.d[2][20] == 0 && !signbit(v.d[2][20]));
    vectors_free(&v);
}

/* c = 0: m is not read between flushes; N = 1: D is never touched. */
static void test_untouched(enum ep_simd level)
{
    const struct ep_outer delayed = {0.5, 0.9, 0, 4}, nesterov = {1, 0.5, 0, 1};
    struct vectors v;

    ep_simd_limit(level);
    vectors_init(&v, 1, 21);
    for (size_t i = 0; i < v.n; i++)
        v.f[1][i] = NAN;
    apply(&v, &delayed, 0, 0, 3);
    for (size_t i = 0; i < v.n; i += 20)
        ok(isfinite(v.f[0][i]) && isnan(v.f[1][i]));
    apply(&v, &delayed, 3, 3, 1);
    for (size_t i = 0; i < v.n; i += 20)
        ok(isnan(v.f[0][i]) && v.f[2][i] == 0);
    for (size_t i = 0; i < v.n; i++)
        v.f[2][i] = NAN;
    apply(&v, &nesterov, 0, 0, 4);
    ok(isnan(v.f[2][0]) && isnan(v.f[2][20]));
    vectors_free(&v);
}

/* NaN and infinities stay where they are, and are not lost. */
static void test_not_finite(enum ep_simd level)
{
    const struct ep_outer o = {0.5, 0.5, 0, 2};
    struct vectors clean, v;
    bool same = true;

    ep_simd_limit(level);
    vectors_init(&clean, 1, 23);
    vectors_init(&v, 1, 23);
    vectors_copy(&v, &clean);
    for (size_t i = 0; i < 2; i++) { /* in a vector, and left over */
        size_t at = i ? 18 : 0;

        v.fg[0][at] = NAN;
        v.fg[0][at + 1] = INFINITY;
        v.fg[0][at + 2] = INFINITY;
        v.fg[1][at + 2] = -INFINITY;
        v.f[0][at + 3] = -INFINITY;
    }
    apply(&clean, &o, 0, 0, 1);
    apply(&v, &o, 0, 0, 1);
    ok(isnan(v.f[0][18]) && isnan(v.f[2][0]) && isnan(v.f[2][18]));
    ok(v.f[0][1] == -INFINITY && v.f[0][19] == -INFINITY);
    ok(v.f[2][1] == INFINITY && v.f[2][19] == INFINITY);
    apply(&clean, &o, 1, 1, 1);
    apply(&v, &o, 1, 1, 1);
    ok(isnan(v.f[0][0]) && isnan(v.f[1][18]) && v.f[2][18] == 0);
    ok(v.f[1][1] == INFINITY && v.f[0][19] == -INFINITY);
    ok(isnan(v.f[1][2]) && isnan(v.f[1][20])); /* inf - inf in D */
    ok(v.f[0][3] == -INFINITY && v.f[0][21] == -INFINITY);
    for (size_t i = 0; i < v.n; i++)
        if (i % 18 > 3)
            same = same && v.f[0][i] == clean.f[0][i] &&
                   v.f[1][i] == clean.f[1][i] && v.f[2][i] == clean.f[2][i];
    ok(same);
    vectors_free(&clean);
    vectors_free(&v);
}

/* The order that outer.h promises, plainly. */
static double sum_of_squares(const double *v, size_t n)
{
    double s[16] = {0};

    for (size_t i = 0; i < n; i++)
        s[i % 16] += v[i] * v[i];
    for (size_t pairs = 8; pairs; pairs /= 2)
        for (size_t j = 0; j < pairs; j++)
            s[j] = s[2 * j] + s[2 * j + 1];
    return s[0];
}

/* mix, axpy, sub and sumsq of all sizes to 70: exactly the plain loops. */
static void test_elementwise(enum ep_simd level)
{
    bool same = true, safe = true;

    ep_simd_limit(level);
    for (size_t n = 0; n <= 70; n++) {
        struct vectors v;
        float mix[70] = {0}, axpy[70] = {0}, sub[70] = {0};
        double dmix[70] = {0}, daxpy[70] = {0}, dsub[70] = {0};

        vectors_init(&v, 1 + n % 16, n);
        for (size_t i = 0; i < n; i++) {
            const float y = v.f[0][i], x = v.f[1][i];
            const double dy = v.d[0][i], dx = v.d[1][i];

            mix[i] = y + 0.3F * (x - y);
            axpy[i] = mix[i] + -1.7F * x;
            sub[i] = axpy[i] - x;
            dmix[i] = dy + 0.3 * (dx - dy);
            daxpy[i] = dmix[i] + -1.7 * dx;
            dsub[i] = daxpy[i] - dx;
        }
        same = same && ep_sumsq_f32(v.f[0], n) == sum_of_squares(v.d[0], n) &&
               ep_sumsq_f64(v.d[0], n) == sum_of_squares(v.d[0], n);
        ep_mix_f32(v.f[0], v.f[1], 0.3, n);
        ep_mix_f64(v.d[0], v.d[1], 0.3, n);
        same = same && memcmp(v.f[0], mix, n * sizeof *mix) == 0 &&
               memcmp(v.d[0], dmix, n * sizeof *dmix) == 0;
        ep_axpy_f32(v.f[0], v.f[1], -1.7, n);
        ep_axpy_f64(v.d[0], v.d[1], -1.7, n);
        same = same && memcmp(v.f[0], axpy, n * sizeof *axpy) == 0 &&
               memcmp(v.d[0], daxpy, n * sizeof *daxpy) == 0;
        ep_sub_f32(v.f[2], v.f[0], v.f[1], n);
        ep_sub_f64(v.d[2], v.d[0], v.d[1], n);
        same = same && memcmp(v.f[2], sub, n * sizeof *sub) == 0 &&
               memcmp(v.d[2], dsub, n * sizeof *dsub) == 0;
        safe = safe && guarded(&v);
        vectors_free(&v);
    }
    ok(same);
    ok(safe);
    ok(isnan(ep_sumsq_f32((const float[]){1, NAN}, 2)));
    near(ep_sumsq_f32((const float[]){3e38F, 0}, 2) / 9e76, 1, 1e-7);
}

/*
 * For each case a line "lr beta elements", a line of start values, and for
 * each of STEPS steps a line of gradients, one of our values in double and one
 * of those in float.
 */
static int dump(const char *path)
{
    static const double beta[] = {0.9, 0.5, 0};
    FILE *f = fopen(path, "w");

    if (!f)
        return 2;
    for (size_t k = 0; k < sizeof beta / sizeof *beta; k++) {
        const struct ep_outer o = {0.7, beta[k], 0, 1};
        struct vectors v;

        vectors_init(&v, 1, 37);
        memset(v.f[1], 0, v.n * sizeof(float));
        memset(v.d[1], 0, v.n * sizeof(double));
        (void)fprintf(f, "%.17g %.17g %zu\n", o.lr, o.beta, v.n);
        for (size_t i = 0; i < v.n; i++)
            (void)fprintf(f, "%.17g ", v.d[0][i]);
        for (size_t s = 0; s < STEPS; s++) {
            apply(&v, &o, s, s, 1);
            (void)fputc('\n', f);
            for (size_t i = 0; i < v.n; i++)
                (void)fprintf(f, "%.17g ", v.dg[s][i]);
            (void)fputc('\n', f);
            for (size_t i = 0; i < v.n; i++)
                (void)fprintf(f, "%.17g ", v.d[0][i]);
            (void)fputc('\n', f);
            for (size_t i = 0; i < v.n; i++)
                (void)fprintf(f, "%.17g ", (double)v.f[0][i]);
        }
        (void)fputc('\n', f);
        vectors_free(&v);
    }
    return ferror(f) | fclose(f) ? 2 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--dump") == 0)
        return dump(argv[2]);
    printf("# seed %d, level %s\n", SEED, ep_simd_name(ep_simd_level()));
    test_check();
    test_coefficients();
    test_nesterov();
    for (int level = 0; level < LEVELS; level++) {
        for (size_t r = 0; r < RULES; r++)
            test_formula(&rules[r], (enum ep_simd)level);
        test_absent((enum ep_simd)level);
        test_untouched((enum ep_simd)level);
        test_not_finite((enum ep_simd)level);
        test_elementwise((enum ep_simd)level);
    }
    test_one_pass();
    return tap_done();
}
