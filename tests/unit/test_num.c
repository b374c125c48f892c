/* SPDX-License-Identifier: Apache-2.0 */
/* test_num.c - numbers typed by a user and shown to one. */
#include "config.h"

#include "base/num.h"

#include "tap.h"

#include <float.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static bool said(const struct ep_error *e, int code, const char *msg)
{
    if (e->code == code && strcmp(e->msg, msg) == 0)
        return true;
    printf("# got %d \"%s\", want %d \"%s\"\n", e->code, e->msg, code, msg);
    return false;
}

static const struct {
    const char *s;
    int64_t lo, hi;
    int code;
    int64_t want;
    const char *msg;
} ints[] = {
    {"0", 0, 0, 0, 0, NULL},
    {"-0", 0, 0, 0, 0, NULL},
    {"42", 1, 100, 0, 42, NULL},
    {"-7", -10, 10, 0, -7, NULL},
    {"010", 0, 10, 0, 10, NULL},
    {"00000000000000000000000000000000001", 0, 10, 0, 1, NULL},
    {"9223372036854775807", 0, INT64_MAX, 0, INT64_MAX, NULL},
    {"-9223372036854775808", INT64_MIN, 0, 0, INT64_MIN, NULL},
    {"9223372036854775808", 0, INT64_MAX, EP_ERANGE, 0,
     "not in 0..9223372036854775807"},
    {"-9223372036854775809", INT64_MIN, 0, EP_ERANGE, 0,
     "not in -9223372036854775808..0"},
    {"18446744073709551617", 0, 5, EP_ERANGE, 0, "not in 0..5"},
    {"999999999999999999999999999999", 0, 5, EP_ERANGE, 0, "not in 0..5"},
    {"0", 1, 8, EP_ERANGE, 0, "not in 1..8"},
    {"9", 1, 8, EP_ERANGE, 0, "not in 1..8"},
    {"-1", 0, 8, EP_ERANGE, 0, "not in 0..8"},
    {"", 0, 8, EP_EFORMAT, 0, "not a number"},
    {"-", 0, 8, EP_EFORMAT, 0, "not a number"},
    {"+5", 0, 8, EP_EFORMAT, 0, "not a number"},
    {" 5", 0, 8, EP_EFORMAT, 0, "not a number"},
    {"5 ", 0, 8, EP_EFORMAT, 0, "not a number"},
    {"5x", 0, 8, EP_EFORMAT, 0, "not a number"},
    {"0x5", 0, 8, EP_EFORMAT, 0, "not a number"},
    {"--5", -8, 8, EP_EFORMAT, 0, "not a number"},
    {"five", 0, 8, EP_EFORMAT, 0, "not a number"},
    {"1.5", 0, 8, EP_EFORMAT, 0, "not a whole number"},
    {"1e0", 0, 8, EP_EFORMAT, 0, "not a whole number"},
};

static void test_int(void)
{
    for (size_t i = 0; i < COUNT(ints); i++) {
        struct ep_error e = {0};
        int64_t x = -99;
        int rc = ep_num_int(ints[i].s, ints[i].lo, ints[i].hi, &x, &e);
        bool good = rc == ints[i].code;

        if (ints[i].code)
            good = said(&e, ints[i].code, ints[i].msg) && x == -99 && good;
        else
            good = good && x == ints[i].want;
        if (!ok(good))
            printf("# int '%s'\n", ints[i].s);
    }
}

struct real_case {
    const char *s;
    double lo, hi;
    int code;
    double want;
    const char *msg;
};

static void run_real(const char *name, const struct real_case *c, size_t n,
                     int (*read)(const char *, double, double, double *,
                                 struct ep_error *))
{
    for (size_t i = 0; i < n; i++) {
        struct ep_error e = {0};
        double x = -99;
        bool good = read(c[i].s, c[i].lo, c[i].hi, &x, &e) == c[i].code;

        if (c[i].code)
            good = said(&e, c[i].code, c[i].msg) && x == -99 && good;
        else
            good = good && x == c[i].want;
        if (!ok(good))
            printf("# %s '%s': got %.17g\n", name, c[i].s, x);
    }
}

