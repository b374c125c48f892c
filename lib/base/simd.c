/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simd.c - see simd.h.
 *
 * __builtin_cpu_supports also asks whether the operating system saves the
 * wide registers. F16C is asked of cpuid: clang 14 does not know its name.
 */
#include "config.h"

#include "base/simd.h"

#include <stdatomic.h>
#include <stdbool.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* What ep_simd_level answers; -1 until the processor was asked. */
static atomic_int level_now = -1;

#if defined(__x86_64__)
static bool has_f16c(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static enum ep_simd ask(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !has_f16c())
        return EP_SIMD_PORTABLE;
    if (__builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return EP_SIMD_AVX512;
    return EP_SIMD_AVX2;
}
#else
static enum ep_simd ask(void)
{
    return EP_SIMD_PORTABLE;
}
#endif

enum ep_simd ep_simd_level(void)
{
    int now = atomic_load_explicit(&level_now, memory_order_relaxed);

    if (now < 0) {
        /* Two threads may both get here; they write the same. */
        now = (int)ask();
        atomic_store_explicit(&level_now, now, memory_order_relaxed);
    }
    return (enum ep_simd)now;
}

void ep_simd_limit(enum ep_simd most)
{
    enum ep_simd have = ask();

    atomic_store_explicit(&level_now, (int)(have < most ? have : most),
                          memory_order_relaxed);
}

const char *ep_simd_name(enum ep_simd level)
{
    switch (level) {
    case EP_SIMD_AVX512:
        return "avx512";
    case EP_SIMD_AVX2:
        return "avx2";
    default:
        return "portable";
    }
}
