/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fp_print.c - doubles and integers to text.
 *
 * References: hand-worked cases; the C library's strtod and printf, both
 * exact in glibc.
 */
#include "config.h"

#include "base/fp.h"

#include "fp_bits.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static void print0(double x, char *t)
{
    t[ep_fp_print(x, t)] = '\0';
}

static const struct {
    double x;
    const char *want;
} printed[] = {
    {0, "0"},
    {-0.0, "-0"},
    {1, "1"},
    {-8, "-8"},
    {10, "10"},
    {0.1, "0.1"},
    {-0.25, "-0.25"},
    {1.0 / 3, "0.3333333333333333"},
    {2.0 / 3, "0.6666666666666666"},
    {123456.75, "123456.75"},
    {1730000000.123456, "1730000000.123456"},
    {0.00001, "0.00001"},
    {0x1.4f8b588e368f0p-17, "9.999999999999999e-6"},
    {0.000012345678901234567, "0.000012345678901234568"},
    {-0.00001, "-0.00001"},
    {1.5e-7, "1.5e-7"},
    {1e-6, "1e-6"},
    {9007199254740991, "9007199254740991"},
    {9007199254740992, "9007199254740992"},
    {9007199254740994.0, "9007199254740994"},
    {12345678901234568.0, "12345678901234568"},
    {99999999999999984.0, "99999999999999980"},
    {1e16, "10000000000000000"},
    {1e17, "1e17"},
    {123456789012345680.0, "1.2345678901234568e17"},
    {1e22, "1e22"},
    {1e23, "1e23"},
    {8.41e21, "8.41e21"},
    {9.5e-300, "9.5e-300"},
    {2e-44, "2e-44"},
    {9007199254740991.5, "9007199254740992"},
    {2251799813685249.5, "2251799813685249.5"},
    {1234567.8901234567, "1234567.8901234567"},
    {1125899906842623.8, "1125899906842623.8"},
    {5e-324, "5e-324"},
    {-1e-323, "-1e-323"},
    {1.5e-323, "1.5e-323"},
    {2.2250738585072011e-308, "2.225073858507201e-308"},
    {DBL_MIN, "2.2250738585072014e-308"},
    {DBL_MAX, "1.7976931348623157e308"},
    {-DBL_MAX, "-1.7976931348623157e308"},
    {0x1p-1, "0.5"},
    {0x1p63, "9.223372036854776e18"},
    {9.409340012568248e18, "9.409340012568248e18"},
    {INFINITY, "null"},
    {-INFINITY, "null"},
    {NAN, "null"},
    {-NAN, "null"},
};

static void test_print_table(void)
{
    char t[EP_FP_MAX + 1];

    for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
        print0(printed[i].x, t);
        if (!ok(strcmp(t, printed[i].want) == 0))
            printf("# %a: got %s, want %s\n", printed[i].x, t, printed[i].want);
    }
}

