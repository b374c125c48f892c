/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_arith.c - float and double behind one table, so that the kernel is
 * written once. Called per block, which hides the price of the pointers. And
 * the fused kernels of merge_fuse.h, by level.
 */
#include "config.h"

#include "base/simd.h"
#include "ckpt/convert.h"
#include "lsgd/merge_fuse.h"
#include "lsgd/merge_impl.h"

#include <math.h>
#include <string.h>

/* ==== Limits of types ==== */

/*
 * The least magnitude that rounds to an infinity: half a unit in the last place
 * above the largest number, which is odd in its last place, so that the tie
 * goes up. Infinity: only an infinity does. F8_E4M3 has none.
 */
static double overflow_of(enum ep_dtype t)
{
    switch (t) {
    case EP_DT_F32:
        return 0x1.ffffffp127;
    case EP_DT_BF16:
        return 0x1.ffp127;
    case EP_DT_F16:
        return 65520;
    case EP_DT_F8_E5M2:
        return 61440;
    default:
        return (double)INFINITY;
    }
}

/* A tie of F8_E4M3 goes down to 448: above it a value saturates. */
#define E4M3_TIE 464

/* ==== Vectors of the compiler, for loops that must be fast ==== */

/*
 * NaNs and infinities compare as integers like numbers: their bits, without the
 * sign, are above those of every number. So limit - bits is negative where a
 * value is beyond, and an OR of all tells whether one is.
 */
typedef int64_t v2l __attribute__((vector_size(16)));
typedef double v2d __attribute__((vector_size(16)));

static bool any_above_f32(const float *v, int32_t limit, size_t n)
{
    size_t i = n - n % MERGE_FUSED_STEP;
    int32_t seen = 0, bits;

    if (ep_merge_fused(EP_DT_F32)->above(v, limit, i))
        return true;
    for (; i < n; i++) {
        memcpy(&bits, v + i, sizeof bits);
        seen |= limit - (bits & INT32_MAX);
    }
    return seen < 0;
}

static bool any_above_f64(const double *v, int64_t limit, size_t n)
{
    v2l seen = {0}, too = {0}, x, y;
    int64_t one = 0, bits;
    size_t i = 0;

    for (; i + 4 <= n; i += 4) {
        memcpy(&x, v + i, sizeof x);
        memcpy(&y, v + i + 2, sizeof y);
        seen |= limit - (x & INT64_MAX);
        too |= limit - (y & INT64_MAX);
    }
    for (; i < n; i++) {
        memcpy(&bits, v + i, sizeof bits);
        one |= limit - (bits & INT64_MAX);
    }
    seen |= too;
    return (one | seen[0] | seen[1]) < 0;
}

/* y = acc / total */
static void divide_all(double *y, const double *acc, double total, size_t n)
{
    size_t i = 0;
    v2d x;

    for (; i + 2 <= n; i += 2) {
        memcpy(&x, acc + i, sizeof x);
        x /= total;
        memcpy(y + i, &x, sizeof x);
    }
    if (i < n)
        y[i] = acc[i] / total;
}

/* y = acc * factor */
static void scale_all(double *y, const double *acc, double factor, size_t n)
{
    size_t i = 0;
    v2d x;

    for (; i + 2 <= n; i += 2) {
        memcpy(&x, acc + i, sizeof x);
        x *= factor;
        memcpy(y + i, &x, sizeof x);
    }
    if (i < n)
        y[i] = acc[i] * factor;
}

/* ==== float ==== */

static void f32_decode(enum ep_dtype t, const void *src, void *dst, size_t n)
{
    ep_decode_f32(t, src, dst, n);
}

static void f32_encode(enum ep_dtype t, const void *src, void *dst, size_t n)
{
    ep_encode_f32(t, src, dst, n);
}

static void f32_sub(void *y, const void *a, const void *b, size_t n)
{
    ep_sub_f32(y, a, b, n);
}

static void f32_mix(void *y, const void *x, double alpha, size_t n)
{
    ep_mix_f32(y, x, alpha, n);
}

static void f32_axpy(void *y, const void *x, double w, size_t n)
{
    ep_axpy_f32(y, x, w, n);
}

static double f32_sumsq(const void *v, size_t n)
{
    return ep_sumsq_f32(v, n);
}

static size_t f32_first_nonfinite(const void *v, size_t n)
{
    return ep_first_nonfinite_f32(v, n);
}

static void f32_apply(void *theta, void *m, void *d, const void *const *g,
                      const struct ep_outer_step *step, size_t nsteps, size_t n)
{
    const float *in[MERGE_STEPS];

    for (size_t i = 0; i < nsteps; i++)
        in[i] = g[i];
    ep_outer_apply_f32(theta, m, d, in, step, nsteps, n);
}

static void f32_weigh(double *acc, const void *x, double w, bool first,
                      size_t n)
{
    double wide[MERGE_BLOCK];

    if (first && w == 1) {
        ep_decode_f64(EP_DT_F32, x, acc, n);
        return;
    }
    if (first)
        memset(acc, 0, n * sizeof *acc);
    ep_decode_f64(EP_DT_F32, x, wide, n);
    ep_axpy_f64(acc, wide, w, n);
}

/* A power of two divides exactly by its inverse, which is far faster. */
static bool is_power_of_two(double v)
{
    int exponent;

    return frexp(v, &exponent) == 0.5 && exponent > -1000 && exponent < 1000;
}

