/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_fuse.h - kernels that do in one pass over a block what the generic way
 * (merge_kernel.c) does in five to seven: for merge_arith.c only, which
 * includes it once.
 *
 * Each exists per level of base/simd.h: merge_fuse_body.h, compiled with the
 * macros below. Conversions are intrinsics, since gcc 12 turns
 * __builtin_convertvector between vectors of other sizes into several steps.
 */
#ifndef EP_LSGD_MERGE_FUSE_H
#define EP_LSGD_MERGE_FUSE_H

#include "lsgd/merge_impl.h"

#include <math.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 8")
#endif

/*
 * Ask for what is needed 2 KiB later: the hardware loses its way where one
 * block of many inputs follows the other, and at each page.
 */
#define AHEAD(p) __builtin_prefetch((const char *)(p) + 2048)

#define CAT2_(a, b) a##_##b
#define CAT2(a, b) CAT2_(a, b)
#define NAME(verb) CAT2(verb, LEVEL)

enum { MERGE_SUMS = 16 }; /* partial sums of a norm: outer.h */

/* Bits of the largest float that does not round beyond type t. */
static inline __attribute__((always_inline)) int32_t limit_of(enum ep_dtype t)
{
    switch (t) {
    case EP_DT_BF16:
        return 0x7f7f7fff;
    case EP_DT_F16:
        return 0x477fefff;
    default:
        return 0x7f7fffff;
    }
}

static inline __attribute__((always_inline)) size_t size_of(enum ep_dtype t)
{
    return t == EP_DT_F32 ? 4 : 2;
}

#define LEVEL portable
#define VECTOR_BYTES 16
#define TARGET
#ifdef __x86_64__
#define BF16_LOAD(p)                                                           \
    _mm_unpacklo_epi16(_mm_setzero_si128(), _mm_loadl_epi64((const void *)(p)))
#define WIDE_LOW(v) _mm_cvtps_pd((__m128)(v))
#define WIDE_HIGH(v) _mm_cvtps_pd(_mm_movehl_ps((__m128)(v), (__m128)(v)))
#define NARROW_STORE(p, v)                                                     \
    _mm_storel_pi((void *)(p), _mm_cvtpd_ps((__m128d)(v)))
#else
typedef uint16_t half_portable
    __attribute__((vector_size(8), aligned(1), may_alias));
typedef uint32_t word_portable __attribute__((vector_size(16)));
typedef float two_portable
    __attribute__((vector_size(8), aligned(4), may_alias));
typedef double wide_portable __attribute__((vector_size(16)));
#define BF16_LOAD(p)                                                           \
    (__builtin_convertvector(*(const half_portable *)(p), word_portable) << 16)
#define WIDE_LOW(v)                                                            \
    __builtin_convertvector(((two_portable){(v)[0], (v)[1]}), wide_portable)
#define WIDE_HIGH(v)                                                           \
    __builtin_convertvector(((two_portable){(v)[2], (v)[3]}), wide_portable)
#define NARROW_STORE(p, v)                                                     \
    (*(two_portable *)(void *)(p) = __builtin_convertvector(v, two_portable))
#endif
#include "lsgd/merge_fuse_body.h"
#undef LEVEL
#undef VECTOR_BYTES
#undef TARGET
#undef BF16_LOAD
#undef WIDE_LOW
#undef WIDE_HIGH
#undef NARROW_STORE

#ifdef __x86_64__
#define LEVEL avx2
#define VECTOR_BYTES 32
#define TARGET __attribute__((target("avx2,f16c")))
#define BF16_LOAD(p)                                                           \
    _mm256_slli_epi32(                                                         \
        _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(p))), 16)
#define F16_LOAD(p) _mm256_cvtph_ps(_mm_loadu_si128((const void *)(p)))
#define F16_STORE(p, v)                                                        \
    _mm_storeu_si128((void *)(p),                                              \
                     _mm256_cvtps_ph((__m256)(v), _MM_FROUND_TO_NEAREST_INT))
#define WIDE_LOW(v) _mm256_cvtps_pd(_mm256_castps256_ps128((__m256)(v)))
#define WIDE_HIGH(v) _mm256_cvtps_pd(_mm256_extractf128_ps((__m256)(v), 1))
#define NARROW_STORE(p, v) _mm_storeu_ps(p, _mm256_cvtpd_ps((__m256d)(v)))
#include "lsgd/merge_fuse_body.h"
#undef LEVEL
#undef VECTOR_BYTES
#undef TARGET
#undef BF16_LOAD
#undef F16_LOAD
#undef F16_STORE
#undef WIDE_LOW
#undef WIDE_HIGH
#undef NARROW_STORE

#define LEVEL avx512
#define VECTOR_BYTES 64
#define TARGET                                                                 \
    __attribute__((target("avx2,f16c,avx512f,avx512bw,avx512dq,avx512vl")))
#define BF16_LOAD(p)                                                           \
    _mm512_slli_epi32(                                                         \
        _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)(p))), 16)
#define F16_LOAD(p) _mm512_cvtph_ps(_mm256_loadu_si256((const void *)(p)))
#define F16_STORE(p, v)                                                        \
    _mm256_storeu_si256(                                                       \
        (void *)(p), _mm512_cvtps_ph((__m512)(v), _MM_FROUND_TO_NEAREST_INT))
#define WIDE_LOW(v) _mm512_cvtps_pd(_mm512_castps512_ps256((__m512)(v)))
#define WIDE_HIGH(v) _mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)(v), 1))
#define NARROW_STORE(p, v) _mm256_storeu_ps(p, _mm512_cvtpd_ps((__m512d)(v)))
#include "lsgd/merge_fuse_body.h"
#endif

#endif
