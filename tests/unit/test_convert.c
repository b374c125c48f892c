/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_convert.c - element types against a slow reference, at every level.
 *
 * The reference knows a format by its number of bits. It decodes with ldexp on
 * the fields, and encodes by searching the table of all finite values: the
 * nearer of two neighbours, the one with an even code in the middle, which a
 * double represents exactly.
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

struct format {
    enum ep_dtype type;
    int exp, mant;
    bool inf; /* else the largest exponent is an ordinary one, but for NaN */
};

static const struct format formats[] = {
    {EP_DT_BF16, 8, 7, true},
    {EP_DT_F16, 5, 10, true},
    {EP_DT_F8_E5M2, 5, 2, true},
    {EP_DT_F8_E4M3, 4, 3, false},
};

enum { FORMATS = sizeof formats / sizeof *formats, CODES = 32768 };

/* Of one format: the values of codes 0, 1, ... that are finite, rising. */
static double table[CODES];
static int values;

/* Inputs for an encoder, and the codes that the reference gives. */
enum { MAX_INPUTS = 200000 };
static double in64[MAX_INPUTS];
static float in32[MAX_INPUTS];
static uint16_t want[MAX_INPUTS];
static unsigned char got[2 * MAX_INPUTS];

static uint64_t state = 20260301;

static uint64_t random_bits(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15U);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

static int sign_bit(const struct format *f)
{
    return 1 << (f->exp + f->mant);
}

static double ref_decode(const struct format *f, int code)
{
    int bias = (1 << (f->exp - 1)) - 1;
    int e = code >> f->mant & ((1 << f->exp) - 1);
    int m = code & ((1 << f->mant) - 1);
    double v;

    if (e == (1 << f->exp) - 1 && f->inf)
        v = m ? (double)NAN : HUGE_VAL;
    else if (e == (1 << f->exp) - 1 && m == (1 << f->mant) - 1)
        v = (double)NAN;
    else if (e == 0)
        v = ldexp(m, 1 - bias - f->mant);
    else
        v = ldexp((1 << f->mant) + m, e - bias - f->mant);
    return code & sign_bit(f) ? -v : v;
}

static void fill_table(const struct format *f)
{
    values = 0;
    while (isfinite(ref_decode(f, values))) {
        table[values] = ref_decode(f, values);
        values++;
    }
}

/* The code of x; for a NaN that of one, which the caller does not compare. */
static int ref_encode(const struct format *f, double x)
{
    double a = fabs(x), mid, next;
    int low = 0, high = values, sign = signbit(x) ? sign_bit(f) : 0;

    if (isnan(x))
        return sign | (sign_bit(f) - 1);
    while (high - low > 1) {
        int at = (low + high) / 2;

        if (table[at] <= a)
            low = at;
        else
            high = at;
    }
    /* beyond the last there is one more step, were the exponent wider */
    next = low + 1 < values ? table[low + 1] : 2 * table[low] - table[low - 1];
    mid = table[low] / 2 + next / 2;
    if (a > mid || (a == mid && low % 2))
        low++;
    if (low == values && !f->inf)
        low--;
    return sign | low;
}

static bool is_nan_code(const struct format *f, int code)
{
    return isnan(ref_decode(f, code));
}

static int code_at(const struct format *f, const unsigned char *p, size_t i)
{
    uint16_t h;

    if (ep_dtype_bits(f->type) == 8)
        return p[i];
    memcpy(&h, p + 2 * i, 2);
    return h;
}

/* Same value and sign; NaNs of one sign are the same. */
static bool same(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) && !signbit(a) == !signbit(b);
    return a == b && !signbit(a) == !signbit(b);
}

