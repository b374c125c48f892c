/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert_avx2.c - the kernels of convert_impl.h for AVX2 with F16C.
 *
 * The 8-bit types go through F16, which has room for both: F8_E5M2 is its
 * upper half, and F8_E4M3 times 2^-8 has the exponents and the subnormals of
 * F16. Towards 8 bits the step to F16 rounds to odd (see ep_cv_odd), and the
 * rest is done on 16 elements at once.
 */
#include "config.h"

#include "ckpt/convert_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,f16c")))
#define INLINE AVX2 EP_CONVERT_INLINE

INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

INLINE void store(void *p, __m256i v)
{
    _mm256_storeu_si256(p, v);
}

INLINE void from_bf16_16(const void *src, void *dst)
{
    const unsigned char *s = src;
    unsigned char *d = dst;
    __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)s));
    __m256i b = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(s + 16)));

    store(d, _mm256_slli_epi32(a, 16));
    store(d + 32, _mm256_slli_epi32(b, 16));
}

/* 16 F16 to float, times scale if that is not 1. */
INLINE void put_f16(__m256i h, float scale, float *dst)
{
    __m256 a = _mm256_cvtph_ps(_mm256_castsi256_si128(h));
    __m256 b = _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1));

    if (scale != 1) {
        a = _mm256_mul_ps(a, _mm256_set1_ps(scale));
        b = _mm256_mul_ps(b, _mm256_set1_ps(scale));
    }
    _mm256_storeu_ps(dst, a);
    _mm256_storeu_ps(dst + 8, b);
}

INLINE void from_f16_16(const void *src, void *dst)
{
    put_f16(load(src), 1, dst);
}

INLINE void from_e5m2_16(const void *src, void *dst)
{
    __m256i b = _mm256_cvtepu8_epi16(_mm_loadu_si128(src));

    put_f16(_mm256_slli_epi16(b, 8), 1, dst);
}

INLINE void from_e4m3_16(const void *src, void *dst)
{
    const __m256i largest = _mm256_set1_epi16(0x7f << 7);
    __m256i b = _mm256_cvtepu8_epi16(_mm_loadu_si128(src));
    __m256i a = _mm256_and_si256(_mm256_slli_epi16(b, 7), largest);
    __m256i nan = _mm256_cmpeq_epi16(a, largest);
    __m256i sign =
        _mm256_and_si256(_mm256_slli_epi16(b, 8), _mm256_set1_epi16(-0x8000));

    a = _mm256_blendv_epi8(a, _mm256_set1_epi16(0x7e00), nan);
    put_f16(_mm256_or_si256(a, sign), 256, dst);
}

/* As ep_cv_to_bf16, but for the shift. */
INLINE __m256i round_bf16(__m256 x)
{
    __m256i u = _mm256_castps_si256(x);
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    __m256i last =
        _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
    __m256i half = _mm256_add_epi32(last, _mm256_set1_epi32(0x7fff));
    __m256i quiet = _mm256_and_si256(nan, _mm256_set1_epi32(0x400000));

    u = _mm256_add_epi32(u, _mm256_andnot_si256(nan, half));
    return _mm256_or_si256(u, quiet);
}

INLINE void to_bf16_16(const void *src, void *dst)
{
    const float *s = src;
    __m256i a = _mm256_srli_epi32(round_bf16(_mm256_loadu_ps(s)), 16);
    __m256i b = _mm256_srli_epi32(round_bf16(_mm256_loadu_ps(s + 8)), 16);

    /* the pack works within halves of 128 bits */
    store(dst, _mm256_permute4x64_epi64(_mm256_packus_epi32(a, b), 0xd8));
}

INLINE void to_f16_8(const void *src, void *dst)
{
    _mm_storeu_si128(
        dst, _mm256_cvtps_ph(_mm256_loadu_ps(src), _MM_FROUND_TO_NEAREST_INT));
}

/* 16 float, times scale, to F16, rounded to odd. */
INLINE __m256i odd_f16(const float *s, float scale)
{
    __m256 x = _mm256_mul_ps(_mm256_loadu_ps(s), _mm256_set1_ps(scale));
    __m256 y = _mm256_mul_ps(_mm256_loadu_ps(s + 8), _mm256_set1_ps(scale));
    __m128i hx = _mm256_cvtps_ph(x, _MM_FROUND_TO_ZERO);
    __m128i hy = _mm256_cvtps_ph(y, _MM_FROUND_TO_ZERO);
    __m256 dx = _mm256_cmp_ps(_mm256_cvtph_ps(hx), x, _CMP_NEQ_UQ);
    __m256 dy = _mm256_cmp_ps(_mm256_cvtph_ps(hy), y, _CMP_NEQ_UQ);
    __m256i inexact =
        _mm256_packs_epi32(_mm256_castps_si256(dx), _mm256_castps_si256(dy));

    inexact = _mm256_srli_epi16(_mm256_permute4x64_epi64(inexact, 0xd8), 15);
    return _mm256_or_si256(_mm256_set_m128i(hy, hx), inexact);
}

