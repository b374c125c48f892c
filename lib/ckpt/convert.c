/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.c - see convert.h: the portable kernels, and which one is called.
 *
 * Only the ways between float and each type are kernels. A double goes through
 * a float in a buffer that stays in the first-level cache: exact one way, and
 * rounded to odd the other, so that the second rounding does no harm.
 */
#include "config.h"

#include "ckpt/convert.h"

#include "base/simd.h"
#include "ckpt/convert_impl.h"

enum { STAGE = 512 }; /* floats */

EP_CONVERT_LOOP(from_bf16, , ep_cv_from_bf16, uint16_t, uint32_t)
EP_CONVERT_LOOP(from_f16, , ep_cv_from_f16, uint16_t, uint32_t)
EP_CONVERT_LOOP(from_e5m2, , ep_cv_from_e5m2, uint8_t, uint32_t)
EP_CONVERT_LOOP(from_e4m3, , ep_cv_from_e4m3, uint8_t, uint32_t)
EP_CONVERT_LOOP(to_bf16, , ep_cv_to_bf16, uint32_t, uint16_t)
EP_CONVERT_LOOP(to_f16, , ep_cv_to_f16, uint32_t, uint16_t)
EP_CONVERT_LOOP(to_e5m2, , ep_cv_to_e5m2, uint32_t, uint8_t)
EP_CONVERT_LOOP(to_e4m3, , ep_cv_to_e4m3, uint32_t, uint8_t)
EP_CONVERT_LOOP(widen, , ep_cv_widen, float, double)
EP_CONVERT_LOOP(narrow, , ep_cv_narrow, double, float)
EP_CONVERT_LOOP(odd, , ep_cv_odd, double, float)
EP_CONVERT_FINITE(finite_f32, , float, uint32_t, 1U << 23)
EP_CONVERT_FINITE(finite_f64, , double, uint64_t, UINT64_C(1) << 52)

const struct ep_convert_set ep_convert_portable = {
    from_bf16, from_f16, from_e5m2, from_e4m3, to_bf16,    to_f16,     to_e5m2,
    to_e4m3,   widen,    narrow,    odd,       finite_f32, finite_f64,
};

static const struct ep_convert_set *set_now(void)
{
#if defined(__x86_64__)
    switch (ep_simd_level()) {
    case EP_SIMD_AVX512:
        return &ep_convert_avx512;
    case EP_SIMD_AVX2:
        return &ep_convert_avx2;
    default:
        break;
    }
#endif
    return &ep_convert_portable;
}

/* The kernel of a type narrower than float. */
static ep_convert_fn *decoder(const struct ep_convert_set *set, enum ep_dtype t)
{
    switch (t) {
    case EP_DT_BF16:
        return set->from_bf16;
    case EP_DT_F16:
        return set->from_f16;
    case EP_DT_F8_E5M2:
        return set->from_e5m2;
    default:
        return set->from_e4m3;
    }
}

static ep_convert_fn *encoder(const struct ep_convert_set *set, enum ep_dtype t)
{
    switch (t) {
    case EP_DT_BF16:
        return set->to_bf16;
    case EP_DT_F16:
        return set->to_f16;
    case EP_DT_F8_E5M2:
        return set->to_e5m2;
    default:
        return set->to_e4m3;
    }
}

void ep_decode_f32(enum ep_dtype t, const void *src, float *dst, size_t n)
{
    const struct ep_convert_set *set = set_now();

    if (!n)
        return;
    if (t == EP_DT_F32)
        memcpy(dst, src, n * sizeof *dst);
    else if (t == EP_DT_F64)
        set->narrow(src, dst, n);
    else
        decoder(set, t)(src, dst, n);
}

void ep_encode_f32(enum ep_dtype t, const float *src, void *dst, size_t n)
{
    const struct ep_convert_set *set = set_now();

    if (!n)
        return;
    if (t == EP_DT_F32)
        memcpy(dst, src, n * sizeof *src);
    else if (t == EP_DT_F64)
        set->widen(src, dst, n);
    else
        encoder(set, t)(src, dst, n);
}

void ep_decode_f64(enum ep_dtype t, const void *src, double *dst, size_t n)
{
    const struct ep_convert_set *set = set_now();
    const unsigned char *s = src;
    size_t bytes = ep_dtype_bits(t) / 8;
    float stage[STAGE];

    if (!n)
        return;
    if (t == EP_DT_F64) {
        memcpy(dst, src, n * sizeof *dst);
        return;
    }
    if (t == EP_DT_F32) {
        set->widen(src, dst, n);
        return;
    }
    for (size_t at = 0; at < n; at += STAGE) {
        size_t k = n - at < STAGE ? n - at : STAGE;

        decoder(set, t)(s + at * bytes, stage, k);
        set->widen(stage, dst + at, k);
    }
}

void ep_encode_f64(enum ep_dtype t, const double *src, void *dst, size_t n)
{
    const struct ep_convert_set *set = set_now();
    unsigned char *d = dst;
    size_t bytes = ep_dtype_bits(t) / 8;
    float stage[STAGE];

    if (!n)
        return;
    if (t == EP_DT_F64) {
        memcpy(dst, src, n * sizeof *src);
        return;
    }
    if (t == EP_DT_F32) {
        set->narrow(src, dst, n);
        return;
    }
    for (size_t at = 0; at < n; at += STAGE) {
        size_t k = n - at < STAGE ? n - at : STAGE;

        set->odd(src + at, stage, k);
        encoder(set, t)(stage, d + at * bytes, k);
    }
}

size_t ep_first_nonfinite_f32(const float *v, size_t n)
{
    size_t i = set_now()->finite_f32(v, n);

    while (i < n && __builtin_isfinite(v[i]))
        i++;
    return i;
}

size_t ep_first_nonfinite_f64(const double *v, size_t n)
{
    size_t i = set_now()->finite_f64(v, n);

    while (i < n && __builtin_isfinite(v[i]))
        i++;
    return i;
}
