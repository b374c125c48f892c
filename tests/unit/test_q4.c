/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_q4.c - 4-bit blocks against the formula, written apart in double.
 */
#include "config.h"

#include "base/simd.h"
#include "ckpt/q4.h"

#include "tap.h"

#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 4096, MAX_BYTES = 36 * MAX_VALUES / 64 };

static uint64_t state = 20260303;

static uint64_t random_bits(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15U);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/*
 * A quotient of floats that is rounded to double and then to float is rounded
 * well: 53 >= 2 x 24 + 2 (Figueroa, "When is double rounding innocuous?",
 * SIGNUM Newsletter 30(3), 1995).
 */
static float quotient(float a, float b)
{
    return (float)((double)a / (double)b);
}

static void ref_block(const float *v, size_t n, unsigned char *dst)
{
    float most = 0, scale;

    for (size_t i = 0; i < n; i++)
        if (fabsf(v[i]) > most)
            most = fabsf(v[i]);
    scale = quotient(most, 7);
    memset(dst, 0, 36);
    memcpy(dst, &scale, 4);
    for (size_t i = 0; i < n && scale > 0; i++) {
        double q = rint((double)quotient(v[i], scale));

        q = fmin(fmax(q, -7), 7);
        dst[4 + i / 2] |= (unsigned char)(((int)q & 15) << (i % 2 ? 4 : 0));
    }
}

static void ref_encode(const float *v, size_t n, unsigned char *dst)
{
    for (size_t at = 0; at < n; at += 64)
        ref_block(v + at, n - at < 64 ? n - at : 64, dst + at / 64 * 36);
}

static float ref_value(const unsigned char *src, size_t i)
{
    const unsigned char *block = src + i / 64 * 36;
    int q = block[4 + i % 64 / 2] >> (i % 2 ? 4 : 0) & 15;
    float scale;

    memcpy(&scale, block, 4);
    /* exact in double: 3 + 24 bits */
    return (float)((double)(q < 8 ? q : q - 16) * (double)scale);
}

/* Random floats; the largest of a block is about 2^-spread to 2^spread. */
static void fill(float *v, size_t n, int spread)
{
    int e = 0;

    for (size_t i = 0; i < n; i++) {
        double m = (double)(random_bits() >> 11) * 0x1p-53;

        if (i % 64 == 0)
            e = (int)(random_bits() % (unsigned)(2 * spread + 1)) - spread;
        if (random_bits() % 16 == 0)
            m = (double)(random_bits() % 15) / 7; /* ties, zeros */
        /* below 2^128 */
        v[i] = (float)ldexp(random_bits() & 1 ? -m : m, e < 126 ? e : 126);
    }
}

static bool same_float(float a, float b)
{
    uint32_t x, y;

    memcpy(&x, &a, 4);
    memcpy(&y, &b, 4);
    return x == y;
}

/* Encode, compare, decode, compare: n values with guards about them. */
static bool agrees(const float *v, size_t n, size_t shift)
{
    static unsigned char want[MAX_BYTES + 64];
    static unsigned char got[MAX_BYTES + 64];
    static float back[MAX_VALUES + 2];
    size_t bytes = (n + 63) / 64 * 36;
    unsigned char *g = got + 1 + shift;

    ref_encode(v, n, want);
    memset(got, 0xc3, sizeof got);
    ep_q4_encode(v, n, g);
    if (ep_q4_bytes(n) != bytes || memcmp(g, want, bytes) != 0 ||
        g[-1] != 0xc3 || g[bytes] != 0xc3)
        return false;
    if (ep_q4_check(g, n, NULL))
        return false;
    back[0] = back[n + 1] = 42;
    ep_q4_decode(g, back + 1, n);
    for (size_t i = 0; i < n; i++)
        if (!same_float(back[i + 1], ref_value(want, i)))
            return false;
    return same_float(back[0], 42) && same_float(back[n + 1], 42);
}

static void test_random(void)
{
    static float v[MAX_VALUES];
    int bad = 0;

    for (size_t n = 0; n <= 260; n++) {
        fill(v, n, 20);
        bad += !agrees(v, n, n % 4);
    }
    ok(bad == 0);
    bad = 0;
    for (int round = 0; round < 40; round++) {
        fill(v, MAX_VALUES, round < 20 ? 3 : 148);
        bad += !agrees(v, MAX_VALUES, 0);
    }
    ok(bad == 0);
}

/* |v - decoded| <= scale / 2, and what was decoded gives the same nibbles. */
static void test_error(void)
{
    static float v[MAX_VALUES], back[MAX_VALUES];
    static unsigned char one[MAX_BYTES], two[MAX_BYTES];
    double worst = 0, drift = 0;
    int other = 0;

    fill(v, MAX_VALUES, 100);
    ep_q4_encode(v, MAX_VALUES, one);
    ep_q4_decode(one, back, MAX_VALUES);
    ep_q4_encode(back, MAX_VALUES, two);
    for (size_t i = 0; i < MAX_VALUES; i++) {
        float scale;

        memcpy(&scale, one + i / 64 * 36, 4);
        if (scale > 0)
            worst = fmax(worst,
                         fabs((double)v[i] - (double)back[i]) / (double)scale);
    }
    for (size_t b = 0; b < MAX_BYTES; b += 36) {
        float s1, s2;

        memcpy(&s1, one + b, 4);
        memcpy(&s2, two + b, 4);
        drift = fmax(drift, fabs((double)s2 / (double)s1 - 1));
        other += memcmp(one + b + 4, two + b + 4, 32) != 0;
    }
    printf("# worst error %.9g scale, scale moves by %.3g\n", worst, drift);
    /* 7 scale and v / scale are rounded: 7 x 2^-24 each */
    ok(worst > 0.4 && worst <= 0.5 + 14 * 0x1p-24);
    ok(drift <= 0x1p-23);
    ok(other == 0);
}

