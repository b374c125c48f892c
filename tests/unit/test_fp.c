/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fp.c - doubles from text.
 *
 * References: hand-worked cases; the C library's strtod, exact in
 * glibc; halfway points written out by schoolbook arithmetic here.
 */
#include "config.h"

#include "base/fp.h"

#include "base/fp_pow10.h"
#include "fp_bits.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

/* ---- reading: fixed cases ---- */

static const struct {
    const char *text;
    double want;
} good_numbers[] = {
    {"0", 0},
    {"-0", -0.0},
    {"-0.0", -0.0},
    {"0e999999999999", 0},
    {"-0e-99999999999999999999", -0.0},
    {"0.000000000000000000000000", 0},
    {"1", 1},
    {"-1.5", -1.5},
    {"0.1", 0x1.999999999999ap-4},
    {"0.3", 0x1.3333333333333p-2},
    {"1730000000.123456", 0x1.9c76d2007e6b4p+30},
    {"1e22", 0x1.0f0cf064dd592p+73},
    {"1e23", 0x1.52d02c7e14af6p+76},
    {"8.41e21", 0x1.c7e83209e90b2p+72},
    {"9007199254740992", 0x1p53},
    {"9007199254740993", 0x1p53},
    {"9007199254740993.0", 0x1p53},
    {"9007199254740993e0", 0x1p53},
    {"900719925474099300000e-5", 0x1p53},
    {"9007199254740993.00000000000000000000000000001", 0x1.0000000000001p53},
    {"9007199254740992.99999999999999999999999999999", 0x1p53},
    {"9007199254740995", 0x1.0000000000002p53},
    {"9223372036854775807", 0x1p63},
    {"18446744073709551615", 0x1p64},
    {"18446744073709551616", 0x1p64},
    {"123456789012345678901234567890", 0x1.8ee90ff6c373ep+96},
    {"0.500000000000000166533453693773481063544750213623046875",
     0x1.0000000000002p-1}, /* a tie: 0.5 + 3 2^-54 */
    {"3.518437208883201171875e13", 0x1.0000000000002p+45}, /* a tie */
    {"62.5364939768271845828", 0x1.f44abd5aa7ca4p+5},
    {"5e-324", 0x1p-1074},
    {"4.9e-324", 0x1p-1074},
    {"2.5e-324", 0x1p-1074},
    {"2.4703282292062328e-324", 0x1p-1074},
    {"2.4703282292062327e-324", 0},
    {"1e-342", 0},
    {"18446744073709551615e-343", 0},
    {"18446744073709551615e-342", 0x4p-1074},
    {"-1e-400", -0.0},
    {"1e-99999999999", 0},
    {"2.2250738585072011e-308", 0x0.fffffffffffffp-1022},
    {"2.2250738585072012e-308", 0x1p-1022},
    {"2.2250738585072014e-308", 0x1p-1022},
    {"1.7976931348623157e308", DBL_MAX},
    {"1.7976931348623158e308", DBL_MAX},
    {"1.797693134862315807e308", DBL_MAX},
    {"0.00000000000000000000000000000000000000001e41", 1},
    {"1E+2", 100},
    {"1e-2", 0.01},
};

static void test_parse_table(void)
{
    for (size_t i = 0; i < sizeof good_numbers / sizeof *good_numbers; i++) {
        double x = -7;

        if (!ok(ep_fp_parse(good_numbers[i].text, strlen(good_numbers[i].text),
                            &x) == 0 &&
                same(x, good_numbers[i].want)))
            printf("# %s: got %a, want %a\n", good_numbers[i].text, x,
                   good_numbers[i].want);
    }
}

static const struct {
    const char *text;
    int want;
} bad_numbers[] = {
    {"", EP_EFORMAT},
    {"-", EP_EFORMAT},
    {"+1", EP_EFORMAT},
    {" 1", EP_EFORMAT},
    {"1 ", EP_EFORMAT},
    {"01", EP_EFORMAT},
    {"-00", EP_EFORMAT},
    {".5", EP_EFORMAT},
    {"-.5", EP_EFORMAT},
    {"5.", EP_EFORMAT},
    {"5.e1", EP_EFORMAT},
    {"1e", EP_EFORMAT},
    {"1e+", EP_EFORMAT},
    {"1e1.5", EP_EFORMAT},
    {"1.5.2", EP_EFORMAT},
    {"0x10", EP_EFORMAT},
    {"1,5", EP_EFORMAT},
    {"NaN", EP_EFORMAT},
    {"Infinity", EP_EFORMAT},
    {"--1", EP_EFORMAT},
    {"1f", EP_EFORMAT},
    {"1%0", EP_EFORMAT},
    {"1e309", EP_ERANGE},
    {"-1e309", EP_ERANGE},
    {"1e999999999999", EP_ERANGE},
    {"1.7976931348623159e308", EP_ERANGE},
    {"1.79769313486231580793728971405303415080e308", EP_ERANGE},
    {"18446744073709551615e4294967296", EP_ERANGE},
};