static void test_decode(const struct format *f)
{
    static unsigned char codes[4 * CODES];
    static float f32[2 * CODES];
    static double f64[2 * CODES];
    int n = 2 * sign_bit(f), bad32 = 0, bad64 = 0, bad_back = 0;

    for (int c = 0; c < n; c++) {
        uint16_t h = (uint16_t)c;

        memcpy(codes + (size_t)c * (ep_dtype_bits(f->type) / 8), &h,
               ep_dtype_bits(f->type) / 8);
    }
    ep_decode_f32(f->type, codes, f32, (size_t)n);
    ep_decode_f64(f->type, codes, f64, (size_t)n);
    ep_encode_f32(f->type, f32, got, (size_t)n);
    for (int c = 0; c < n; c++) {
        int back = code_at(f, got, (size_t)c);

        bad32 += !same((double)f32[c], ref_decode(f, c));
        bad64 += !same(f64[c], ref_decode(f, c));
        if (is_nan_code(f, c))
            bad_back += !is_nan_code(f, back) || ((back ^ c) & sign_bit(f));
        else
            bad_back += back != c;
    }
    printf("# %s, all %d codes\n", ep_dtype_name(f->type), n);
    ok(bad32 == 0);
    ok(bad64 == 0);
    ok(bad_back == 0);
}

/* Compare got with want, where NaN stands for any NaN of its sign. */
static int mismatches(const struct format *f, const double *x, size_t n)
{
    int bad = 0;

    for (size_t i = 0; i < n; i++) {
        int c = code_at(f, got, i);
        bool nan = is_nan_code(f, want[i]);

        if (nan ? is_nan_code(f, c) && !((c ^ want[i]) & sign_bit(f))
                : c == want[i])
            continue;
        if (!bad++)
            printf("# %s of %a: got %#x, want %#x\n", ep_dtype_name(f->type),
                   x[i], (unsigned)c, (unsigned)want[i]);
    }
    return bad;
}

/* Encode n doubles of in64 at every level; want is already there. */
static int encode_64(const struct format *f, size_t n)
{
    int bad = 0;

    for (int l = EP_SIMD_PORTABLE; l <= EP_SIMD_AVX512; l++) {
        ep_simd_limit((enum ep_simd)l);
        memset(got, 0xa5, 2 * n);
        ep_encode_f64(f->type, in64, got, n);
        bad += mismatches(f, in64, n);
    }
    return bad;
}

/* in32 holds the same numbers as in64. */
static int encode_32(const struct format *f, size_t n)
{
    int bad = 0;

    for (int l = EP_SIMD_PORTABLE; l <= EP_SIMD_AVX512; l++) {
        ep_simd_limit((enum ep_simd)l);
        memset(got, 0xa5, 2 * n);
        ep_encode_f32(f->type, in32, got, n);
        bad += mismatches(f, in64, n);
    }
    return bad;
}

/* All middles between neighbours, and the numbers next to them. */
static void test_middles(const struct format *f, bool use_float)
{
    size_t n = 0;

    for (int c = 0; c < values; c++) {
        double next =
            c + 1 < values ? table[c + 1] : 2 * table[c] - table[c - 1];
        double mid = table[c] / 2 + next / 2;

        for (int k = 0; k < 3; k++) {
            double to = k == 0 ? 0 : HUGE_VAL;
            double x = mid;

            if (k != 1)
                x = use_float ? (double)nextafterf((float)mid, (float)to)
                              : nextafter(mid, to);
            in64[n] = x;
            in64[n + 1] = -x;
            n += 2;
        }
    }
    for (size_t i = 0; i < n; i++) {
        in32[i] = (float)in64[i];
        want[i] = (uint16_t)ref_encode(f, in64[i]);
    }
    ok(n > 2 && encode_64(f, n) == 0);
    if (use_float)
        ok(encode_32(f, n) == 0);
}

/* Random numbers, their exponents spread over what the format has. */
static void test_random(const struct format *f)
{
    size_t n = 30000;
    int low = ilogb(table[1]) - 3, span = ilogb(table[values - 1]) + 3 - low;

    for (size_t i = 0; i < n; i++) {
        double m = 1 + (double)(random_bits() >> 12) * 0x1p-52;
        int e = low + (int)(random_bits() % (unsigned)span);

        in64[i] = (random_bits() & 1 ? -1 : 1) * ldexp(m, e);
        want[i] = (uint16_t)ref_encode(f, in64[i]);
    }
    ok(encode_64(f, n) == 0);
    for (size_t i = 0; i < n; i++) {
        in32[i] = (float)in64[i];
        in64[i] = (double)in32[i];
        want[i] = (uint16_t)ref_encode(f, in64[i]);
    }
    ok(encode_32(f, n) == 0);
}