static const struct real_case reals[] = {
    {"0", 0, 1, 0, 0, NULL},
    {"0.1", 0, 1, 0, 0.1, NULL},
    {".5", 0, 1, 0, 0.5, NULL},
    {"-.5", -1, 1, 0, -0.5, NULL},
    {"-2.5e-3", -1, 1, 0, -0.0025, NULL},
    {"007.50", 0, 10, 0, 7.5, NULL},
    {"1E3", 0, INFINITY, 0, 1000, NULL},
    {"1e-400", 0, 1, 0, 0, NULL},
    {"1.7976931348623157e308", 0, INFINITY, 0, DBL_MAX, NULL},
    {"9007199254740993.00000000000000000000000000000000001", 0, INFINITY, 0,
     9007199254740994.0, NULL},
    {"1e309", 0, INFINITY, EP_ERANGE, 0, "not in 0..1.7976931348623157e308"},
    {"-1e309", -INFINITY, 0.5, EP_ERANGE, 0,
     "not in -1.7976931348623157e308..0.5"},
    {"1e999999999999", 0, 1, EP_ERANGE, 0, "not in 0..1"},
    {"1.01", 0, 1, EP_ERANGE, 0, "not in 0..1"},
    {"-1", 0.25, 1, EP_ERANGE, 0, "not in 0.25..1"},
    {"", 0, 1, EP_EFORMAT, 0, "not a number"},
    {".", 0, 1, EP_EFORMAT, 0, "not a number"},
    {"5.", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"+1", 0, 9, EP_EFORMAT, 0, "not a number"},
    {" 1", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"1 ", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"1,5", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"1e", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"nan", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"NaN", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"inf", 0, INFINITY, EP_EFORMAT, 0, "not a number"},
    {"-Infinity", -INFINITY, 9, EP_EFORMAT, 0, "not a number"},
    {"0x1p3", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"1ms", 0, 9, EP_EFORMAT, 0, "not a number"},
};

static void test_double(void)
{
    run_real("double", reals, COUNT(reals), ep_num_double);
}

