/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd.h - which vector instructions the kernels may use, chosen at run time.
 *
 * A kernel exists in up to three forms that give the same bits: portable (the
 * baseline of the architecture), AVX2 (with F16C, without FMA contraction) and
 * AVX-512 (F, BW, DQ, VL). Nothing is compiled with -march=native.
 */
#ifndef EP_BASE_SIMD_H
#define EP_BASE_SIMD_H

enum ep_simd {
    EP_SIMD_PORTABLE,
    EP_SIMD_AVX2,
    EP_SIMD_AVX512,
};

/*
 * The best level that this processor has and that ep_simd_limit allows. The
 * processor is asked once; safe to call from several threads. Cost: a load.
 */
enum ep_simd ep_simd_level(void);

/*
 * Use no level above this from now on, in the whole process: for tests and
 * benchmarks, which compare the forms. Call it while no kernel runs.
 */
void ep_simd_limit(enum ep_simd most);

/* "portable", "avx2", "avx512". */
const char *ep_simd_name(enum ep_simd level);

#endif