/* Worked by hand from the table at the head of convert.h. */
static const struct {
    enum ep_dtype type;
    double x;
    int code;
} cases[] = {
    {EP_DT_F16, 0.0, 0},
    {EP_DT_F16, -0.0, 0x8000},
    {EP_DT_F16, 1.0, 0x3c00},
    {EP_DT_F16, 65504, 0x7bff},
    {EP_DT_F16, 65519.99, 0x7bff},
    {EP_DT_F16, 65520, 0x7c00},
    {EP_DT_F16, -1e30, 0xfc00},
    {EP_DT_F16, 1e300, 0x7c00},
    {EP_DT_F16, -HUGE_VAL, 0xfc00},
    {EP_DT_F16, 0x1p-14, 0x0400},
    {EP_DT_F16, 0x1p-24, 1},
    {EP_DT_F16, 0x1p-25, 0},
    {EP_DT_F16, 0x1.000001p-25, 1},
    {EP_DT_F16, -0x3p-25, 0x8002},
    {EP_DT_F16, DBL_TRUE_MIN, 0},
    {EP_DT_F16, 0x1.002p0, 0x3c00},         /* middle: even */
    {EP_DT_F16, 0x1.006p0, 0x3c02},         /* middle: even */
    {EP_DT_F16, 0x1.00200000001p0, 0x3c01}, /* float would drop the 1 */
    {EP_DT_F16, 0x1.005ffffffffp0, 0x3c01}, /* float would round up */
    {EP_DT_F16, 0x1.0000000000001p-25, 1},  /* subnormal likewise */
    {EP_DT_BF16, 1.0, 0x3f80},
    {EP_DT_BF16, -0.0, 0x8000},
    {EP_DT_BF16, 0x1.01p0, 0x3f80},           /* middle: even */
    {EP_DT_BF16, 0x1.03p0, 0x3f82},           /* middle: even */
    {EP_DT_BF16, 0x1.01000000001p0, 0x3f81},  /* float would drop the 1 */
    {EP_DT_BF16, 0x1.02ffffffffffp0, 0x3f81}, /* float would round up */
    {EP_DT_BF16, 0x1p-133, 1},
    {EP_DT_BF16, 0x1p-134, 0},
    {EP_DT_BF16, 0x1.0000000000001p-134, 1},
    {EP_DT_BF16, -0x1.7ffffffffffffp-133, 0x8001},
    {EP_DT_BF16, -0x1.8p-133, 0x8002},
    {EP_DT_BF16, -DBL_TRUE_MIN, 0x8000},
    {EP_DT_BF16, 0x1.fep127, 0x7f7f},
    {EP_DT_BF16, 0x1.fefffffffffffp127, 0x7f7f},
    {EP_DT_BF16, 0x1.ffp127, 0x7f80},
    {EP_DT_BF16, FLT_MAX, 0x7f80},
    {EP_DT_BF16, -DBL_MAX, 0xff80},
    {EP_DT_BF16, HUGE_VAL, 0x7f80},
    {EP_DT_F8_E5M2, 57344, 0x7b},
    {EP_DT_F8_E5M2, 61439.9, 0x7b},
    {EP_DT_F8_E5M2, 61440, 0x7c},
    {EP_DT_F8_E5M2, -HUGE_VAL, 0xfc},
    {EP_DT_F8_E5M2, -1e300, 0xfc},
    {EP_DT_F8_E5M2, 0x1p-16, 1},
    {EP_DT_F8_E5M2, 0x1p-17, 0},
    {EP_DT_F8_E5M2, 0x1.0000000000001p-17, 1},
    {EP_DT_F8_E5M2, 0x1.2p0, 0x3c}, /* middle: even */
    {EP_DT_F8_E5M2, 0x1.2000000000001p0, 0x3d},
    {EP_DT_F8_E5M2, -0.0, 0x80},
    {EP_DT_F8_E4M3, 448, 0x7e},
    {EP_DT_F8_E4M3, 464, 0x7e},
    {EP_DT_F8_E4M3, 465, 0x7e},
    {EP_DT_F8_E4M3, 480, 0x7e},
    {EP_DT_F8_E4M3, -1e30, 0xfe},
    {EP_DT_F8_E4M3, 1e300, 0x7e},
    {EP_DT_F8_E4M3, HUGE_VAL, 0x7e},
    {EP_DT_F8_E4M3, -HUGE_VAL, 0xfe},
    {EP_DT_F8_E4M3, 432, 0x7e}, /* middle of 416, 448 */
    {EP_DT_F8_E4M3, 431.999, 0x7d},
    {EP_DT_F8_E4M3, 0x1p-6, 8},
    {EP_DT_F8_E4M3, 0x1p-9, 1},
    {EP_DT_F8_E4M3, 0x1p-10, 0},
    {EP_DT_F8_E4M3, 0x1.0000000000001p-10, 1},
    {EP_DT_F8_E4M3, 1e-40, 0},
    {EP_DT_F8_E4M3, -0.0, 0x80},
};

