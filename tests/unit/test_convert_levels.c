/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_convert_levels.c - the kernels of all levels give the same bits, for
 * any number of elements at any address, and write nothing else.
 */
#include "config.h"

#include "base/simd.h"
#include "ckpt/convert.h"

#include "tap.h"

#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const enum ep_dtype types[] = {EP_DT_F64,  EP_DT_F32,     EP_DT_F16,
                                      EP_DT_BF16, EP_DT_F8_E5M2, EP_DT_F8_E4M3};

enum { TYPES = sizeof types / sizeof *types, MANY = 1 << 18, LONGEST = 200 };

static unsigned char raw[8 * MANY];
static float singles[MANY];
static double doubles[MANY];
static unsigned char first[8 * MANY], other[8 * MANY];

static uint64_t state = 20260302;

static uint64_t random_bits(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15U);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/* One of the four conversions, of n elements from in to out. */
static void convert(int way, enum ep_dtype t, const void *in, void *out,
                    size_t n)
{
    switch (way) {
    case 0:
        ep_decode_f32(t, in, out, n);
        break;
    case 1:
        ep_decode_f64(t, in, out, n);
        break;
    case 2:
        ep_encode_f32(t, in, out, n);
        break;
    default:
        ep_encode_f64(t, in, out, n);
        break;
    }
}

static const char *const way_name[] = {"to f32", "to f64", "from f32",
                                       "from f64"};

static size_t out_bytes(int way, enum ep_dtype t)
{
    return way == 0 ? 4 : way == 1 ? 8 : ep_dtype_bits(t) / 8;
}

static size_t in_bytes(int way, enum ep_dtype t)
{
    return way == 2 ? 4 : way == 3 ? 8 : ep_dtype_bits(t) / 8;
}

/*
 * All 65536 upper halves of a float, with lower halves that are 0, near the
 * middle or random: every exponent, subnormals, infinities and NaNs. Doubles:
 * those, moved a little or not at all, and any bits.
 */
static void fill(void)
{
    static const uint32_t low[] = {0, 0x8000, 0x7fff};

    for (size_t i = 0; i < MANY; i++) {
        uint64_t r = random_bits(), d = random_bits();
        uint32_t u = (uint32_t)(i & 0xffff) << 16;

        u |= i >> 16 < 3 ? low[i >> 16] : (uint32_t)(r & 0xffff);
        memcpy(singles + i, &u, 4);
        if (r >> 62) {
            double x = (double)singles[i];

            memcpy(&d, &x, 8);
            d += (r >> 60 & 3) - 1;
        }
        memcpy(doubles + i, &d, 8);
        memcpy(raw + 8 * i, &r, 8);
    }
    for (unsigned i = 0; i < 65536; i++) {
        uint16_t h = (uint16_t)i;

        memcpy(raw + 2 * (size_t)i, &h, 2);
    }
}

static void test_levels(int way, enum ep_dtype t)
{
    size_t bytes = MANY * out_bytes(way, t), bad = 0;
    const void *in = way == 2 ? (const void *)singles : (const void *)doubles;

    if (way < 2)
        in = raw;
    ep_simd_limit(EP_SIMD_PORTABLE);
    convert(way, t, in, first, MANY);
    for (int l = EP_SIMD_AVX2; l <= EP_SIMD_AVX512; l++) {
        ep_simd_limit((enum ep_simd)l);
        memset(other, 0x5a, bytes);
        convert(way, t, in, other, MANY);
        if (!memcmp(first, other, bytes))
            continue;
        for (size_t i = 0; i < bytes; i++)
            if (first[i] != other[i] && !bad++)
                printf("# %s %s, %s: element %zu\n", ep_dtype_name(t),
                       way_name[way], ep_simd_name(ep_simd_level()),
                       i / out_bytes(way, t));
    }
    ok(bad == 0);
}

/* n elements, shifted by so many bytes, are what whole arrays gave. */
static bool part_is_right(int way, enum ep_dtype t, size_t n, size_t shift)
{
    static const float zero[2];
    static _Alignas(8) unsigned char src[8 * LONGEST + 8];
    static _Alignas(8) unsigned char dst[8 * LONGEST + 32];
    size_t in = in_bytes(way, t), out = out_bytes(way, t);
    size_t from = (n * 37 + shift) % (MANY - LONGEST);
    unsigned char *to = dst + 8 + (way >= 2 ? shift : 0);
    unsigned char *s = src + (way < 2 ? shift : 0);
    const unsigned char *all = way < 2    ? raw
                               : way == 2 ? (const unsigned char *)singles
                                          : (const unsigned char *)doubles;
    bool right;

    memcpy(s, all + from * in, n * in);
    memset(dst, 0xc3, sizeof dst);
    convert(way, t, n ? s : (const void *)zero, to, n);
    right = !memcmp(to, first + from * out, n * out);
    for (int i = 0; i < 8; i++)
        right = right && to[-1 - i] == 0xc3 && to[n * out + (size_t)i] == 0xc3;
    return right;
}

static void test_parts(int way, enum ep_dtype t)
{
    int bad = 0;

    for (int l = EP_SIMD_PORTABLE; l <= EP_SIMD_AVX512; l++) {
        ep_simd_limit((enum ep_simd)l);
        for (size_t n = 0; n <= LONGEST; n++)
            for (size_t shift = 0; shift < 8; shift += n % 3 + 1)
                if (!part_is_right(way, t, n, shift) && !bad++)
                    printf("# %s %s, %s: n %zu, shift %zu\n", ep_dtype_name(t),
                           way_name[way], ep_simd_name(ep_simd_level()), n,
                           shift);
    }
    ok(bad == 0);
}

/* n plain numbers with one that is not finite at each place in turn. */
static int misplaced(size_t n)
{
    static const double odd_ones[] = {HUGE_VAL, -HUGE_VAL, (double)NAN,
                                      -(double)NAN};
    static float f[700];
    static double d[700];
    int bad = 0;

    for (size_t i = 0; i < n; i++) {
        f[i] = i % 2 ? -FLT_MAX : FLT_TRUE_MIN * (float)i;
        d[i] = i % 2 ? DBL_MAX : -DBL_TRUE_MIN * (double)i;
    }
    bad += ep_first_nonfinite_f32(f, n) != n;
    bad += ep_first_nonfinite_f64(d, n) != n;
    for (size_t i = 0; i < n; i++) {
        float keep = f[i];
        double keep64 = d[i];

        f[i] = (float)odd_ones[i % 4];
        d[i] = odd_ones[i % 4];
        /* a later one does not matter */
        f[n - 1] = i + 1 < n && i % 3 == 0 ? (float)NAN : f[n - 1];
        bad += ep_first_nonfinite_f32(f, n) != i;
        bad += ep_first_nonfinite_f64(d, n) != i;
        f[n - 1] = 1;
        f[i] = keep;
        d[i] = keep64;
    }
    return bad;
}

static void test_nonfinite(void)
{
    static const size_t sizes[] = {0,   1,   2,   63,  64,  65,
                                   127, 128, 256, 257, 511, 700};

    for (int l = EP_SIMD_PORTABLE; l <= EP_SIMD_AVX512; l++) {
        ep_simd_limit((enum ep_simd)l);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            ok(misplaced(sizes[i]) == 0);
    }
}

int main(void)
{
    printf("# seed %llu\n", (unsigned long long)state);
    fill();
    for (int way = 0; way < 4; way++)
        for (size_t k = 0; k < TYPES; k++) {
            test_levels(way, types[k]);
            test_parts(way, types[k]);
        }
    test_nonfinite();
    return tap_done();
}
