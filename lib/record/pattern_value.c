/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern_value.c - see pattern_value.h.
 *
 * A number is kept decimal until its unit is known, so that "12.5ms" is the
 * double nearest to 0.0125.
 */
#include "config.h"

#include "record/pattern_value.h"

#include "base/fp.h"
#include "base/num.h"
#include "record/nccl_text.h"

#include <math.h>
#include <string.h>

#define NUMBER_MAX 64 /* bytes of a number with its unit */

/* What units measure. */
enum {
    TIME = 1,
    BYTES = 2,
    RATE = 4,
    RATIO = 8,
    OTHER = 16,
    ANY = TIME | BYTES | RATE | RATIO | OTHER,
};

#define KI 1024.0
#define MI (KI * KI)
#define GI (MI * KI)
#define TI (GI * KI)

static const struct ep_pattern_unit units[] = {
    {"ns", TIME, -9, 1},
    {"us", TIME, -6, 1},
    {"\xc2\xb5s", TIME, -6, 1}, /* micro sign */
    {"\xce\xbcs", TIME, -6, 1}, /* Greek mu */
    {"ms", TIME, -3, 1},
    {"s", TIME, 0, 1},
    {"sec", TIME, 0, 1},
    {"secs", TIME, 0, 1},
    {"second", TIME, 0, 1},
    {"seconds", TIME, 0, 1},
    {"m", TIME, 0, 60},
    {"min", TIME, 0, 60},
    {"h", TIME, 0, 3600},
    {"d", TIME, 0, 86400},
    {"B", BYTES, 0, 1},
    {"KB", BYTES, 3, 1},
    {"kB", BYTES, 3, 1},
    {"MB", BYTES, 6, 1},
    {"GB", BYTES, 9, 1},
    {"TB", BYTES, 12, 1},
    {"PB", BYTES, 15, 1},
    {"KiB", BYTES, 0, KI},
    {"MiB", BYTES, 0, MI},
    {"GiB", BYTES, 0, GI},
    {"TiB", BYTES, 0, TI},
    {"k", BYTES, 0, KI}, /* as dd(1) and ls(1) have them, see num.h */
    {"K", BYTES, 0, KI},
    {"M", BYTES, 0, MI},
    {"G", BYTES, 0, GI},
    {"T", BYTES, 0, TI},
    {"B/s", RATE, 0, 1},
    {"Bps", RATE, 0, 1},
    {"kB/s", RATE, 3, 1},
    {"kBps", RATE, 3, 1},
    {"KB/s", RATE, 3, 1},
    {"MB/s", RATE, 6, 1},
    {"MB/sec", RATE, 6, 1},
    {"MBps", RATE, 6, 1},
    {"GB/s", RATE, 9, 1},
    {"GB/sec", RATE, 9, 1},
    {"GBps", RATE, 9, 1},
    {"TB/s", RATE, 12, 1},
    {"TBps", RATE, 12, 1},
    {"KiB/s", RATE, 0, KI},
    {"MiB/s", RATE, 0, MI},
    {"MiBps", RATE, 0, MI},
    {"GiB/s", RATE, 0, GI},
    {"GiBps", RATE, 0, GI},
    {"bits/sec", RATE, 0, 0.125},
    {"Kbits/sec", RATE, 3, 0.125},
    {"Mb/s", RATE, 6, 0.125},
    {"Mbit/s", RATE, 6, 0.125},
    {"Mbits/sec", RATE, 6, 0.125},
    {"Mbps", RATE, 6, 0.125},
    {"Gb/s", RATE, 9, 0.125},
    {"Gb/sec", RATE, 9, 0.125},
    {"Gbit/s", RATE, 9, 0.125},
    {"Gbits/sec", RATE, 9, 0.125},
    {"Gbps", RATE, 9, 0.125},
    {"Tbits/sec", RATE, 12, 0.125},
    {"%", RATIO, -2, 1},
    {"pct", RATIO, -2, 1},
    {"GFLOP", OTHER, 9, 1},
    {"GFLOPS", OTHER, 9, 1},
    {"GFLOP/s", OTHER, 9, 1},
    {"TFLOP", OTHER, 12, 1},
    {"TFLOPs", OTHER, 12, 1},
    {"TFLOPS", OTHER, 12, 1},
    {"TFLOP/s", OTHER, 12, 1},
    {"PFLOP", OTHER, 15, 1},
    {"Hz", OTHER, 0, 1},
    {"kHz", OTHER, 3, 1},
    {"MHz", OTHER, 6, 1},
    {"GHz", OTHER, 9, 1},
    {"mW", OTHER, -3, 1},
    {"W", OTHER, 0, 1},
    {"kW", OTHER, 3, 1},
    {"J", OTHER, 0, 1},
    {"C", OTHER, 0, 1},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The kinds of units that a key can have. */
static unsigned kinds(enum ep_key k)
{
    const struct ep_key_info *info = &ep_key_table[k];

    if (!info->unit)
        return 0;
    if (strcmp(info->unit, "s") == 0)
        return TIME;
    if (k == EP_K_BYTES || k == EP_K_SIZE)
        return BYTES;
    if (strcmp(info->unit, "unit") == 0)
        return ANY;
    if (strcmp(info->unit, "FLOP") == 0)
        return OTHER;
    return info->value == EP_V_NUMBER ? RATIO : 0;
}

static const struct ep_pattern_unit *find_unit(struct ep_span name,
                                               unsigned allowed)
{
    for (size_t i = 0; i < COUNT(units); i++)
        if ((units[i].kinds & allowed) && ep_span_eq(name, units[i].name))
            return &units[i];
    return NULL;
}

/* ==== Names of groups ==== */

/* The key of that name, or EP_KEYS. */
static enum ep_key find_key(struct ep_span name)
{
    for (int k = EP_K_TS; k < EP_KEYS; k++)
        if (ep_span_eq(name, ep_key_table[k].name) &&
            ep_key_table[k].value != EP_V_STRINGS)
            return (enum ep_key)k;
    return EP_KEYS;
}

int ep_pattern_key(struct ep_span name, enum ep_key *key,
                   const struct ep_pattern_unit **unit, struct ep_error *err)
{
    const char *end = name.ptr + name.len;
    const char *bar = memrchr(name.ptr, '_', name.len);
    char shown[64];

    *unit = NULL;
    *key = find_key(name);
    if (*key < EP_KEYS)
        return 0;
    if (bar)
        *key = find_key((struct ep_span){name.ptr, (size_t)(bar - name.ptr)});
    (void)ep_escape(shown, sizeof shown, name.ptr, name.len);
    if (*key == EP_KEYS)
        return ep_error_set(err, EP_EFORMAT,
                            "group '%s' is no key of evenpace-record(5)",
                            shown);
    *unit = find_unit((struct ep_span){bar + 1, (size_t)(end - bar - 1)},
                      kinds(*key));
    if (!*unit)
        return ep_error_set(err, EP_EFORMAT,
                            "group '%s' is of no unit that %s can have", shown,
                            ep_key_table[*key].name);
    return 0;
}

/* ==== Numbers ==== */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "1,234,567" without its commas; another text as it is. */
static void without_commas(char *s)
{
    size_t n = strspn(s, "0123456789"), to = n;

    if (n == 0 || n > 3)
        return;
    for (const char *p = s + n; *p == ','; p += 4)
        if (!is_digit(p[1]) || !is_digit(p[2]) || !is_digit(p[3]) ||
            is_digit(p[4]))
            return;
    while (s[n] == ',') {
        memmove(s + to, s + n + 1, 3);
        to += 3;
        n += 4;
    }
    memmove(s + to, s + n, strlen(s + n) + 1);
}

/* "[d days, ]h:mm:ss", "mm:ss", with a fraction; false if it is none. */
static bool take_clock(const char *s, double *out)
{
    struct ep_fp_decimal d;
    double total = 0;

    for (int parts = 0; parts < 3; parts++) {
        size_t n = strspn(s, "0123456789");

        if (n == 0 || n > 9)
            return false;
        if (s[n] != ':') {
            if (parts == 0 || ep_fp_scan(s, strlen(s), &d) != strlen(s))
                return false;
            *out = total + ep_fp_from_decimal(&d, s, strlen(s));
            return true;
        }
        (void)ep_fp_scan(s, n, &d);
        total = 60 * (total + ep_fp_from_decimal(&d, s, n));
        s += n + 1;
    }
    return false;
}

/* d, which is written in s, in that unit (or NULL). */
static double in_unit(struct ep_fp_decimal *d, const char *s, size_t n,
                      const struct ep_pattern_unit *unit)
{
    if (unit)
        d->exp10 += unit->exp10;
    d->cut = false; /* the rest of 19 digits is below a double's resolution */
    return ep_fp_from_decimal(d, s, n) * (unit ? unit->factor : 1);
}

/* The number in s, in the unit of the key. */
static int take_number(char *s, enum ep_key k,
                       const struct ep_pattern_unit *unit, double *out,
                       struct ep_error *err)
{
    struct ep_fp_decimal d;
    unsigned allowed = kinds(k);
    char shown[32];
    size_t n;

    s += *s == '+';
    without_commas(s);
    if (allowed == TIME && strchr(s, ':') && take_clock(s, out))
        return 0;
    n = ep_fp_scan(s, strlen(s), &d);
    if (n == 0)
        return ep_error_set(err, EP_EFORMAT, "not a number");
    if (s[n]) {
        const char *name = s + n + strspn(s + n, " \t");

        unit = find_unit((struct ep_span){name, strlen(name)}, allowed);
        if (!unit && allowed == TIME)
            return ep_num_duration(s, -INFINITY, INFINITY, out, err);
        if (!unit)
            return ep_error_set(
                err, EP_EFORMAT, "unknown unit '%s'",
                ep_escape(shown, sizeof shown, name, strlen(name)));
    }
    *out = in_unit(&d, s, n, unit);
    return 0;
}

static int set_number(struct ep_record *r, enum ep_key k, double x, bool whole,
                      struct ep_error *err)
{
    const struct ep_key_info *info = &ep_key_table[k];

    if (ep_key_value(r->type, k) == EP_V_INTEGER) {
        if (!whole && x >= 0 && x < info->max)
            x = floor(x + 0.5); /* a fraction of a GiB */
        if (!(x >= info->min && x <= info->max))
            return ep_error_set(err, EP_ERANGE, "not in %.0f..2^53", info->min);
        if (floor(x) < x)
            return ep_error_set(err, EP_EFORMAT, "not a whole number");
        ep_record_set_int(r, k, (int64_t)x);
        return 0;
    }
    if (!(x >= info->min && x <= info->max))
        return ep_error_set(err, EP_ERANGE, "out of range");
    ep_record_set_num(r, k, x + 0.0);
    return 0;
}

static struct ep_span trim(struct ep_span s)
{
    while (s.len && (*s.ptr == ' ' || *s.ptr == '\t')) {
        s.ptr++;
        s.len--;
    }
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

static int number(struct ep_record *r, enum ep_key k, struct ep_span text,
                  const struct ep_pattern_unit *unit,
                  struct ep_strip_zone *zone, struct ep_error *err)
{
    char s[NUMBER_MAX + 1];
    struct ep_fp_decimal d;
    double x = 0;
    int rc;

    if (k == EP_K_TS && text.len &&
        ep_strip_stamp(zone, text.ptr, text.len, &x) == text.len)
        return set_number(r, k, x, true, err);
    if (text.len && text.len <= NUMBER_MAX &&
        ep_fp_scan(text.ptr, text.len, &d) == text.len) /* nothing else */
        return set_number(r, k, in_unit(&d, text.ptr, text.len, unit), !unit,
                          err);
    if (text.len > NUMBER_MAX || memchr(text.ptr, '\0', text.len))
        return ep_error_set(err, EP_EFORMAT, "not a number");
    memcpy(s, text.ptr, text.len);
    s[text.len] = '\0';
    rc = take_number(s, k, unit, &x, err);
    if (rc < 0)
        return k == EP_K_TS ? ep_error_set(err, rc, "not a time") : rc;
    return set_number(r, k, x, !unit && !strpbrk(s, "BKMGTk"), err);
}

int ep_pattern_value(struct ep_record *r, enum ep_key k, struct ep_span text,
                     const struct ep_pattern_unit *unit,
                     struct ep_strip_zone *zone, struct ep_error *err)
{
    enum ep_value kind = ep_key_value(r->type, k);
    char shown[40];
    int rc;

    text = trim(text);
    if (kind == EP_V_STRING) {
        if (memchr(text.ptr, '\0', text.len))
            rc = ep_error_set(err, EP_EFORMAT, "has a NUL in it");
        else
            rc = 0;
        if (rc == 0 && k == EP_K_HOST)
            text = ep_nccl_host(text);
        if (rc == 0 && text.len)
            ep_record_set_span(r, k, text);
    } else {
        rc = number(r, k, text, unit, zone, err);
    }
    if (rc < 0)
        ep_error_prefix(err, "%s '%s'", ep_key_table[k].name,
                        ep_escape(shown, sizeof shown, text.ptr, text.len));
    return rc;
}
