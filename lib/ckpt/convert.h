/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.h - elements of a checkpoint to float or double and back.
 *
 *     type     sign exponent mantissa  bias  largest       infinities
 *     F64      1    11       52        1023  1.8e308       yes
 *     F32      1     8       23         127  3.4e38        yes
 *     BF16     1     8        7         127  3.39e38       yes
 *     F16      1     5       10          15  65504         yes
 *     F8_E5M2  1     5        2          15  57344         yes
 *     F8_E4M3  1     4        3           7  448           no (OCP "FN")
 *
 * (F8: Micikevicius et al., "FP8 formats for deep learning", arXiv
 * 2209.05433, section 3.) Decoding is exact, except F64 to float, which
 * rounds. Encoding rounds once, to nearest, ties to even, subnormals
 * included; what rounds beyond the largest becomes an infinity, or in F8_E4M3
 * (infinities included) the largest of its sign. A NaN stays a NaN of its
 * sign; its payload is not kept, except between equal types. Nothing depends
 * on the rounding mode being other than the default; no flush to zero.
 *
 * Elements are little-endian and need no alignment in a checkpoint; float and
 * double arrays are aligned as usual. Source and destination do not overlap.
 * The result has the same bits at every level of base/simd.h.
 *
 * t is a type of ep_dtype_is_real(); n may be 0. Nothing fails or allocates.
 * Cost: near the speed of memory (tests/bench/bench_merge).
 */
#ifndef EP_CKPT_CONVERT_H
#define EP_CKPT_CONVERT_H

#include "ckpt/dtype.h"

#include <stddef.h>

void ep_decode_f32(enum ep_dtype t, const void *src, float *dst, size_t n);
void ep_decode_f64(enum ep_dtype t, const void *src, double *dst, size_t n);
void ep_encode_f32(enum ep_dtype t, const float *src, void *dst, size_t n);
void ep_encode_f64(enum ep_dtype t, const double *src, void *dst, size_t n);

/*
 * Index of the first NaN or infinity, n if there is none. Cost: as a pass
 * over v.
 *
 * v       [n] float / double
 */
size_t ep_first_nonfinite_f32(const float *v, size_t n);
size_t ep_first_nonfinite_f64(const double *v, size_t n);

#endif