static void divide(double *y, const double *acc, double total, size_t n)
{
    if (is_power_of_two(total))
        scale_all(y, acc, 1 / total, n);
    else
        divide_all(y, acc, total, n);
}

static void f32_mean(void *y, const double *acc, double total, size_t n)
{
    bool exact = is_power_of_two(total);
    size_t whole = n - n % MERGE_FUSED_STEP;
    float *to = y;

    ep_merge_fused(EP_DT_F32)->mean(to, acc, exact ? 1 / total : total, !exact,
                                    whole);
    for (size_t i = whole; i < n; i++)
        to[i] = (float)(acc[i] / total);
}

static size_t f32_first_beyond(const void *v, enum ep_dtype t, size_t n)
{
    const float *x = v;
    double over = overflow_of(t);
    float least = (float)over; /* exact, or (F32) infinity */
    int32_t bits;
    size_t i = 0;

    memcpy(&bits, &least, sizeof bits);
    if (!any_above_f32(x, bits - 1, n))
        return n;
    while (i < n && (double)fabsf(x[i]) < over)
        i++;
    return i;
}

static size_t f32_saturated(const void *v, size_t n)
{
    const float *x = v;
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += fabsf(x[i]) > E4M3_TIE;
    return count;
}

const struct merge_arith ep_merge_float = {
    .dtype = EP_DT_F32,
    .size = sizeof(float),
    .decode = f32_decode,
    .encode = f32_encode,
    .sub = f32_sub,
    .mix = f32_mix,
    .axpy = f32_axpy,
    .sumsq = f32_sumsq,
    .first_nonfinite = f32_first_nonfinite,
    .apply = f32_apply,
    .weigh = f32_weigh,
    .mean = f32_mean,
    .first_beyond = f32_first_beyond,
    .saturated = f32_saturated,
};

/* ==== double ==== */

static void f64_decode(enum ep_dtype t, const void *src, void *dst, size_t n)
{
    ep_decode_f64(t, src, dst, n);
}

static void f64_encode(enum ep_dtype t, const void *src, void *dst, size_t n)
{
    ep_encode_f64(t, src, dst, n);
}

static void f64_sub(void *y, const void *a, const void *b, size_t n)
{
    ep_sub_f64(y, a, b, n);
}

static void f64_mix(void *y, const void *x, double alpha, size_t n)
{
    ep_mix_f64(y, x, alpha, n);
}

static void f64_axpy(void *y, const void *x, double w, size_t n)
{
    ep_axpy_f64(y, x, w, n);
}

static double f64_sumsq(const void *v, size_t n)
{
    return ep_sumsq_f64(v, n);
}

static size_t f64_first_nonfinite(const void *v, size_t n)
{
    return ep_first_nonfinite_f64(v, n);
}

static void f64_apply(void *theta, void *m, void *d, const void *const *g,
                      const struct ep_outer_step *step, size_t nsteps, size_t n)
{
    const double *in[MERGE_STEPS];

    for (size_t i = 0; i < nsteps; i++)
        in[i] = g[i];
    ep_outer_apply_f64(theta, m, d, in, step, nsteps, n);
}

static void f64_weigh(double *acc, const void *x, double w, bool first,
                      size_t n)
{
    if (first && w == 1) {
        memcpy(acc, x, n * sizeof *acc);
        return;
    }
    if (first)
        memset(acc, 0, n * sizeof *acc);
    ep_axpy_f64(acc, x, w, n);
}

static void f64_mean(void *y, const double *acc, double total, size_t n)
{
    divide(y, acc, total, n);
}

static size_t f64_first_beyond(const void *v, enum ep_dtype t, size_t n)
{
    const double *x = v;
    double over = overflow_of(t);
    int64_t bits;
    size_t i = 0;

    memcpy(&bits, &over, sizeof bits);
    if (!any_above_f64(x, bits - 1, n))
        return n;
    while (i < n && fabs(x[i]) < over)
        i++;
    return i;
}

static size_t f64_saturated(const void *v, size_t n)
{
    const double *x = v;
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += fabs(x[i]) > E4M3_TIE;
    return count;
}

const struct merge_arith ep_merge_double = {
    .dtype = EP_DT_F64,
    .size = sizeof(double),
    .decode = f64_decode,
    .encode = f64_encode,
    .sub = f64_sub,
    .mix = f64_mix,
    .axpy = f64_axpy,
    .sumsq = f64_sumsq,
    .first_nonfinite = f64_first_nonfinite,
    .apply = f64_apply,
    .weigh = f64_weigh,
    .mean = f64_mean,
    .first_beyond = f64_first_beyond,
    .saturated = f64_saturated,
};

/* ==== Fused ==== */

const struct merge_fused *ep_merge_fused(enum ep_dtype t)
{
    const struct merge_fused *f = &fused_portable;

#ifdef __x86_64__
    switch (ep_simd_level()) {
    case EP_SIMD_AVX512:
        f = &fused_avx512;
        break;
    case EP_SIMD_AVX2:
        f = &fused_avx2;
        break;
    case EP_SIMD_PORTABLE:
        break;
    }
#endif
    if (t == EP_DT_BF16 || t == EP_DT_F32 || (t == EP_DT_F16 && f->f16))
        return f;
    return NULL;
}