static const struct {
    const char *s;
    int64_t lo, hi;
    int code;
    int64_t want;
    const char *msg;
} sizes[] = {
    {"0", 0, 9, 0, 0, NULL},
    {"4096", 0, INT64_MAX, 0, 4096, NULL},
    {"4096B", 0, INT64_MAX, 0, 4096, NULL},
    {"64KiB", 0, INT64_MAX, 0, 65536, NULL},
    {"64K", 0, INT64_MAX, 0, 65536, NULL},
    {"64k", 0, INT64_MAX, 0, 65536, NULL},
    {"64kB", 0, INT64_MAX, 0, 64000, NULL},
    {"64KB", 0, INT64_MAX, 0, 64000, NULL},
    {"2M", 0, INT64_MAX, 0, 2097152, NULL},
    {"10MB", 0, INT64_MAX, 0, 10000000, NULL},
    {"10MiB", 0, INT64_MAX, 0, 10485760, NULL},
    {"1.5GiB", 0, INT64_MAX, 0, 1610612736, NULL},
    {"1G", 0, INT64_MAX, 0, 1073741824, NULL},
    {"1GB", 0, INT64_MAX, 0, 1000000000, NULL},
    {"1TiB", 0, INT64_MAX, 0, 1099511627776, NULL},
    {"1T", 0, INT64_MAX, 0, 1099511627776, NULL},
    {"1TB", 0, INT64_MAX, 0, 1000000000000, NULL},
    {"1P", 0, INT64_MAX, 0, 1125899906842624, NULL},
    {"2PB", 0, INT64_MAX, 0, 2000000000000000, NULL},
    {"2e9", 0, INT64_MAX, 0, 2000000000, NULL},
    {"2.5e3", 0, INT64_MAX, 0, 2500, NULL},
    {"1500e-2", 0, INT64_MAX, 0, 15, NULL},
    {"0.5K", 0, INT64_MAX, 0, 512, NULL},
    {".5K", 0, INT64_MAX, 0, 512, NULL},
    {"1.1GiB", 0, INT64_MAX, 0, 1181116006, NULL}, /* ...6006.4 */
    {"0.0005K", 0, INT64_MAX, 0, 1, NULL},         /* 0.512 */
    {"0.0004K", 0, INT64_MAX, 0, 0, NULL},         /* 0.4096 */
    {"0.33333333333333333333333333KB", 0, 999, 0, 333, NULL},
    {"1e-60K", 0, 9, 0, 0, NULL},
    {"0e999999999999", 0, 9, 0, 0, NULL},
    {"-5", -9, 9, 0, -5, NULL},
    {"9223372036854775807", 0, INT64_MAX, 0, INT64_MAX, NULL},
    {"8191P", 0, INT64_MAX, 0, INT64_C(8191) << 50, NULL},
    {"8192P", 0, INT64_MAX, EP_ERANGE, 0, "not in 0..9223372036854775807"},
    {"9223372036854775808", 0, 7, EP_ERANGE, 0, "not in 0..7"},
    {"18446744073709551617", 0, 7, EP_ERANGE, 0, "not in 0..7"},
    {"99999999999999999999999999999999999T", 0, 7, EP_ERANGE, 0, "not in 0..7"},
    {"1e999999999999", 0, 7, EP_ERANGE, 0, "not in 0..7"},
    {"-1", 0, 7, EP_ERANGE, 0, "not in 0..7"},
    {"1K", 1, 512, EP_ERANGE, 0, "not in 1..512"},
    {"1.5", 0, 7, EP_EFORMAT, 0, "not a whole number of bytes"},
    {"1.5B", 0, 7, EP_EFORMAT, 0, "not a whole number of bytes"},
    {"1e-50", 0, 7, EP_EFORMAT, 0, "not a whole number of bytes"},
    {"", 0, 7, EP_EFORMAT, 0, "not a number"},
    {"KiB", 0, 7, EP_EFORMAT, 0, "not a number"},
    {"+1K", 0, 7, EP_EFORMAT, 0, "not a number"},
    {" 1K", 0, 7, EP_EFORMAT, 0, "not a number"},
    {"inf", 0, 7, EP_EFORMAT, 0, "not a number"},
    {"1 KiB", 0, 7, EP_EFORMAT, 0, "unknown unit ' KiB'"},
    {"1KiB ", 0, 7, EP_EFORMAT, 0, "unknown unit 'KiB '"},
    {"1xb", 0, 7, EP_EFORMAT, 0, "unknown unit 'xb'"},
    {"1kiB", 0, 7, EP_EFORMAT, 0, "unknown unit 'kiB'"},
    {"1Ki", 0, 7, EP_EFORMAT, 0, "unknown unit 'Ki'"},
    {"1m", 0, 7, EP_EFORMAT, 0, "unknown unit 'm'"},
    {"1b", 0, 7, EP_EFORMAT, 0, "unknown unit 'b'"},
    {"0x10", 0, 7, EP_EFORMAT, 0, "unknown unit 'x10'"},
    {"5.", 0, 7, EP_EFORMAT, 0, "unknown unit '.'"},
    {"1\n", 0, 7, EP_EFORMAT, 0, "unknown unit '\\x0a'"},
};

static void test_size(void)
{
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct ep_error e = {0};
        int64_t x = -99;
        int rc = ep_num_size(sizes[i].s, sizes[i].lo, sizes[i].hi, &x, &e);
        bool good = rc == sizes[i].code;

        if (sizes[i].code)
            good = said(&e, sizes[i].code, sizes[i].msg) && x == -99 && good;
        else
            good = good && x == sizes[i].want;
        if (!ok(good))
            printf("# size '%s': got %lld\n", sizes[i].s, (long long)x);
    }
}