/* Values that are worked by hand: one block of those, the rest 0. */
static void test_special(void)
{
    static const float hand[8] = {7, -7, 0.5F, 1.5F, -2.5F, 3.49F, -0.0F, 1};
    static const unsigned char nibbles[4] = {0x97, 0x20, 0x3e, 0x10};
    static const float tiny[][2] = {
        {FLT_TRUE_MIN, -FLT_TRUE_MIN},
        {3 * FLT_TRUE_MIN, -3 * FLT_TRUE_MIN},   /* scale rounds to 0 */
        {4 * FLT_TRUE_MIN, -FLT_TRUE_MIN},       /* scale rounds up */
        {10 * FLT_TRUE_MIN, -10 * FLT_TRUE_MIN}, /* down: q is cut */
        {FLT_MIN, -FLT_MIN / 3},
        {FLT_MAX, -FLT_MAX},
        {FLT_MAX, FLT_MIN},
        {-0.0F, -0.0F},
        {1, -0.0F},
    };
    unsigned char got[36];
    float v[64] = {0}, back[64], scale;

    memcpy(v, hand, sizeof hand);
    ep_q4_encode(v, 64, got);
    memcpy(&scale, got, 4);
    ok(same_float(scale, 1));
    ok(!memcmp(got + 4, nibbles, 4));
    for (size_t k = 0; k < sizeof tiny / sizeof *tiny; k++) {
        memset(v, 0, sizeof v);
        v[0] = tiny[k][0];
        v[63] = tiny[k][1];
        ok(agrees(v, 64, 0));
    }
    memset(v, 0, sizeof v);
    v[5] = 10 * FLT_TRUE_MIN;
    ep_q4_encode(v, 64, got);
    ep_q4_decode(got, back, 64);
    ok(same_float(back[5], 7 * FLT_TRUE_MIN));

    /* a value that is not finite cannot pass */
    for (int k = 0; k < 4; k++) {
        v[17] = (k & 1 ? -1.0F : 1.0F) * (k & 2 ? (float)NAN : HUGE_VALF);
        ep_q4_encode(v, 64, got);
        ok(ep_q4_check(got, 64, NULL) == EP_EFORMAT);
    }
}

static void refused(const unsigned char *packed, size_t n, const char *msg)
{
    struct ep_error err;

    ok(ep_q4_check(packed, n, &err) == EP_EFORMAT);
    ok(err.code == EP_EFORMAT);
    if (!ok(!strcmp(err.msg, msg)))
        printf("# got '%s', want '%s'\n", err.msg, msg);
}

static void put_scale(unsigned char *packed, size_t block, float scale)
{
    memcpy(packed + 36 * block, &scale, 4);
}

static void test_check(void)
{
    static unsigned char good[36 * 3], bad[36 * 3];
    float v[130];
    int missed = 0;

    fill(v, 130, 2);
    v[129] = v[128] = 1;
    ep_q4_encode(v, 130, good);
    ok(ep_q4_check(good, 130, NULL) == 0);
    ok(ep_q4_check(good, 0, NULL) == 0);

    memcpy(bad, good, sizeof bad);
    put_scale(bad, 1, -1);
    refused(bad, 130, "block 1: scale is negative");
    ok(ep_q4_check(bad, 64, NULL) == 0); /* not looked at */
    put_scale(bad, 1, -0.0F);
    refused(bad, 130, "block 1: scale is negative");
    put_scale(bad, 0, HUGE_VALF);
    refused(bad, 130, "block 0: scale is not finite");
    put_scale(bad, 0, -HUGE_VALF);
    refused(bad, 130, "block 0: scale is not finite");
    put_scale(bad, 0, (float)NAN);
    refused(bad, 130, "block 0: scale is not finite");

    /* -8 at every place; then something beyond the end at every place */
    for (size_t i = 0; i < 128; i++) {
        unsigned char *p = bad + i / 64 * 36 + 4 + i % 64 / 2;

        memcpy(bad, good, sizeof bad);
        *p = (unsigned char)(i % 2 ? (*p & 0x0f) | 0x80 : (*p & 0xf0) | 8);
        missed += ep_q4_check(bad, 130, NULL) != EP_EFORMAT;
    }
    refused(bad, 130, "block 1: value of -8");
    for (size_t i = 2; i < 64; i++) {
        memcpy(bad, good, sizeof bad);
        bad[72 + 4 + i / 2] |= i % 2 ? 0x10 : 0x01;
        missed += ep_q4_check(bad, 130, NULL) != EP_EFORMAT;
        missed += ep_q4_check(bad, 192, NULL) != 0; /* not beyond it */
    }
    ok(missed == 0);
    refused(bad, 130, "block 2: value beyond the end");
}

static void test_bytes(void)
{
    ok(ep_q4_bytes(0) == 0);
    ok(ep_q4_bytes(1) == 36);
    ok(ep_q4_bytes(64) == 36);
    ok(ep_q4_bytes(65) == 72);
    ok(ep_q4_bytes(70426624) == 39614976); /* 0.141 of 281706496 */
}

int main(void)
{
    printf("# seed %llu\n", (unsigned long long)state);
    test_bytes();
    for (int l = EP_SIMD_PORTABLE; l <= EP_SIMD_AVX512; l++) {
        ep_simd_limit((enum ep_simd)l);
        if (ep_simd_level() != (enum ep_simd)l)
            continue; /* not on this processor */
        printf("# level %s\n", ep_simd_name(ep_simd_level()));
        test_random();
        test_error();
        test_special();
        test_check();
    }
    return tap_done();
}