static void test_parse_errors(void)
{
    for (size_t i = 0; i < sizeof bad_numbers / sizeof *bad_numbers; i++) {
        double x = -7;

        if (!ok(ep_fp_parse(bad_numbers[i].text, strlen(bad_numbers[i].text),
                            &x) == bad_numbers[i].want &&
                x == -7))
            printf("# %s\n", bad_numbers[i].text);
    }
    double x = -7;
    ok(ep_fp_parse("1\0", 2, &x) == EP_EFORMAT);
}

static void test_scan(void)
{
    static const struct {
        const char *text;
        size_t used;
        uint64_t mant;
        int exp10;
        bool cut;
    } cases[] = {
        {"12x", 2, 12, 0, false},
        {"1.50s", 4, 150, -2, false},
        {".5", 2, 5, -1, false},
        {"5.", 1, 5, 0, false},
        {"007", 3, 7, 0, false},
        {"3e", 1, 3, 0, false},
        {"3e+", 1, 3, 0, false},
        {"3e-2e", 4, 3, -2, false},
        {"1e99999999999999999999", 22, 1, EP_FP_EXP_CAP, false},
        {"1.0e-99999999999999999999", 25, 10, -EP_FP_EXP_CAP - 1, false},
        {"12345678901234567890", 20, 1234567890123456789, 1, true},
        {"1234567890123456789.0", 21, 1234567890123456789, 0, true},
        {"123456789012345678.95", 21, 1234567890123456789, -1, true},
        {"0.00001234567890123456789", 25, 1234567890123456789, -23, false},
    };
    struct ep_fp_decimal d = {7, 7, true, true};

    ok(ep_fp_scan("", 0, &d) == 0 && ep_fp_scan("-", 1, &d) == 0 &&
       ep_fp_scan(".", 1, &d) == 0 && ep_fp_scan("e5", 2, &d) == 0);
    ok(d.mant == 7 && d.exp10 == 7 && d.neg && d.cut);
    ok(ep_fp_scan("1234", 2, &d) == 2 && d.mant == 12);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t used = ep_fp_scan(cases[i].text, strlen(cases[i].text), &d);

        if (!ok(used == cases[i].used && d.mant == cases[i].mant &&
                d.exp10 == cases[i].exp10 && d.cut == cases[i].cut && !d.neg))
            printf("# %s\n", cases[i].text);
    }
}

static void test_from_decimal(void)
{
    const char *tie = "9007199254740993.00000000000000000000000000001";
    struct ep_fp_decimal d = {900719925474099300, -2, false, true};

    /* a scanner may count leading zeros, or cut short: the text decides */
    ok(ep_fp_from_decimal(&d, tie, strlen(tie)) == 9007199254740994.0);
    d = (struct ep_fp_decimal){0, -5, true, true};
    ok(ep_fp_from_decimal(&d, tie, strlen(tie)) == -9007199254740994.0);
    d = (struct ep_fp_decimal){UINT64_MAX, 0, false, true};
    ok(ep_fp_from_decimal(&d, "18446744073709551615.5", 22) == 0x1p64);
    d = (struct ep_fp_decimal){0, 400, true, false};
    ok(same(ep_fp_from_decimal(&d, NULL, 0), -0.0));
    d = (struct ep_fp_decimal){1, INT32_MAX, true, false};
    ok(isinf(ep_fp_from_decimal(&d, NULL, 0)));
    d = (struct ep_fp_decimal){1, INT32_MIN, true, false};
    ok(same(ep_fp_from_decimal(&d, NULL, 0), -0.0));
}

/* ---- reading: halfway points ---- */

