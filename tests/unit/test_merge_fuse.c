/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_merge_fuse.c - the fused kernels of merge_impl.h give the bits of the
 * functions that they stand for, at every level; and they tell what is not
 * finite.
 */
#include "config.h"

#include "base/simd.h"
#include "ckpt/convert.h"
#include "lsgd/merge_impl.h"
#include "tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 1024 };

static const enum ep_dtype types[] = {EP_DT_BF16, EP_DT_F16, EP_DT_F32};

static uint64_t seed;

static uint32_t draw(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 32);
}

/*
 * Any finite element: all exponents but those above most, both zeros, and
 * subnormals. Files do not align theirs: at has an odd address.
 */
static void draw_elements(enum ep_dtype t, unsigned char *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t u = draw();
        uint16_t h = (uint16_t)u;

        if (t == EP_DT_F32) {
            u = (u & 0x7f800000) == 0x7f800000 ? u & ~0x40000000U : u;
            memcpy(at + i * 4, &u, sizeof u);
            continue;
        }
        if (t == EP_DT_BF16)
            h = (h & 0x7f80) == 0x7f80 ? h & 0xbfff : h;
        else
            h = (h & 0x7c00) == 0x7c00 ? h & 0xbfff : h;
        if (u >> 28 == 0)
            h &= 0x8000;
        memcpy(at + i * 2, &h, sizeof h);
    }
}

/* Two models of one type, the same element here and there. */
static unsigned char memory[3][N * 4 + 1];
static unsigned char *const theta = memory[0] + 1, *const x = memory[1] + 1,
                            *const out = memory[2] + 1;
static float wide_theta[N], wide_x[N], g[N];

static void draw_models(enum ep_dtype t)
{
    size_t size = ep_dtype_bits(t) / 8;

    draw_elements(t, theta, N);
    draw_elements(t, x, N);
    for (size_t i = 0; i < N; i += 5)
        memcpy(x + i * size, theta + i * size, size);
    ep_decode_f32(t, theta, wide_theta, N);
    ep_decode_f32(t, x, wide_x, N);
    ep_sub_f32(g, wide_theta, wide_x, N);
}

