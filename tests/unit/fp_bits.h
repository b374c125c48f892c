/* SPDX-License-Identifier: Apache-2.0 */
/* fp_bits.h - doubles as bits, and random ones: for test_fp*.c. */
#ifndef EP_TEST_FP_BITS_H
#define EP_TEST_FP_BITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SEED UINT64_C(20240917)

static uint64_t rng = SEED;

/* splitmix64 */
static inline uint64_t next(void)
{
    uint64_t z = rng += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t bits_of(double x)
{
    uint64_t b;

    memcpy(&b, &x, sizeof b);
    return b;
}

static inline double of_bits(uint64_t b)
{
    double x;

    memcpy(&x, &b, sizeof x);
    return x;
}

static inline bool same(double a, double b)
{
    return bits_of(a) == bits_of(b);
}

#endif