/*
 * The decimal digits of the point halfway between the doubles with bits and
 * bits + 1, as text "digits e exponent" without the terminator.
 */
static int half_digits(uint64_t bits, char *out, int *exp10)
{
    uint64_t m = bits & ((UINT64_C(1) << 52) - 1);
    int e = (int)(bits >> 52), n = 0;
    static unsigned char dec[1200]; /* least significant first */

    m = 2 * (e ? m | UINT64_C(1) << 52 : m) + 1;
    e = (e ? e : 1) - 1076;
    for (; m; m /= 10)
        dec[n++] = (unsigned char)(m % 10);
    *exp10 = e < 0 ? e : 0;
    for (int i = 0; i < abs(e); i++) {
        int carry = 0;

        for (int j = 0; j < n; j++) {
            carry += dec[j] * (e < 0 ? 5 : 2);
            dec[j] = (unsigned char)(carry % 10);
            carry /= 10;
        }
        if (carry)
            dec[n++] = (unsigned char)carry;
    }
    for (int i = 0; i < n; i++)
        out[i] = (char)('0' + dec[n - 1 - i]);
    return n;
}

static bool reads_as(const char *text, size_t len, uint64_t want)
{
    double x = 0;
    int rc = ep_fp_parse(text, len, &x);

    if (want << 1 >= UINT64_C(0x7ff) << 53)
        return rc == EP_ERANGE;
    return rc == 0 && bits_of(x) == want;
}

static int bad_halfway(uint64_t bits, size_t zeros)
{
    char *t = malloc(2000 + zeros);
    int exp10, bad = 0, n = half_digits(bits, t, &exp10);
    size_t len;

    /* exactly halfway: to even */
    len = (size_t)n + (size_t)sprintf(t + n, "e%d", exp10);
    bad += !reads_as(t, len, bits + (bits & 1));
    /* a little above: digits 000...0001 */
    memset(t + n, '0', zeros);
    len = (size_t)n + zeros;
    len += (size_t)sprintf(t + len, "1e%d", exp10 - (int)zeros - 1);
    bad += !reads_as(t, len, bits + 1);
    /* a little below: digits - 1, then 999...999 */
    for (char *p = t + n - 1; (*p)-- == '0'; p--)
        *p = '9';
    memset(t + n, '9', zeros);
    len = (size_t)n + zeros;
    len += (size_t)sprintf(t + len, "e%d", exp10 - (int)zeros);
    bad += !reads_as(t, len, bits);
    if (bad)
        printf("# halfway above %a\n", of_bits(bits));
    free(t);
    return bad;
}

static void test_halfway(void)
{
    const uint64_t top = bits_of(DBL_MAX);
    int bad = 0;

    for (uint64_t b = 0; b < 20; b++)
        bad += bad_halfway(b, 30);
    for (uint64_t b = bits_of(DBL_MIN) - 10; b < bits_of(DBL_MIN) + 10; b++)
        bad += bad_halfway(b, 1);
    for (uint64_t b = top - 10; b <= top; b++)
        bad += bad_halfway(b, 900);
    ok(bad == 0);
    for (int i = 0; i < 400; i++)
        bad += bad_halfway(next() % top, next() % 40);
    for (int i = 0; i < 300; i++) /* around 1: short halfway points */
        bad += bad_halfway(bits_of(1) + next() % (UINT64_C(60) << 52), 3);
    ok(bad == 0);
    ok(bad_halfway(bits_of(0x1p-1022), 1000000) == 0);
    ok(bad_halfway(bits_of(3), 1000000) == 0);
}

/* A megabyte of digits either side of the point. */
static void test_long(void)
{
    const size_t n = 1000000;
    char *t = malloc(2 * n + 100);
    size_t len;

    memset(t, '0', n);
    t[1] = '.';
    len = n + (size_t)sprintf(t + n, "125e%zu", n - 2);
    ok(reads_as(t, len, bits_of(0.125)));
    memset(t, '0', n);
    t[0] = '1';
    len = n + (size_t)sprintf(t + n, "e-%zu", n - 1);
    ok(reads_as(t, len, bits_of(1)));
    memset(t, '0', 2 * n);
    memcpy(t, "9007199254740993.", sizeof "9007199254740993.");
    t[17] = '0';
    ok(reads_as(t, 2 * n, bits_of(0x1p53)));
    t[2 * n - 1] = '1';
    ok(reads_as(t, 2 * n, bits_of(0x1.0000000000001p53)));
    memset(t, '7', 2 * n);
    ok(reads_as(t, 2 * n, UINT64_C(0x7ff) << 52));
    t[1] = '.';
    ok(reads_as(t, 2 * n, bits_of(0x1.f1c71c71c71c7p2)));
    memset(t, '0', 2 * n);
    t[1] = '.';
    ok(reads_as(t, 2 * n, 0));
    free(t);
}

