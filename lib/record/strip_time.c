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

#include <time.h>

#define QUARTER 900
#define DAY 86400

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

/* "2026-01-02T03:04:05" to seconds as if it were UTC; -1 if it is none. */
static int64_t civil(const char *s, size_t len)
{
    int year, month, day, hour, minute, second;

    if (len < 19 || (s[4] != '-' && s[4] != '/') || s[7] != s[4] ||
        (s[10] != 'T' && s[10] != ' ') || s[13] != ':' || s[16] != ':')
        return -1;
    year = digits(s, 4);
    month = digits(s + 5, 2);
    day = digits(s + 8, 2);
    hour = digits(s + 11, 2);
    minute = digits(s + 14, 2);
    second = digits(s + 17, 2);
    if (year < 1970 || month < 1 || month > 12 || day < 1 || day > 31 ||
        hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
        second > 60)
        return -1;
    return days(year, month, day) * DAY +
           (hour * INT64_C(3600) + minute * INT64_C(60) + second);
}

/* Seconds to take from the local time t. */
static int64_t local_offset(struct ep_strip_zone *zone, int64_t t)
{
    int64_t quarter = t / QUARTER;
    time_t as_utc = (time_t)(quarter * QUARTER);
    struct tm tm;

    if (zone->known && zone->quarter == quarter)
        return zone->offset;
    zone->offset = 0;
    if (gmtime_r(&as_utc, &tm)) {
        time_t real;

        tm.tm_isdst = -1;
        real = mktime(&tm);
        if (real != (time_t)-1)
            zone->offset = (int64_t)as_utc - (int64_t)real;
    }
    zone->quarter = quarter;
    zone->known = true;
    return zone->offset;
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

size_t ep_strip_time(struct ep_strip_zone *zone, const char *s, size_t len,
                     double *ts)
{
    int64_t t = civil(s, len), offset, fraction = 0;
    struct ep_fp_decimal value = {.exp10 = 0};
    size_t at = 19, n;

    if (t < 0)
        return 0;
    if (len > 20 && (s[19] == '.' || s[19] == ',') && digits(s + 20, 1) >= 0) {
        for (at = 20; at < len && digits(s + at, 1) >= 0; at++) {
            if (value.exp10 > -9) {
                fraction = fraction * 10 + (s[at] - '0');
                value.exp10--;
            }
        }
    }
    n = zone_at(s + at, len - at, &offset);
    t -= n ? offset : local_offset(zone, t);
    if (t < 0)
        return 0;
    value.mant =
        (uint64_t)t * ep_fp_pow10_u64[-value.exp10] + (uint64_t)fraction;
    *ts = ep_fp_from_decimal(&value, s, 0);
    return at + n;
}
