/* SPDX-License-Identifier: Apache-2.0 */
/*
 * q4.h - 4-bit exchange of parameter differences.
 *
 * Blocks of 64 values (the last may be shorter), each 36 bytes:
 *
 *     0      4                                   36
 *     | scale | 32 bytes, value i in nibble i     |
 *     | f32le | (i even: low half), two's complement in [-7, 7] |
 *
 *     scale = max_i |v_i| / 7,  q_i = rint(v_i / scale),  decoded q_i scale
 *
 * all in float, rounded to nearest, ties to even; scale 0 gives q = 0. The
 * error is at most scale / 2 (and the rounding of the product), except where
 * scale is subnormal: it may then be too small by rounding, and q is cut to
 * [-7, 7]. In a short last block the missing values are 0. 0.141 of the bytes
 * of float.
 * The same input gives the same bytes, and the same bytes the same floats, on
 * every machine and at every level of base/simd.h: two replicas that apply the
 * same differences stay equal bit for bit.
 */
#ifndef EP_CKPT_Q4_H
#define EP_CKPT_Q4_H

#include "base/err.h"

#include <stddef.h>

enum { EP_Q4_BLOCK = 64, EP_Q4_BLOCK_BYTES = 36 };

/* Bytes of n values: 36 ceil(n / 64). n <= SIZE_MAX / 2. */
size_t ep_q4_bytes(size_t n);

/*
 * v       [n] float, finite (a NaN or an infinity makes its block garbage that
 *         ep_q4_check refuses)
 * dst     [ep_q4_bytes(n)] bytes, written; no alignment needed
 * Cost: O(n).
 */
void ep_q4_encode(const float *v, size_t n, void *dst);

/* The reverse. src [ep_q4_bytes(n)] bytes, v [n] written. */
void ep_q4_decode(const void *src, float *v, size_t n);

/*
 * Can it be decoded to finite values within the rules? EP_EFORMAT "block N:
 * reason", N from 0: a scale that is negative (-0 too) or not finite, a nibble
 * of -8, a missing value that is not 0. Cost: O(n); no branch per value.
 */
int ep_q4_check(const void *src, size_t n, struct ep_error *err) EP_MUST_USE;

#endif