static size_t random_decimal(char *t)
{
    int n = 0, digits = 1 + (int)(next() % 40);
    int point = (int)(next() % (unsigned)(digits + 1));
    int span = next() % 2 ? 30 : 345;

    if (next() % 4 == 0)
        t[n++] = '-';
    if (point == 0)
        t[n++] = '0';
    for (int i = 0; i < digits; i++) {
        if (i == point)
            t[n++] = '.';
        t[n++] = (char)((i == 0 && point > 0 ? '1' : '0') +
                        (int)(next() % (i == 0 ? 9 : 10)));
    }
    if (next() % 4)
        n += sprintf(t + n, "e%d", (int)(next() % 690) * span / 345 - span);
    t[n] = '\0';
    return (size_t)n;
}

static void test_parse_random(void)
{
    char t[100];
    int bad = 0;

    for (int i = 0; i < 300000; i++) {
        size_t n = random_decimal(t);
        double want = strtod(t, NULL);

        if (reads_as(t, n, bits_of(want)))
            continue;
        if (bad++ < 5)
            printf("# %s, want %a\n", t, want);
    }
    ok(bad == 0);
}

/* ---- the table of powers, by schoolbook arithmetic ---- */

#define LIMBS 48 /* of 32 bits: 10^342 has 1137, times T(k) 1265 */

static void mul(uint32_t a[LIMBS], uint32_t by)
{
    uint64_t carry = 0;

    for (int i = 0; i < LIMBS; i++) {
        carry += (uint64_t)a[i] * by;
        a[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

static void twice(uint32_t a[LIMBS], int n)
{
    while (n-- > 0)
        mul(a, 2);
}

static int compare(const uint32_t a[LIMBS], const uint32_t b[LIMBS])
{
    for (int i = LIMBS - 1; i >= 0; i--)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* Is t <= 10^k 2^(127 - log2) < t + 1, and exact where it should be? */
static bool entry_holds(int k)
{
    const uint64_t *t = ep_fp_pow10 + 2 * (ptrdiff_t)(k - EP_FP_POW10_MIN);
    uint32_t low[LIMBS] = {0}, high[LIMBS] = {0}, value[LIMBS] = {0};
    int up = 127 - ep_fp_log2_pow10(k);
    uint64_t hi = t[0], lo = t[1];

    low[0] = (uint32_t)lo;
    low[1] = (uint32_t)(lo >> 32);
    low[2] = (uint32_t)hi;
    low[3] = (uint32_t)(hi >> 32);
    lo++;
    hi += lo == 0;
    high[0] = (uint32_t)lo;
    high[1] = (uint32_t)(lo >> 32);
    high[2] = (uint32_t)hi;
    high[3] = (uint32_t)(hi >> 32);
    value[0] = 1;
    for (int i = 0; i < abs(k); i++) {
        if (k >= 0)
            mul(value, 10);
        else {
            mul(low, 10);
            mul(high, 10);
        }
    }
    if (up >= 0)
        twice(value, up);
    else {
        twice(low, -up);
        twice(high, -up);
    }
    return t[0] >> 63 && compare(value, high) < 0 &&
           (ep_fp_pow10_exact(k) ? compare(low, value) == 0
                                 : compare(low, value) < 0 && t[1] + 1);
}

static void test_powers(void)
{
    int bad = 0;

    for (int k = EP_FP_POW10_MIN; k <= EP_FP_POW10_MAX; k += 6)
        bad += !entry_holds(k);
    for (int k = -30; k <= 60; k++)
        bad += !entry_holds(k);
    ok(bad == 0);
}

int main(void)
{
    printf("# seed %llu\n", (unsigned long long)SEED);
    test_parse_table();
    test_parse_errors();
    test_scan();
    test_from_decimal();
    test_halfway();
    test_long();
    test_parse_random();
    test_powers();
    return tap_done();
}