static const struct real_case durations[] = {
    {"0", 0, 1, 0, 0, NULL},
    {"1.5", 0, 9, 0, 1.5, NULL},
    {"1.5s", 0, 9, 0, 1.5, NULL},
    {"250ms", 0, 9, 0, 0.25, NULL},
    {"0.1ms", 0, 9, 0, 1e-4, NULL},
    {"10us", 0, 9, 0, 10e-6, NULL},
    {"3ns", 0, 9, 0, 3e-9, NULL},
    {"1e3ms", 0, 9, 0, 1, NULL},
    {"2m", 0, INFINITY, 0, 120, NULL},
    {"1h", 0, INFINITY, 0, 3600, NULL},
    {"1d", 0, INFINITY, 0, 86400, NULL},
    {".5h", 0, INFINITY, 0, 1800, NULL},
    {"1h30m", 0, INFINITY, 0, 5400, NULL},
    {"1d2h3m4s5ms", 0, INFINITY, 0, 93784.005, NULL},
    {"2m0.5s", 0, INFINITY, 0, 120.5, NULL},
    {"-1h30m", -INFINITY, 0, 0, -5400, NULL},
    {"250.00000000000000000000000ms", 0, 9, 0, 0.25, NULL},
    {"1e-999999999999s", 0, 9, 0, 0, NULL},
    {"1e-2147483648ns", 0, 9, 0, 0, NULL},
    {"1e308d", 0, INFINITY, EP_ERANGE, 0, "not in 0..1.7976931348623157e308"},
    {"2m", 0.001, 60, EP_ERANGE, 0, "not in 0.001..60"},
    {"-1s", 0, 60, EP_ERANGE, 0, "not in 0..60"},
    {"", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"-", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"s", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"ms5", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"+1s", 0, 9, EP_EFORMAT, 0, "not a number"},
    {" 1s", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"--1s", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"1.2.3s", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"5.", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"nan", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"inf", 0, 9, EP_EFORMAT, 0, "not a number"},
    {"1 s", 0, 9, EP_EFORMAT, 0, "unknown unit ' s'"},
    {"1s ", 0, 9, EP_EFORMAT, 0, "unknown unit 's '"},
    {"5xb", 0, 9, EP_EFORMAT, 0, "unknown unit 'xb'"},
    {"5min", 0, 9, EP_EFORMAT, 0, "unknown unit 'min'"},
    {"5S", 0, 9, EP_EFORMAT, 0, "unknown unit 'S'"},
    {"1h-30m", 0, 9, EP_EFORMAT, 0, "unknown unit 'h-'"},
    {"1h30", 0, 9, EP_EFORMAT, 0, "no unit at the end"},
    {"1m2h", 0, 9, EP_EFORMAT, 0, "unit 'h' after 'm': largest first"},
    {"1s1s", 0, 9, EP_EFORMAT, 0, "unit 's' after 's': largest first"},
    {"1.5h30m", 0, 9, EP_EFORMAT, 0, "a fraction before the last part"},
};

static void test_duration(void)
{
    run_real("duration", durations, COUNT(durations), ep_num_duration);
}

static void test_no_error(void)
{
    int64_t i = 0;
    double x = 0;

    ok(ep_num_int("x", 0, 1, &i, NULL) == EP_EFORMAT);
    ok(ep_num_int("2", 0, 1, &i, NULL) == EP_ERANGE);
    ok(ep_num_double("x", 0, 1, &x, NULL) == EP_EFORMAT);
    ok(ep_num_double("2", 0, 1, &x, NULL) == EP_ERANGE);
    ok(ep_num_size("1x", 0, 1, &i, NULL) == EP_EFORMAT);
    ok(ep_num_size("2", 0, 1, &i, NULL) == EP_ERANGE);
    ok(ep_num_duration("1x", 0, 1, &x, NULL) == EP_EFORMAT);
    ok(ep_num_duration("2", 0, 1, &x, NULL) == EP_ERANGE);
}

