/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fp_pow10.h - powers of ten to 128 bits, for fp_parse.c and fp_print.c only.
 *
 * Entry k, EP_FP_POW10_MIN <= k <= EP_FP_POW10_MAX, is
 *
 *     T(k) = floor(10^k 2^(127 - L(k))),  L(k) = floor(log2(10^k)),
 *
 * so that 2^127 <= T(k) < 2^128. It is exact for 0 <= k <= 55 and less than 1
 * too small otherwise. The table is written, and these facts are checked, by
 * tests/gen/fp_pow10.py; tests/unit/test_fp.c recomputes entries.
 */
#ifndef EP_BASE_FP_POW10_H
#define EP_BASE_FP_POW10_H

#include <stdbool.h>
#include <stdint.h>

#define EP_FP_POW10_MIN (-342)
#define EP_FP_POW10_MAX 324
#define EP_FP_POW10_N (EP_FP_POW10_MAX - EP_FP_POW10_MIN + 1)

/* [EP_FP_POW10_N][2]: the high, then the low 64 bits of T(k). */
extern const uint64_t ep_fp_pow10[2 * EP_FP_POW10_N];

/* L(k); 217706 / 2^16 is log2(10) closely enough for all k of the table. */
static inline int ep_fp_log2_pow10(int k)
{
    /* biased, to shift no negative number */
    return (int)(((uint32_t)(k * 217706) + (UINT32_C(1200) << 16)) >> 16) -
           1200;
}

static inline bool ep_fp_pow10_exact(int k)
{
    return k >= 0 && k <= 55;
}

#endif
