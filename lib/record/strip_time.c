/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strip_time.c - dates and times in logs, see strip.h.
 *
 * strptime(3) knows no fractions and looks at the locale, mktime(3) costs a
 * microsecond; most lines of a log have a time in the same quarter of an hour
 * as the line before, and time zones change at quarters of an hour only.
 */
#include "config.h"

#include "base/fp.h"
#include "record/strip.h"

#include <string.h>
#include <time.h>

#define QUARTER 900
#define DAY 86400
#define ZONE_MOST INT64_C(172800) /* no local time is that far from UTC */
#define FAR INT64_C(10000000000)  /* s: the year 2286 */

/* n digits at s as a number, or -1. */
static int digits(const char *s, int n)
{
    int v = 0;

    for (int i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return -1;
        v = v * 10 + (s[i] - '0');
    }
    return v;
}

/* Days from 1970-01-01 to a date of the Gregorian calendar. */
static int64_t days(int year, int month, int day)
{
    /* Years that begin in March: the leap day is their last, and month m
       (March is 0) begins (153 m + 2) / 5 days after the first of March. */
    int64_t y = year - (month <= 2);
    int64_t m = (month + 9) % 12;

    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 -
           719468;
}

static bool is_date(int year, int month, int day)
{
    static const unsigned char last[] = {31, 29, 31, 30, 31, 30,
                                         31, 31, 30, 31, 30, 31};

    if (year < 1970 || month < 1 || month > 12 || day < 1 ||
        day > last[month - 1])
        return false;
    return month != 2 || day < 29 ||
           (year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
}

/* "03:04:05" to seconds, or -1. */
static int64_t time_of_day(const char *s)
{
    int hour, minute, second;

    if (s[2] != ':' || s[5] != ':')
        return -1;
    hour = digits(s, 2);
    minute = digits(s + 3, 2);
    second = digits(s + 6, 2);
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
        second > 60)
        return -1;
    return hour * INT64_C(3600) + minute * INT64_C(60) + second;
}

/* "2026-01-02T03:04:05" to seconds as if it were UTC; -1 if it is none. */
static int64_t civil(const char *s, size_t len)
{
    int year, month, day;
    int64_t clock;

    if (len < 19 || (s[4] != '-' && s[4] != '/') || s[7] != s[4] ||
        (s[10] != 'T' && s[10] != ' '))
        return -1;
    clock = time_of_day(s + 11);
    year = digits(s, 4);
    month = digits(s + 5, 2);
    day = digits(s + 8, 2);
    if (clock < 0 || !is_date(year, month, day))
        return -1;
    return days(year, month, day) * DAY + clock;
}

/* The offset of a quarter of an hour that begins as_utc s after the epoch. */
static int64_t ask_offset(time_t as_utc)
{
    struct tm tm;
    time_t real;

    if (!gmtime_r(&as_utc, &tm))
        return 0;
    tm.tm_isdst = -1;
    real = mktime(&tm);
    return real != (time_t)-1 ? (int64_t)as_utc - (int64_t)real : 0;
}

/* Seconds to take from the local time t. */
static int64_t local_offset(struct ep_strip_zone *zone, int64_t t)
{
    int64_t quarter = t / QUARTER, offset = zone->before_offset;

    if (zone->known && zone->quarter == quarter)
        return zone->offset;
    if (!zone->known || zone->before != quarter)
        offset = ask_offset((time_t)(quarter * QUARTER));
    zone->before = zone->known ? zone->quarter : quarter;
    zone->before_offset = zone->known ? zone->offset : offset;
    zone->quarter = quarter;
    zone->offset = offset;
    zone->known = true;
    return offset;
}

