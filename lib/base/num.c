/* SPDX-License-Identifier: Apache-2.0 */
/* num.c - see num.h. */
#include "config.h"

#include "base/num.h"

#include "base/fp.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* ---- reading ---- */

static int not_a_number(struct ep_error *e)
{
    return ep_error_set(e, EP_EFORMAT, "not a number");
}

static int unknown_unit(const char *unit, size_t n, struct ep_error *e)
{
    char shown[32];

    return ep_error_set(e, EP_EFORMAT, "unknown unit '%s'",
                        ep_escape(shown, sizeof shown, unit, n));
}

static int range_int(int64_t lo, int64_t hi, struct ep_error *e)
{
    return ep_error_set(e, EP_ERANGE, "not in %lld..%lld", (long long)lo,
                        (long long)hi);
}

/* Store x if it is finite and within the bounds. */
static int set_double(double x, double lo, double hi, double *out,
                      struct ep_error *e)
{
    char a[EP_FP_MAX], b[EP_FP_MAX];
    size_t na, nb;

    lo = fmax(lo, -DBL_MAX);
    hi = fmin(hi, DBL_MAX);
    if (x >= lo && x <= hi) {
        *out = x;
        return 0;
    }
    na = ep_fp_print(lo, a);
    nb = ep_fp_print(hi, b);
    return ep_error_set(e, EP_ERANGE, "not in %.*s..%.*s", (int)na, a, (int)nb,
                        b);
}

int ep_num_int(const char *s, int64_t lo, int64_t hi, int64_t *out,
               struct ep_error *e)
{
    struct ep_fp_decimal d;
    size_t len = strlen(s);
    const char *p = s;
    uint64_t v = 0, most;
    bool neg = *p == '-', over = false;
    int64_t x;

    p += neg;
    if (*p == '\0' || p[strspn(p, "0123456789")] != '\0') {
        if (ep_fp_scan(s, len, &d) == len && len)
            return ep_error_set(e, EP_EFORMAT, "not a whole number");
        return not_a_number(e);
    }
    most = (uint64_t)INT64_MAX + neg;
    for (; *p; p++) {
        unsigned digit = (unsigned)(*p - '0');

        over = over || v > (most - digit) / 10;
        v = 10 * v + digit;
    }
    if (over)
        return range_int(lo, hi, e);
    x = neg && v ? -(int64_t)(v - 1) - 1 : (int64_t)v;
    if (x < lo || x > hi)
        return range_int(lo, hi, e);
    *out = x;
    return 0;
}

int ep_num_double(const char *s, double lo, double hi, double *out,
                  struct ep_error *e)
{
    struct ep_fp_decimal d;
    size_t len = strlen(s);

    if (!len || ep_fp_scan(s, len, &d) != len)
        return not_a_number(e);
    return set_double(ep_fp_from_decimal(&d, s, len), lo, hi, out, e);
}

/* Bytes in a unit, 0 if there is no such unit. */
static uint64_t size_unit(const char *unit)
{
    static const char prefixes[] = "KMGTP";
    const char *at;
    uint64_t bytes = 1, base;

    if (!*unit || strcmp(unit, "B") == 0)
        return 1;
    at = strchr(prefixes, *unit == 'k' ? 'K' : *unit);
    if (!at)
        return 0;
    if (!unit[1] || strcmp(unit + 1, "iB") == 0)
        base = 1024;
    else if (strcmp(unit + 1, "B") == 0)
        base = 1000;
    else
        return 0;
    if (*unit == 'k' && unit[1] == 'i')
        return 0;
    for (const char *p = prefixes; p <= at; p++)
        bytes *= base;
    return bytes;
}

/*
 * v 10^exp10 rounded to an integer, ties up; anything above INT64_MAX if it is
 * above. *whole becomes whether it was one. v < 2^115: see ep_num_size.
 */
static unsigned __int128 scale_ten(unsigned __int128 v, int exp10, bool *whole)
{
    unsigned __int128 ten = 1, rest;

    *whole = true;
    for (; exp10 > 0 && v && v <= INT64_MAX; exp10--)
        v *= 10;
    if (exp10 >= 0 || !v)
        return v;
    if (exp10 < -38) { /* 10^39 exceeds 2^128, and 2 v */
        *whole = false;
        return 0;
    }
    for (; exp10 < 0; exp10++)
        ten *= 10;
    rest = v % ten;
    *whole = rest == 0;
    return v / ten + (rest >= ten - rest);
}

int ep_num_size(const char *s, int64_t lo, int64_t hi, int64_t *out,
                struct ep_error *e)
{
    struct ep_fp_decimal d;
    size_t used = ep_fp_scan(s, strlen(s), &d);
    unsigned __int128 v;
    uint64_t unit;
    bool whole;
    int64_t x;

    if (!used)
        return not_a_number(e);
    unit = size_unit(s + used);
    if (!unit)
        return unknown_unit(s + used, strlen(s + used), e);
    v = scale_ten((unsigned __int128)d.mant * unit, d.exp10, &whole);
    if (v > INT64_MAX)
        return range_int(lo, hi, e);
    if (unit == 1 && (!whole || d.cut))
        return ep_error_set(e, EP_EFORMAT, "not a whole number of bytes");
    x = d.neg ? -(int64_t)v : (int64_t)v;
    if (x < lo || x > hi)
        return range_int(lo, hi, e);
    *out = x;
    return 0;
}

struct duration_unit {
    char name[4];
    int exp10;      /* one unit is seconds 10^exp10 seconds */
    double seconds; /* exact */
};

/* From small to large. */
static const struct duration_unit duration_units[] = {
    {"ns", -9, 1}, {"us", -6, 1},  {"ms", -3, 1},    {"s", 0, 1},
    {"m", 0, 60},  {"h", 0, 3600}, {"d", 0, 86400.0}};