/*
 * Cut the mantissa of 16 F16 by so many bits, not above the code most; a NaN
 * has the bits nan beside those of most.
 */
INLINE void put_f8(__m256i h, int cut, int most, int nan, void *dst)
{
    const __m256i one = _mm256_set1_epi16(1);
    __m256i a = _mm256_and_si256(h, _mm256_set1_epi16(0x7fff));
    __m256i is_nan = _mm256_cmpgt_epi16(a, _mm256_set1_epi16(0x7c00));
    __m256i last = _mm256_and_si256(_mm256_srli_epi16(a, cut), one);
    __m256i half = _mm256_set1_epi16((short)((1 << (cut - 1)) - 1));
    __m256i r = _mm256_add_epi16(a, _mm256_add_epi16(last, half));
    __m256i sign =
        _mm256_and_si256(_mm256_srli_epi16(h, 8), _mm256_set1_epi16(0x80));

    r = _mm256_min_epu16(_mm256_srli_epi16(r, cut),
                         _mm256_set1_epi16((short)most));
    r = _mm256_or_si256(
        r, _mm256_and_si256(is_nan, _mm256_set1_epi16((short)nan)));
    r = _mm256_or_si256(r, sign);
    r = _mm256_packus_epi16(r, r);
    _mm_storeu_si128(dst,
                     _mm256_castsi256_si128(_mm256_permute4x64_epi64(r, 0xd8)));
}

INLINE void to_e5m2_16(const void *src, void *dst)
{
    put_f8(odd_f16(src, 1), 8, 0x7c, 2, dst);
}

INLINE void to_e4m3_16(const void *src, void *dst)
{
    put_f8(odd_f16(src, 0x1p-8F), 7, 0x7e, 1, dst);
}

/* gcc 12 makes two steps of the loop over these. */
INLINE void widen_4(const void *src, void *dst)
{
    _mm256_storeu_pd(dst, _mm256_cvtps_pd(_mm_loadu_ps(src)));
}

INLINE void narrow_4(const void *src, void *dst)
{
    _mm_storeu_ps(dst, _mm256_cvtpd_ps(_mm256_loadu_pd(src)));
}

EP_CONVERT_STEPS(from_bf16, AVX2, from_bf16_16, 16, ep_cv_from_bf16, uint16_t,
                 uint32_t)
EP_CONVERT_STEPS(from_f16, AVX2, from_f16_16, 16, ep_cv_from_f16, uint16_t,
                 uint32_t)
EP_CONVERT_STEPS(from_e5m2, AVX2, from_e5m2_16, 16, ep_cv_from_e5m2, uint8_t,
                 uint32_t)
EP_CONVERT_STEPS(from_e4m3, AVX2, from_e4m3_16, 16, ep_cv_from_e4m3, uint8_t,
                 uint32_t)
EP_CONVERT_STEPS(to_bf16, AVX2, to_bf16_16, 16, ep_cv_to_bf16, uint32_t,
                 uint16_t)
EP_CONVERT_STEPS(to_f16, AVX2, to_f16_8, 8, ep_cv_to_f16, uint32_t, uint16_t)
EP_CONVERT_STEPS(to_e5m2, AVX2, to_e5m2_16, 16, ep_cv_to_e5m2, uint32_t,
                 uint8_t)
EP_CONVERT_STEPS(to_e4m3, AVX2, to_e4m3_16, 16, ep_cv_to_e4m3, uint32_t,
                 uint8_t)
EP_CONVERT_STEPS(widen, AVX2, widen_4, 4, ep_cv_widen, float, double)
EP_CONVERT_STEPS(narrow, AVX2, narrow_4, 4, ep_cv_narrow, double, float)
EP_CONVERT_LOOP(odd, AVX2, ep_cv_odd, double, float)
EP_CONVERT_FINITE(finite_f32, AVX2, float, uint32_t, 1U << 23)
EP_CONVERT_FINITE(finite_f64, AVX2, double, uint64_t, UINT64_C(1) << 52)

const struct ep_convert_set ep_convert_avx2 = {
    from_bf16, from_f16, from_e5m2, from_e4m3, to_bf16,    to_f16,     to_e5m2,
    to_e4m3,   widen,    narrow,    odd,       finite_f32, finite_f64,
};

#endif