/* Significant digits of t without zeros at either end; returns how many. */
static int significant(const char *t, char *digits)
{
    int n = 0;

    for (; *t && *t != 'e'; t++)
        if (*t >= '0' && *t <= '9' && (n || *t != '0'))
            digits[n++] = *t;
    while (n > 0 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
    return n;
}

/* Reads back, by both readers, in few enough bytes. */
static bool round_trips(double x)
{
    char t[EP_FP_MAX + 1];
    size_t n = ep_fp_print(x, t);
    double y;

    t[n] = '\0';
    if (n <= 24 && same(strtod(t, NULL), x) && ep_fp_parse(t, n, &y) == 0 &&
        same(x, y))
        return true;
    printf("# %a as %s\n", x, t);
    return false;
}

/* No shorter text reads back, and no closer one is as short. */
static bool shortest(double x)
{
    char t[EP_FP_MAX + 1], other[40], a[40], b[40];
    int n;

    print0(x, t);
    n = significant(t, a);
    for (int i = 1; i < n; i++) {
        (void)snprintf(other, sizeof other, "%.*e", i - 1, x);
        if (strtod(other, NULL) == x) {
            printf("# %s is shorter than %s\n", other, t);
            return false;
        }
    }
    (void)snprintf(other, sizeof other, "%.*e", n - 1, x);
    (void)significant(other, b);
    if (strtod(other, NULL) != x || strcmp(a, b) == 0)
        return true;
    printf("# %s is closer than %s\n", other, t);
    return false;
}

/* A number of a kind that telemetry has, or any bit pattern. */
static double random_double(void)
{
    uint64_t r = next(), b = next();

    switch (r % 6) {
    case 0: /* a timestamp */
        return 1.7e9 + (double)(b % 1000000000000) / 1e6;
    case 1: /* a duration in whole nanoseconds */
        return (double)(b % 100000000000) / 1e9;
    case 2: /* integer below 2^60 */
        return (double)(b >> (4 + r / 6 % 60));
    case 3: /* powers of two and their neighbours */
        return of_bits(((b % 0x7fe) << 52) + r / 6 % 3);
    default:
        b &= ~(UINT64_C(1) << 62 & (r << 50)); /* more subnormals */
        return isfinite(of_bits(b)) ? of_bits(b) : 0.5;
    }
}

static void test_print_random(void)
{
    int bad = 0, bad_short = 0;

    for (int i = 0; i < 300000 && bad < 5; i++)
        bad += !round_trips(random_double());
    ok(bad == 0);
    for (int e = 0; e < 2047; e++) /* every power of two and its neighbours */
        for (int i = e ? -1 : 0; i < 2; i++) {
            double x = of_bits(((uint64_t)e << 52) + (uint64_t)i);

            bad_short += !round_trips(x) || !shortest(x);
        }
    ok(bad_short == 0);
    for (int i = 0; i < 20000 && bad_short < 5; i++)
        bad_short += !shortest(random_double());
    ok(bad_short == 0);
    for (int k = -323; k <= 308; k++) { /* powers of ten stay short */
        char t[40], a[40];
        double x;

        (void)snprintf(t, sizeof t, "1e%d", k);
        x = strtod(t, NULL);
        print0(x, t);
        bad += significant(t, a) != 1 || a[0] != '1';
    }
    ok(bad == 0);
}

static void test_print_int(void)
{
    char t[EP_FP_MAX + 1], want[40];
    int bad = 0;

    for (int i = 0; i < 64; i++)
        for (int j = -2; j <= 2; j++) {
            int64_t v = (int64_t)((UINT64_C(1) << i) + (uint64_t)j);

            t[ep_fp_print_int(v, t)] = '\0';
            (void)snprintf(want, sizeof want, "%lld", (long long)v);
            bad += strcmp(t, want) != 0;
        }
    for (uint64_t p = 1; p <= UINT64_C(1000000000000000000); p *= 10)
        for (int j = -1; j <= 1; j++) {
            int64_t v = (int64_t)p + j;

            t[ep_fp_print_int(-v, t)] = '\0';
            (void)snprintf(want, sizeof want, "%lld", -(long long)v);
            bad += strcmp(t, want) != 0;
        }
    for (int i = 0; i < 100000; i++) {
        int64_t v = (int64_t)(next() >> (next() % 64));

        t[ep_fp_print_int(v, t)] = '\0';
        (void)snprintf(want, sizeof want, "%lld", (long long)v);
        bad += strcmp(t, want) != 0;
    }
    ok(bad == 0);
    t[ep_fp_print_int(INT64_MIN, t)] = '\0';
    ok(strcmp(t, "-9223372036854775808") == 0);
    t[ep_fp_print_int(999999999999999999, t)] = '\0';
    ok(strcmp(t, "999999999999999999") == 0);
}

int main(void)
{
    printf("# seed %llu\n", (unsigned long long)SEED);
    test_print_table();
    test_print_random();
    test_print_int();
    return tap_done();
}