static bool same_bits(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

static bool same_double(double a, double b)
{
    return same_bits(&a, &b, sizeof a);
}

/* ==== Pairs ==== */

static bool fused(enum merge_pair op, enum ep_dtype t, double a, size_t n,
                  double *sumsq)
{
    struct merge_models two = {t, theta, x, out, a, n};

    return ep_merge_fused(t)->pair(op, &two, sumsq);
}

/* What the generic way makes of it; false: it is not finite, or too large. */
static bool generic(enum merge_pair op, enum ep_dtype t, double a, size_t n,
                    unsigned char *want, double *sumsq)
{
    float y[N], back[N];

    memcpy(y, op == MERGE_PAIR_COPY ? wide_x : wide_theta, sizeof y);
    if (op == MERGE_PAIR_MIX)
        ep_mix_f32(y, wide_x, a, n);
    else if (op == MERGE_PAIR_STEP)
        ep_outer_apply_f32(
            y, NULL, NULL, (const float *const[]){g},
            &(struct ep_outer_step){.lr = a, .inv_n = 1, .flush = true}, 1, n);
    *sumsq = ep_sumsq_f32(g, n);
    ep_encode_f32(t, y, want, n);
    ep_decode_f32(t, want, back, n);
    return isfinite(*sumsq) && ep_first_nonfinite_f32(back, n) == n;
}

static void test_pair(enum merge_pair op, enum ep_dtype t, size_t n)
{
    const double factor[] = {0, 0.3, 0.5, 1};
    unsigned char want[N * 4];
    int bad = 0, made = 0;

    for (int round = 0; round < 40; round++) {
        double a = factor[round % 4], sumsq = 0, expected;
        bool good, fits;

        draw_models(t);
        /* of F32 the large ones overflow: scale some down */
        if (t == EP_DT_F32 && round % 2 == 0) {
            for (size_t i = 0; i < N; i++)
                wide_theta[i] *= 0.25F, wide_x[i] *= 0.25F;
            memcpy(theta, wide_theta, sizeof wide_theta);
            memcpy(x, wide_x, sizeof wide_x);
            ep_sub_f32(g, wide_theta, wide_x, N);
        }
        fits = generic(op, t, a, n, want, &expected);
        good = fused(op, t, a, n, &sumsq);
        made += good;
        bad += good != fits;
        if (good && fits)
            bad += !same_double(sumsq, expected) ||
                   memcmp(out, want, n * ep_dtype_bits(t) / 8) != 0;
    }
    if (!ok(bad == 0 && made > 0))
        printf("# pair %d of %s, n %zu: %d bad, %d made\n", (int)op,
               ep_dtype_name(t), n, bad, made);
}

/* One element that is not finite, or gets too large, at each place. */
static void test_pair_beyond(enum ep_dtype t)
{
    const float special[] = {NAN, -NAN, INFINITY, -INFINITY};
    size_t size = ep_dtype_bits(t) / 8;
    double sumsq;
    int bad = 0;

    for (size_t i = 0; i < 64; i++) {
        unsigned char *side = i % 2 ? theta : x;

        memset(theta, 0, sizeof memory[0] - 1);
        memset(x, 0, sizeof memory[1] - 1);
        bad += !fused(MERGE_PAIR_STEP, t, 2, 64, &sumsq);
        ep_encode_f32(t, &special[i % 4], side + i * size, 1);
        bad += fused((enum merge_pair)(i % 3), t, 1, 64, &sumsq);
        /* -largest - 2 largest */
        memset(side + i * size, 0xff, size);
        side[i * size + size - 1] = 0x7f;
        side[i * size + size - 2] = t == EP_DT_F16 ? 0xff : 0x7f;
        if (t == EP_DT_F16)
            side[i * size + 1] = 0x7b;
        bad += fused(MERGE_PAIR_STEP, t, 2.5, 64, &sumsq);
    }
    if (!ok(bad == 0))
        printf("# beyond %s: %d bad\n", ep_dtype_name(t), bad);
}

/* ==== Many inputs ==== */

static void test_diff(enum ep_dtype t)
{
    float got[N];
    double sumsq;

    draw_models(t);
    sumsq = ep_merge_fused(t)->diff(t, wide_theta, x, got, N);
    ok(same_bits(got, g, sizeof g));
    ok(same_double(sumsq, ep_sumsq_f32(g, N)) ||
       (!isfinite(sumsq) && !isfinite(ep_sumsq_f32(g, N))));
    ep_encode_f32(t, &(float){NAN}, x + 77 * ep_dtype_bits(t) / 8, 1);
    ok(!isfinite(ep_merge_fused(t)->diff(t, wide_theta, x, got, N)));
}

static void test_weigh(enum ep_dtype t, double weight, bool of_g, bool first)
{
    static double acc[N], want[N];
    struct merge_weigh w = {.x = x,
                            .theta = wide_theta,
                            .acc = acc,
                            .weight = weight,
                            .of_g = of_g,
                            .first = first,
                            .n = N};
    double sumsq;

    draw_models(t);
    for (size_t i = 0; i < N; i++)
        acc[i] = want[i] = (double)draw() - 0x1p31;
    ep_merge_float.weigh(want, of_g ? g : wide_x, weight, first, N);
    sumsq = ep_merge_fused(t)->weigh(t, &w);
    ok(same_double(sumsq, ep_sumsq_f32(g, N)) ||
       (!isfinite(sumsq) && !isfinite(ep_sumsq_f32(g, N))));
    if (!ok(same_bits(acc, want, sizeof acc)))
        printf("# %s weight %g of_g %d first %d\n", ep_dtype_name(t), weight,
               (int)of_g, (int)first);
}

/* As ep_encode_f64 to F32 of what is divided; sums of a few magnitudes. */
static void test_mean(void)
{
    const struct merge_fused *f = ep_merge_fused(EP_DT_F32);
    static double acc[N], by_7[N], by_8[N];
    static float got[N], want[N];

    for (size_t i = 0; i < N; i++) {
        acc[i] = ldexp((double)draw() - 0x1p31, (int)(draw() % 300) - 180);
        by_7[i] = acc[i] / 7;
        by_8[i] = acc[i] / 8;
    }
    f->mean(got, acc, 7, true, N);
    ep_encode_f64(EP_DT_F32, by_7, want, N);
    ok(same_bits(got, want, sizeof got));
    f->mean(got, acc, 1.0 / 8, false, N);
    ep_encode_f64(EP_DT_F32, by_8, want, N);
    ok(same_bits(got, want, sizeof got));
}

static void test_above(void)
{
    const struct merge_fused *f = ep_merge_fused(EP_DT_F32);
    const float limit = 65504;
    static float v[N];
    int32_t bits;
    int bad = 0;

    memcpy(&bits, &limit, sizeof bits);
    for (size_t i = 0; i < N; i++)
        v[i] = i % 2 ? limit : -limit;
    ok(!f->above(v, bits, N));
    ok(!f->above(v, bits, 0));
    for (size_t i = 0; i < N; i++) {
        float was = v[i];

        v[i] = i % 3 == 0   ? nextafterf(was, 2 * was)
               : i % 3 == 1 ? copysignf(NAN, was)
                            : copysignf(INFINITY, was);
        bad += !f->above(v, bits, N);
        v[i] = was;
    }
    ok(bad == 0);
}

static void test_type(enum ep_dtype t)
{
    for (int op = MERGE_PAIR_COPY; op <= MERGE_PAIR_STEP; op++) {
        test_pair((enum merge_pair)op, t, N);
        test_pair((enum merge_pair)op, t, MERGE_FUSED_STEP);
    }
    test_pair_beyond(t);
    test_diff(t);
    for (int bits = 0; bits < 8; bits++)
        test_weigh(t, bits & 1 ? 1 : 0.7, bits & 2, bits & 4);
}

int main(void)
{
    enum ep_simd best = ep_simd_level();

    seed = (uint64_t)time(NULL);
    printf("# seed %llu\n", (unsigned long long)seed);
    for (int level = 0; level <= (int)best; level++) {
        ep_simd_limit((enum ep_simd)level);
        printf("# %s\n", ep_simd_name(ep_simd_level()));
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
            if (ep_merge_fused(types[i]))
                test_type(types[i]);
        test_mean();
        test_above();
        ok(ep_merge_fused(EP_DT_BF16) && ep_merge_fused(EP_DT_F32));
        ok(!ep_merge_fused(EP_DT_F64) && !ep_merge_fused(EP_DT_F8_E4M3));
    }
    return tap_done();
}