/* "Z", "+01:00" or "-0800" at s: bytes taken, and *offset in seconds. */
static size_t zone_at(const char *s, size_t len, int64_t *offset)
{
    size_t colon;
    int hour, minute;

    if (len && *s == 'Z') {
        *offset = 0;
        return 1;
    }
    if (len < 5 || (*s != '+' && *s != '-'))
        return 0;
    colon = s[3] == ':';
    if (len < 5 + colon)
        return 0;
    hour = digits(s + 1, 2);
    minute = digits(s + 3 + colon, 2);
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59)
        return 0;
    *offset = hour * INT64_C(3600) + minute * INT64_C(60);
    if (*s == '-')
        *offset = -*offset;
    return 5 + colon;
}

/* ".123" or ",123" at s[at]: *d becomes the fraction, with t before the point.
 * Returns where it ends. */
static size_t with_fraction(const char *s, size_t len, size_t at, int64_t t,
                            struct ep_fp_decimal *d)
{
    int32_t most = t < FAR ? -9 : -6; /* so that it fits in 64 bits */
    int64_t fraction = 0;

    *d = (struct ep_fp_decimal){.exp10 = 0};
    if (len > at + 1 && (s[at] == '.' || s[at] == ',') &&
        digits(s + at + 1, 1) >= 0) {
        for (at++; at < len && digits(s + at, 1) >= 0; at++) {
            if (d->exp10 > most) {
                fraction = fraction * 10 + (s[at] - '0');
                d->exp10--;
            }
        }
    }
    d->mant = (uint64_t)t * ep_fp_pow10_u64[-d->exp10] + (uint64_t)fraction;
    return at;
}

size_t ep_strip_time(struct ep_strip_zone *zone, const char *s, size_t len,
                     double *ts)
{
    int64_t t = civil(s, len), offset;
    struct ep_fp_decimal value;
    size_t at, n;

    if (t < 0)
        return 0;
    at = with_fraction(s, len, 19, 0, &value);
    n = zone_at(s + at, len - at, &offset);
    t -= n ? offset : local_offset(zone, t);
    if (t < 0)
        return 0;
    (void)with_fraction(s, len, 19, t, &value);
    *ts = ep_fp_from_decimal(&value, s, 0);
    return at + n;
}

/* ==== Dates without a year ==== */

/* Local time to seconds since the epoch, in the year that fits; -1: none. */
static int64_t in_a_year(struct ep_strip_zone *zone, int month, int day,
                         int64_t clock)
{
    double latest = zone->latest + DAY;
    /* days per year at least: not before the year of latest */
    int year = 1971 + (int)(latest / DAY / 365);

    if (!(zone->latest > 0) || latest > 4e9)
        return -1;
    for (int last = year - 12; year >= last; year--) { /* 1896, 1904: leap */
        int64_t t;

        if (!is_date(year, month, day))
            continue;
        t = days(year, month, day) * DAY + clock;
        if ((double)(t - ZONE_MOST) > latest)
            continue; /* and zone keeps what it knows of this year */
        t -= local_offset(zone, t);
        if ((double)t <= latest)
            return t < 0 ? -1 : t;
    }
    return -1;
}

/* "Nov" to 11, or 0. */
static int month_named(const char *s)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    for (int i = 0; i < 12; i++)
        if (memcmp(s, names + (size_t)3 * (size_t)i, 3) == 0)
            return i + 1;
    return 0;
}

/* "Nov 30 03:14:15.25", "Nov  3 03:14:15 2026" */
static size_t syslog_time(struct ep_strip_zone *zone, const char *s, size_t len,
                          double *ts)
{
    struct ep_fp_decimal value;
    int64_t clock, t;
    int month, day, year;
    size_t at;

    if (len < 15 || s[3] != ' ' || s[6] != ' ')
        return 0;
    month = month_named(s);
    day = s[4] == ' ' ? digits(s + 5, 1) : digits(s + 4, 2);
    clock = time_of_day(s + 7);
    if (!month || day < 0 || clock < 0)
        return 0;
    at = with_fraction(s, len, 15, 0, &value);
    year = at == 15 && len >= 20 && s[15] == ' ' ? digits(s + 16, 4) : -1;
    if (year >= 1970 && (len == 20 || digits(s + 20, 1) < 0)) {
        if (!is_date(year, month, day))
            return 0;
        t = days(year, month, day) * DAY + clock;
        t -= local_offset(zone, t);
        len = 15; /* it has no fraction */
        at = 20;
    } else {
        t = in_a_year(zone, month, day, clock);
    }
    if (t < 0)
        return 0;
    (void)with_fraction(s, len, 15, t, &value);
    *ts = ep_fp_from_decimal(&value, s, 0);
    return at;
}