static void test_cases(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float single = (float)cases[i].x;
        unsigned char from64[2] = {0}, from32[2] = {0};
        const unsigned char *b = from64;

        ep_encode_f64(cases[i].type, &cases[i].x, from64, 1);
        ep_encode_f32(cases[i].type, &single, from32, 1);
        if (!ok((b[0] | b[1] << 8) == cases[i].code))
            printf("# case %zu: %s of %a: got %#x\n", i,
                   ep_dtype_name(cases[i].type), cases[i].x,
                   (unsigned)(b[0] | b[1] << 8));
        if ((double)single == cases[i].x)
            ok(!memcmp(from32, from64, 2));
    }
}

static void test_nan(void)
{
    static const uint64_t nans[] = {
        UINT64_C(0x7ff8000000000000), UINT64_C(0xfff8000000000000),
        UINT64_C(0x7ff0000000000001), UINT64_C(0xfff0000000000001),
        UINT64_C(0x7fffffffffffffff), UINT64_C(0xffffffffffffffff),
    };
    int bad = 0;

    for (size_t k = 0; k < FORMATS; k++) {
        const struct format *f = formats + k;

        for (size_t i = 0; i < 6; i++) {
            uint32_t u = (uint32_t)(nans[i] >> 32) | (nans[i] & 1);

            u |= i >= 2 ? 0x7f800000 : 0;
            in64[i] = (double)(i % 2 ? -NAN : NAN);
            want[i] = (uint16_t)ref_encode(f, in64[i]);
            memcpy(in64 + i, nans + i, 8);
            memcpy(in32 + i, &u, 4);
        }
        bad += encode_64(f, 6) + encode_32(f, 6);
    }
    ok(bad == 0);
}

/* x rounded to 24 bits, or fewer where float has them, by rint. */
static double ref_float(double x)
{
    int last = x == 0 ? 0 : ilogb(x) - 23;
    double r;

    if (!isfinite(x))
        return x;
    last = last < -149 ? -149 : last;
    r = ldexp(rint(ldexp(x, -last)), last);
    return fabs(r) >= 0x1p128 ? copysign(HUGE_VAL, x) : r;
}