static const struct {
    double s;
    const char *want;
} shown_durations[] = {
    {0, "0 s"},
    {-0.0, "0 s"},
    {1.414, "1.41 s"},
    {0.052, "52 ms"},
    {1, "1 s"},
    {10.04, "10 s"},
    {59.94, "59.9 s"},
    {59.96, "1 min"},
    {0.9994, "999 ms"},
    {0.9996, "1 s"},
    {0.09996, "100 ms"},
    {250e-6, "250 us"},
    {3e-9, "3 ns"},
    {2.5e-10, "0.25 ns"},
    {-1.5, "-1.5 s"},
    {200, "3 min 20 s"},
    {-200, "-3 min 20 s"},
    {3599.4, "59 min 59 s"},
    {3599.6, "1 h"},
    {7500, "2 h 5 min"},
    {86369, "23 h 59 min"},
    {86371, "1 d"},
    {273600, "3 d 4 h"},
    {86400e6, "1e+06 d"},
    {INFINITY, "inf s"},
    {-INFINITY, "-inf s"},
    {NAN, "nan s"},
};

static void test_format_duration(void)
{
    struct ep_buf b;

    ep_buf_init(&b);
    for (size_t i = 0; i < COUNT(shown_durations); i++) {
        ep_buf_reset(&b);
        ep_num_format_duration(&b, shown_durations[i].s);
        if (!ok(strcmp(b.ptr, shown_durations[i].want) == 0))
            printf("# %g: got %s, want %s\n", shown_durations[i].s, b.ptr,
                   shown_durations[i].want);
    }
    ep_buf_free(&b);
}

static const struct {
    double v;
    const char *unit; /* NULL: a size */
    const char *want;
} shown_units[] = {
    {0, NULL, "0 B"},
    {1, NULL, "1 B"},
    {1023, NULL, "1023 B"},
    {1024, NULL, "1 KiB"},
    {65536, NULL, "64 KiB"},
    {1048575, NULL, "1 MiB"},
    {1610612736, NULL, "1.5 GiB"},
    {-1536, NULL, "-1.5 KiB"},
    {0x1p63, NULL, "8 EiB"},
    {0x1p73, NULL, "8.19e+03 EiB"},
    {NAN, NULL, "nan B"},
    {1.2e11, "FLOP/s", "120 GFLOP/s"},
    {3.2e9, "B/s", "3.2 GB/s"},
    {999.4e6, "B/s", "999 MB/s"},
    {999.6e6, "B/s", "1 GB/s"},
    {0.3, "W", "300 mW"},
    {0, "W", "0 W"},
    {-1234, "W", "-1.23 kW"},
    {85, "", "85"},
    {85000, "", "85 k"},
    {5e-12, "s", "0.005 ns"},
    {1e22, "B", "1e+04 EB"},
    {INFINITY, "W", "inf W"},
    {-INFINITY, "", "-inf"},
};

static void test_format_units(void)
{
    struct ep_buf b;

    ep_buf_init(&b);
    for (size_t i = 0; i < COUNT(shown_units); i++) {
        ep_buf_reset(&b);
        if (shown_units[i].unit)
            ep_num_format_si(&b, shown_units[i].v, shown_units[i].unit);
        else
            ep_num_format_size(&b, shown_units[i].v);
        if (!ok(strcmp(b.ptr, shown_units[i].want) == 0))
            printf("# %g: got %s, want %s\n", shown_units[i].v, b.ptr,
                   shown_units[i].want);
    }
    ep_buf_free(&b);
}

int main(void)
{
    test_int();
    test_double();
    test_size();
    test_duration();
    test_no_error();
    test_format_duration();
    test_format_units();
    return tap_done();
}