/* "I1130 03:14:15.123456", "I20261130 03:14:15.123456" */
static size_t glog_time(struct ep_strip_zone *zone, const char *s, size_t len,
                        double *ts)
{
    size_t date = len > 9 && s[9] == ' ' ? 5 : 1, at = date + 13, end;
    struct ep_fp_decimal value;
    int64_t clock, t;
    int month, day, year;

    if (len < at + 2 || s[at] != '.' || s[date + 4] != ' ')
        return 0;
    month = digits(s + date, 2);
    day = digits(s + date + 2, 2);
    clock = time_of_day(s + date + 5);
    if (month < 0 || day < 0 || clock < 0)
        return 0;
    if (date == 5) {
        year = digits(s + 1, 4);
        if (!is_date(year, month, day))
            return 0;
        t = days(year, month, day) * DAY + clock;
        t -= local_offset(zone, t);
    } else {
        t = in_a_year(zone, month, day, clock);
    }
    if (t < 0)
        return 0;
    end = with_fraction(s, len, at, t, &value);
    if (end == at)
        return 0;
    *ts = ep_fp_from_decimal(&value, s, 0);
    return end;
}

/* ==== Seconds since the epoch ==== */

#define EPOCH_FIRST INT64_C(1000000000) /* 2001-09-09: ten digits */
#define EPOCH_END INT64_C(4102444800)   /* 2100-01-01 */
#define MIB 1048576

static size_t epoch_time(const char *s, size_t len, double *ts)
{
    struct ep_fp_decimal value = {.exp10 = 0};
    size_t n = 0, at;
    int64_t t = 0;

    for (; n < len && digits(s + n, 1) >= 0; n++) {
        if (n == 19)
            return 0;
        value.mant = value.mant * 10 + (uint64_t)(s[n] - '0');
        if (n < 10)
            t = (int64_t)value.mant;
    }
    if (n < 10 || (n - 10) % 3 != 0 || t < EPOCH_FIRST || t >= EPOCH_END)
        return 0;
    value.exp10 = 10 - (int)n;
    at = n == 10 && n < len && s[n] == '.' ? with_fraction(s, len, n, t, &value)
                                           : n;
    if (at == n && value.mant % MIB == 0)
        return 0; /* more often a size */
    if (at == len || !strchr(" \t:,;|])", s[at]) || !s[at])
        return 0;
    *ts = ep_fp_from_decimal(&value, s, 0);
    return at;
}

size_t ep_strip_stamp(struct ep_strip_zone *zone, const char *s, size_t len,
                      double *ts)
{
    size_t n = 0;

    if (!len)
        return 0;
    if (digits(s, 1) >= 0) {
        n = ep_strip_time(zone, s, len, ts);
        return n ? n : epoch_time(s, len, ts);
    }
    if (*s == 'I' || *s == 'W' || *s == 'E' || *s == 'F')
        n = glog_time(zone, s, len, ts);
    return n ? n : syslog_time(zone, s, len, ts);
}

double ep_strip_when(struct ep_strip_zone *zone, const struct ep_strip *s)
{
    double ts;

    if (!s->stamp.len || !ep_strip_stamp(zone, s->stamp.ptr, s->stamp.len, &ts))
        ts = s->ts;
    if (ts > zone->latest) /* not so if it is NaN */
        zone->latest = ts;
    return ts;
}
