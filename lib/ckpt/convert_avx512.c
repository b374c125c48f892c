/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert_avx512.c - the kernels of convert_impl.h for AVX-512 (F, BW, DQ, VL).
 *
 * As convert_avx2.c; lanes are chosen by masks. The instructions of
 * AVX512_BF16 are not used: they take subnormals for 0.
 */
#include "config.h"

#include "ckpt/convert_impl.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX512                                                                 \
    __attribute__((target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")))
#define INLINE AVX512 EP_CONVERT_INLINE

/* 32 F16 to float, times scale if that is not 1. */
INLINE void put_f16(__m512i h, float scale, float *dst)
{
    __m512 a = _mm512_cvtph_ps(_mm512_castsi512_si256(h));
    __m512 b = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(h, 1));

    if (scale != 1) {
        a = _mm512_mul_ps(a, _mm512_set1_ps(scale));
        b = _mm512_mul_ps(b, _mm512_set1_ps(scale));
    }
    _mm512_storeu_ps(dst, a);
    _mm512_storeu_ps(dst + 16, b);
}

INLINE void from_f16_16(const void *src, void *dst)
{
    _mm512_storeu_ps(dst, _mm512_cvtph_ps(_mm256_loadu_si256(src)));
}

INLINE void from_e5m2_32(const void *src, void *dst)
{
    __m512i b = _mm512_cvtepu8_epi16(_mm256_loadu_si256(src));

    put_f16(_mm512_slli_epi16(b, 8), 1, dst);
}

INLINE void from_e4m3_32(const void *src, void *dst)
{
    const __m512i largest = _mm512_set1_epi16(0x7f << 7);
    __m512i b = _mm512_cvtepu8_epi16(_mm256_loadu_si256(src));
    __m512i a = _mm512_and_si512(_mm512_slli_epi16(b, 7), largest);
    __mmask32 nan = _mm512_cmpeq_epi16_mask(a, largest);
    __m512i sign =
        _mm512_and_si512(_mm512_slli_epi16(b, 8), _mm512_set1_epi16(-0x8000));

    a = _mm512_mask_mov_epi16(a, nan, _mm512_set1_epi16(0x7e00));
    put_f16(_mm512_or_si512(a, sign), 256, dst);
}

/* As ep_cv_to_bf16, but for the shift. */
INLINE __m512i round_bf16(__m512 x)
{
    __m512i u = _mm512_castps_si512(x);
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    __m512i last =
        _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    __m512i half = _mm512_add_epi32(last, _mm512_set1_epi32(0x7fff));

    return _mm512_mask_or_epi32(_mm512_add_epi32(u, half), nan, u,
                                _mm512_set1_epi32(0x400000));
}

/* The numbers 2i + 1, of the upper halves among the halves of 32 numbers. */
static const uint16_t upper[32] = {
    1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
    33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63,
};

INLINE void to_bf16_32(const void *src, void *dst)
{
    const float *s = src;
    __m512i a = round_bf16(_mm512_loadu_ps(s));
    __m512i b = round_bf16(_mm512_loadu_ps(s + 16));
    __m512i order = _mm512_loadu_si512(upper);

    _mm512_storeu_si512(dst, _mm512_permutex2var_epi16(a, order, b));
}

INLINE void to_f16_16(const void *src, void *dst)
{
    _mm256_storeu_si256(
        dst, _mm512_cvtps_ph(_mm512_loadu_ps(src), _MM_FROUND_TO_NEAREST_INT));
}

/* 16 float, times scale, to F16, rounded to odd. */
INLINE __m256i odd_f16(const float *s, float scale)
{
    const __m256i one = _mm256_set1_epi16(1);
    __m512 x = _mm512_mul_ps(_mm512_loadu_ps(s), _mm512_set1_ps(scale));
    __m256i h = _mm512_cvtps_ph(x, _MM_FROUND_TO_ZERO);
    __mmask16 inexact = _mm512_cmp_ps_mask(_mm512_cvtph_ps(h), x, _CMP_NEQ_UQ);

    return _mm256_or_si256(h, _mm256_maskz_mov_epi16(inexact, one));
}

/*
 * Cut the mantissa of 32 F16 by so many bits, not above the code most; a NaN
 * has the bits nan beside those of most.
 */
INLINE void put_f8(__m512i h, int cut, int most, int nan, void *dst)
{
    const __m512i one = _mm512_set1_epi16(1);
    __m512i a = _mm512_and_si512(h, _mm512_set1_epi16(0x7fff));
    __mmask32 is_nan = _mm512_cmpgt_epi16_mask(a, _mm512_set1_epi16(0x7c00));
    __m512i last = _mm512_and_si512(_mm512_srli_epi16(a, (unsigned)cut), one);
    __m512i half = _mm512_set1_epi16((short)((1 << (cut - 1)) - 1));
    __m512i r = _mm512_add_epi16(a, _mm512_add_epi16(last, half));
    __m512i sign =
        _mm512_and_si512(_mm512_srli_epi16(h, 8), _mm512_set1_epi16(0x80));

    r = _mm512_min_epu16(_mm512_srli_epi16(r, (unsigned)cut),
                         _mm512_set1_epi16((short)most));
    r = _mm512_mask_mov_epi16(r, is_nan,
                              _mm512_set1_epi16((short)(most | nan)));
    _mm256_storeu_si256(dst, _mm512_cvtepi16_epi8(_mm512_or_si512(r, sign)));
}

INLINE __m512i join(__m256i low, __m256i high)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

INLINE void to_e5m2_32(const void *src, void *dst)
{
    const float *s = src;

    put_f8(join(odd_f16(s, 1), odd_f16(s + 16, 1)), 8, 0x7c, 2, dst);
}

INLINE void to_e4m3_32(const void *src, void *dst)
{
    const float *s = src;

    put_f8(join(odd_f16(s, 0x1p-8F), odd_f16(s + 16, 0x1p-8F)), 7, 0x7e, 1,
           dst);
}

/* gcc 12 makes two steps of the loop over these. */
INLINE void widen_8(const void *src, void *dst)
{
    _mm512_storeu_pd(dst, _mm512_cvtps_pd(_mm256_loadu_ps(src)));
}

INLINE void narrow_8(const void *src, void *dst)
{
    _mm256_storeu_ps(dst, _mm512_cvtpd_ps(_mm512_loadu_pd(src)));
}

EP_CONVERT_LOOP(from_bf16, AVX512, ep_cv_from_bf16, uint16_t, uint32_t)
EP_CONVERT_STEPS(from_f16, AVX512, from_f16_16, 16, ep_cv_from_f16, uint16_t,
                 uint32_t)
EP_CONVERT_STEPS(from_e5m2, AVX512, from_e5m2_32, 32, ep_cv_from_e5m2, uint8_t,
                 uint32_t)
EP_CONVERT_STEPS(from_e4m3, AVX512, from_e4m3_32, 32, ep_cv_from_e4m3, uint8_t,
                 uint32_t)
EP_CONVERT_STEPS(to_bf16, AVX512, to_bf16_32, 32, ep_cv_to_bf16, uint32_t,
                 uint16_t)
EP_CONVERT_STEPS(to_f16, AVX512, to_f16_16, 16, ep_cv_to_f16, uint32_t,
                 uint16_t)
EP_CONVERT_STEPS(to_e5m2, AVX512, to_e5m2_32, 32, ep_cv_to_e5m2, uint32_t,
                 uint8_t)
EP_CONVERT_STEPS(to_e4m3, AVX512, to_e4m3_32, 32, ep_cv_to_e4m3, uint32_t,
                 uint8_t)
EP_CONVERT_STEPS(widen, AVX512, widen_8, 8, ep_cv_widen, float, double)
EP_CONVERT_STEPS(narrow, AVX512, narrow_8, 8, ep_cv_narrow, double, float)
EP_CONVERT_LOOP(odd, AVX512, ep_cv_odd, double, float)
EP_CONVERT_FINITE(finite_f32, AVX512, float, uint32_t, 1U << 23)
EP_CONVERT_FINITE(finite_f64, AVX512, double, uint64_t, UINT64_C(1) << 52)

const struct ep_convert_set ep_convert_avx512 = {
    from_bf16, from_f16, from_e5m2, from_e4m3, to_bf16,    to_f16,     to_e5m2,
    to_e4m3,   widen,    narrow,    odd,       finite_f32, finite_f64,
};

#endif