static void test_wide(void)
{
    size_t n = 20000;
    int bad = 0;
    static float narrow[20000], narrow2[20000];
    static double wide[20000];

    for (size_t i = 0; i < n; i++) {
        double m = 1 + (double)(random_bits() >> 12) * 0x1p-52;

        /* every fourth in the middle of two floats */
        if (i % 4 == 0)
            m = 1 + (double)(random_bits() >> 40 | 1) * 0x1p-24;
        in64[i] = (random_bits() & 1 ? -1 : 1) *
                  ldexp(m, (int)(random_bits() % 300) - 165);
    }
    in64[0] = HUGE_VAL;
    in64[1] = -0.0;
    in64[2] = 0x1.ffffffp127;
    ep_decode_f32(EP_DT_F64, in64, narrow, n);
    ep_encode_f64(EP_DT_F32, in64, narrow2, n);
    ep_decode_f64(EP_DT_F32, narrow, wide, n);
    for (size_t i = 0; i < n; i++)
        bad += !same((double)narrow[i], ref_float(in64[i])) ||
               !same((double)narrow2[i], ref_float(in64[i])) ||
               !same(wide[i], ref_float(in64[i]));
    ok(bad == 0);
    ep_encode_f32(EP_DT_F64, narrow, in64, n);
    ok(!memcmp(in64, wide, n * sizeof *wide));

    /* equal types keep all bits, of a signalling NaN too */
    for (size_t i = 0; i < n; i++) {
        uint64_t u = random_bits() | (i % 2 ? 0 : UINT64_C(0x7ff) << 52);

        memcpy(wide + i, &u, 8);
    }
    ep_encode_f64(EP_DT_F64, wide, in64, n);
    ok(!memcmp(in64, wide, n * sizeof *wide));
    ep_decode_f64(EP_DT_F64, in64, wide, n);
    ok(!memcmp(in64, wide, n * sizeof *wide));
    ep_decode_f32(EP_DT_F32, wide, narrow, n);
    ok(!memcmp(narrow, wide, n * sizeof *narrow));
    ep_encode_f32(EP_DT_F32, narrow, narrow2, n);
    ok(!memcmp(narrow2, wide, n * sizeof *narrow));
}

static void test_types(void)
{
    static const char *const real[] = {"F64",  "F32",     "F16",
                                       "BF16", "F8_E4M3", "F8_E5M2"};
    int reals = 0, bad = 0;

    for (int t = 0; t < EP_DTYPES; t++) {
        const char *name = ep_dtype_name((enum ep_dtype)t);
        struct ep_span s = {name, strlen(name)};

        bad += ep_dtype_find(s) != t;
        reals += ep_dtype_is_real((enum ep_dtype)t);
    }
    ok(bad == 0);
    ok(reals == 6);
    for (size_t i = 0; i < 6; i++) {
        struct ep_span s = {real[i], strlen(real[i])};

        ok(ep_dtype_is_real((enum ep_dtype)ep_dtype_find(s)));
    }
    ok(ep_dtype_find((struct ep_span){"bf16", 4}) == -1);
    ok(ep_dtype_find((struct ep_span){"F640", 4}) == -1);
    ok(ep_dtype_find((struct ep_span){"", 0}) == -1);
    ok(ep_dtype_find((struct ep_span){"F640", 3}) == EP_DT_F64);
    ok(ep_dtype_bits(EP_DT_F4) == 4 && ep_dtype_bits(EP_DT_F6_E2M3) == 6);
    ok(ep_dtype_bits(EP_DT_BOOL) == 8 && ep_dtype_bits(EP_DT_BF16) == 16);
    ok(ep_dtype_bits(EP_DT_F32) == 32 && ep_dtype_bits(EP_DT_C64) == 64);
}

int main(void)
{
    printf("# seed %llu\n", (unsigned long long)state);
    test_types();
    for (int l = EP_SIMD_PORTABLE; l <= EP_SIMD_AVX512; l++) {
        ep_simd_limit((enum ep_simd)l);
        if (ep_simd_level() != (enum ep_simd)l)
            continue; /* not on this processor */
        printf("# level %s\n", ep_simd_name(ep_simd_level()));
        for (size_t k = 0; k < FORMATS; k++)
            test_decode(formats + k);
        test_cases();
        test_wide();
    }
    for (size_t k = 0; k < FORMATS; k++) {
        fill_table(formats + k);
        test_middles(formats + k, true);
        test_middles(formats + k, false);
        test_random(formats + k);
    }
    test_nan();
    return tap_done();
}
