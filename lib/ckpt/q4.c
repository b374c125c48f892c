/* SPDX-License-Identifier: Apache-2.0 */
/*
 * q4.c - see q4.h.
 *
 * Loops of constant length over one block, without branches, compiled for the
 * baseline and for AVX2 (as gcc 12 compiles them, AVX-512 gains nothing).
 * Division and multiplication are those of IEEE 754 and one operation per
 * result, so the bits do not depend on the level.
 */
#include "config.h"

#include "ckpt/q4.h"

#include "base/simd.h"

#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

enum { BLOCK = EP_Q4_BLOCK, BYTES = EP_Q4_BLOCK_BYTES };

/* The last place of a float of this size is 1: adding it rounds to integer. */
#define MAGIC 0x1.8p23F

INLINE uint32_t bits_of(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

INLINE float float_of(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof f);
    return f;
}

/* The integer nearest to x (ties to even), not beyond 7 either way. */
INLINE int32_t nearest(float x)
{
    int32_t q = (int32_t)(bits_of(x + MAGIC) - bits_of(MAGIC));

    q = q < 7 ? q : 7;
    return q > -7 ? q : -7;
}

INLINE void encode_block(const float *restrict v, unsigned char *restrict dst)
{
    int8_t q[BLOCK];
    int32_t most = 0;
    float scale, by;

    for (size_t i = 0; i < BLOCK; i++) {
        int32_t a = (int32_t)(bits_of(v[i]) & 0x7fffffff);

        most = most > a ? most : a;
    }
    scale = float_of((uint32_t)most) / 7;
    memcpy(dst, &scale, sizeof scale);
    /* where scale is 0, all values are below four of the smallest float */
    by = scale > 0 ? scale : 1;
    for (size_t i = 0; i < BLOCK; i++)
        q[i] = (int8_t)nearest(v[i] / by);
    for (size_t i = 0; i < BLOCK / 2; i++) {
        uint16_t two;

        memcpy(&two, q + 2 * i, sizeof two);
        dst[4 + i] = (unsigned char)((two & 15) | (two >> 4 & 0xf0));
    }
}

INLINE void decode_block(const unsigned char *restrict src, float *restrict v)
{
    int8_t q[BLOCK];
    float scale;

    memcpy(&scale, src, sizeof scale);
    for (size_t i = 0; i < BLOCK / 2; i++) {
        unsigned b = src[4 + i];
        uint16_t two = (uint16_t)((b & 15) | (b & 0xf0) << 4);

        memcpy(q + 2 * i, &two, sizeof two);
    }
    for (size_t i = 0; i < BLOCK; i++)
        v[i] = (float)((q[i] ^ 8) - 8) * scale;
}

/* Over whole blocks, for one level. */
#define ENCODE(name, target)                                                   \
    target static void name(const float *v, size_t blocks, unsigned char *dst) \
    {                                                                          \
        for (size_t b = 0; b < blocks; b++)                                    \
            encode_block(v + b * BLOCK, dst + b * BYTES);                      \
    }

#define DECODE(name, target)                                                   \
    target static void name(const unsigned char *src, size_t blocks, float *v) \
    {                                                                          \
        for (size_t b = 0; b < blocks; b++)                                    \
            decode_block(src + b * BYTES, v + b * BLOCK);                      \
    }

ENCODE(encode_portable, )
DECODE(decode_portable, )

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))

ENCODE(encode_avx2, AVX2)
DECODE(decode_avx2, AVX2)
#endif

static void encode(const float *v, size_t blocks, unsigned char *dst)
{
#if defined(__x86_64__)
    if (ep_simd_level() >= EP_SIMD_AVX2) {
        encode_avx2(v, blocks, dst);
        return;
    }
#endif
    encode_portable(v, blocks, dst);
}

static void decode(const unsigned char *src, size_t blocks, float *v)
{
#if defined(__x86_64__)
    if (ep_simd_level() >= EP_SIMD_AVX2) {
        decode_avx2(src, blocks, v);
        return;
    }
#endif
    decode_portable(src, blocks, v);
}

size_t ep_q4_bytes(size_t n)
{
    return (n / BLOCK + (n % BLOCK != 0)) * BYTES;
}

void ep_q4_encode(const float *v, size_t n, void *dst)
{
    size_t whole = n / BLOCK, rest = n % BLOCK;
    unsigned char *d = dst;

    encode(v, whole, d);
    if (rest) {
        float last[BLOCK] = {0};

        memcpy(last, v + whole * BLOCK, rest * sizeof *last);
        encode(last, 1, d + whole * BYTES);
    }
}

void ep_q4_decode(const void *src, float *v, size_t n)
{
    size_t whole = n / BLOCK, rest = n % BLOCK;
    const unsigned char *s = src;

    decode(s, whole, v);
    if (rest) {
        float last[BLOCK];

        decode(s + whole * BYTES, 1, last);
        memcpy(v + whole * BLOCK, last, rest * sizeof *last);
    }
}

/* What is wrong with a block of k values, or NULL. */
static const char *block_fault(const unsigned char *src, size_t k)
{
    const uint64_t ones = UINT64_C(0x1111111111111111);
    uint64_t seen = 0;
    uint32_t scale;

    memcpy(&scale, src, sizeof scale);
    if ((scale & 0x7fffffff) >= 0x7f800000)
        return "scale is not finite";
    if (scale >> 31)
        return "scale is negative";
    for (size_t i = 0; i < BLOCK / 16; i++) {
        uint64_t x;

        /* a nibble of -8 becomes 0, and the subtraction borrows there first */
        memcpy(&x, src + 4 + 8 * i, sizeof x);
        x ^= ones << 3;
        seen |= (x - ones) & ~x & ones << 3;
    }
    if (seen)
        return "value of -8";
    for (size_t i = k; i < BLOCK; i++)
        if (src[4 + i / 2] >> 4 * (i % 2) & 15)
            return "value beyond the end";
    return NULL;
}

int ep_q4_check(const void *src, size_t n, struct ep_error *err)
{
    const unsigned char *s = src;

    for (size_t b = 0; b * BLOCK < n; b++) {
        size_t left = n - b * BLOCK;
        const char *fault =
            block_fault(s + b * BYTES, left < BLOCK ? left : BLOCK);

        if (fault)
            return ep_error_set(err, EP_EFORMAT, "block %zu: %s", b, fault);
    }
    return 0;
}