#define SECONDS (duration_units + 3)

static const struct duration_unit *duration_unit(const char *s, size_t n)
{
    const struct duration_unit *u = duration_units;

    for (; u < duration_units + sizeof duration_units / sizeof *u; u++)
        if (strlen(u->name) == n && memcmp(u->name, s, n) == 0)
            return u;
    return NULL;
}

/* The value of one part, text [len], *d as scanned from it. */
static double part_seconds(struct ep_fp_decimal d, const char *text, size_t len,
                           const struct duration_unit *u)
{
    static const double thousands[] = {1, 1e3, 1e6, 1e9};

    if (d.cut) /* from_decimal may go back to the text, which has no unit */
        return ep_fp_from_decimal(&d, text, len) / thousands[u->exp10 / -3] *
               u->seconds;
    d.exp10 += u->exp10;
    return ep_fp_from_decimal(&d, text, len) * u->seconds;
}

int ep_num_duration(const char *s, double lo, double hi, double *out,
                    struct ep_error *e)
{
    const struct duration_unit *u = NULL, *last = NULL;
    bool neg = *s == '-', fraction = false;
    const char *p = s + neg, *end = s + strlen(s);
    double sum = 0;

    do {
        struct ep_fp_decimal d;
        size_t used = ep_fp_scan(p, (size_t)(end - p), &d), n;

        if (!used || d.neg)
            return not_a_number(e);
        n = strcspn(p + used, "0123456789.");
        if (!n && p[used])
            return not_a_number(e);
        if (!n && last)
            return ep_error_set(e, EP_EFORMAT, "no unit at the end");
        u = n ? duration_unit(p + used, n) : SECONDS;
        if (!u)
            return unknown_unit(p + used, n, e);
        if (last && u >= last)
            return ep_error_set(e, EP_EFORMAT,
                                "unit '%s' after '%s': largest first", u->name,
                                last->name);
        if (fraction)
            return ep_error_set(e, EP_EFORMAT,
                                "a fraction before the last part");
        sum += part_seconds(d, p, used, u);
        fraction = d.exp10 < 0;
        last = u;
        p += used + n;
    } while (p < end);
    return set_double(neg ? -sum : sum, lo, hi, out, e);
}

/* ---- writing ---- */

/* Three significant digits; 0 <= v < 1024. */
static void add_rounded(struct ep_buf *b, double v)
{
    ep_buf_addf(b, v >= 99.95 ? "%.0f" : "%.3g", v);
}

/* NaN and infinities; the sign of others. Returns whether that was all. */
static bool add_special(struct ep_buf *b, double v)
{
    if (isnan(v))
        ep_buf_adds(b, "nan");
    else if (isinf(v))
        ep_buf_adds(b, v < 0 ? "-inf" : "inf");
    else if (v < 0)
        ep_buf_addc(b, '-');
    return !isfinite(v);
}

/*
 * v >= 0 with the largest prefix of prefixes that leaves at least 1 (or would
 * after rounding), else the smallest. prefixes[first] has weight base^0; ' '
 * stands for no prefix. Returns the prefix.
 */
static char add_prefixed(struct ep_buf *b, double v, double base,
                         const char *prefixes, int first)
{
    const double enough = base == 1024 ? 1023.5 / 1024 : 0.9995;
    int at = first;

    for (; v > 0 && v < enough && at > 0; at--)
        v *= base;
    for (; v >= enough * base && prefixes[at + 1]; at++)
        v /= base;
    if (v < 1024)
        add_rounded(b, v);
    else
        ep_buf_addf(b, "%.3g", v);
    return prefixes[at];
}

static void add_si(struct ep_buf *b, double v, const char *unit,
                   const char *prefixes)
{
    char prefix = ' ';

    if (!add_special(b, v))
        prefix = add_prefixed(b, fabs(v), 1000, prefixes, 3);
    if (prefix == ' ' && !*unit)
        return;
    ep_buf_addc(b, ' ');
    if (prefix != ' ')
        ep_buf_addc(b, prefix);
    ep_buf_adds(b, unit);
}

void ep_num_format_si(struct ep_buf *b, double value, const char *unit)
{
    add_si(b, value, unit, "num kMGTPE");
}

void ep_num_format_size(struct ep_buf *b, double bytes)
{
    char prefix = ' ';

    if (!add_special(b, bytes))
        prefix = add_prefixed(b, fabs(bytes), 1024, " KMGTPE", 0);
    if (prefix == ' ')
        ep_buf_adds(b, " B");
    else
        ep_buf_addf(b, " %ciB", prefix);
}

/* "3 min 20 s" of small units, of which ratio make a large one. */
static void add_two(struct ep_buf *b, double small, int ratio,
                    const char *large_name, const char *small_name)
{
    long long n = llround(small);

    ep_buf_addf(b, "%lld %s", n / ratio, large_name);
    if (n % ratio)
        ep_buf_addf(b, " %lld %s", n % ratio, small_name);
}

void ep_num_format_duration(struct ep_buf *b, double s)
{
    double v = fabs(s);

    if (!(v >= 59.95 && v <= DBL_MAX)) {
        add_si(b, s, "s", "num ");
        return;
    }
    (void)add_special(b, s); /* the sign */
    if (v < 3599.5)
        add_two(b, v, 60, "min", "s");
    else if (v < 86400 - 30)
        add_two(b, v / 60, 60, "h", "min");
    else if (v < 86400e6)
        add_two(b, v / 3600, 24, "d", "h");
    else
        ep_buf_addf(b, "%.3g d", v / 86400);
}
