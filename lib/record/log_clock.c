/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_clock.c - see log_clock.h.
 *
 * All times but seconds since the epoch have two colons, three bytes apart:
 * they are looked for, sixteen bytes at once, and the date is in front of them.
 */
#include "config.h"

#include "record/log_clock.h"

#include <math.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* A time is looked for so many bytes before the end of a text. */
#define BEFORE 4096

/* From the first dash of "2026-01-02 03:04:05" to the others. */
#define TO_DASH 3
#define TO_COLON 9
#define TO_COLON_2 12
#define YEAR 4

/* From the first colon back to the beginning of other forms. */
#define SYSLOG 9     /* "Nov 30 03:" */
#define GLOG 8       /* "I1130 03:" */
#define GLOG_YEAR 12 /* "I20261130 03:" */

void ep_log_clock_init(struct ep_log_clock *c, double mtime)
{
    *c = (struct ep_log_clock){.last = (double)NAN};
    c->mtime = mtime >= 0 ? mtime : 0;
    c->zone.latest = c->mtime;
}

static void set_last(struct ep_log_clock *c, double ts)
{
    c->last = ts;
    if (ts > c->zone.latest)
        c->zone.latest = ts;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Bit i: p[i] is c, of the first n <= EP_LOG_HEAD bytes. */
static uint64_t mask(const char *p, size_t n, char c)
{
    uint64_t m = 0;

#if defined(__SSE2__)
    const __m128i wanted = _mm_set1_epi8(c);

    for (size_t i = 0; i < n; i += 16) {
        __m128i w = _mm_loadu_si128((const __m128i *)(const void *)(p + i));

        m |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(w, wanted))
             << i;
    }
    return n < EP_LOG_HEAD ? m & ((UINT64_C(1) << n) - 1) : m;
#else
    for (size_t i = 0; i < n; i++)
        m |= (uint64_t)(p[i] == c) << i;
    return m;
#endif
}

/* A time of another form than 2026-01-02 whose first colon is at colon, of a
 * text from from to end: bytes taken, or 0. */
static size_t other_form(struct ep_log_clock *c, const char *from,
                         const char *colon, const char *end, double *ts)
{
    static const size_t back[] = {SYSLOG, GLOG, GLOG_YEAR};

    for (size_t i = 0; i < sizeof back / sizeof back[0]; i++) {
        const char *begin = colon - back[i];
        size_t n;

        if ((size_t)(colon - from) < back[i] || !is_letter(*begin) ||
            (begin > from && (is_letter(begin[-1]) || is_digit(begin[-1]))))
            continue;
        n = ep_strip_stamp(&c->zone, begin, (size_t)(end - begin), ts);
        if (n > back[i])
            return n;
    }
    return 0;
}

/* Seconds since the epoch at the beginning. */
static void note_seconds(struct ep_log_clock *c, const char *line, size_t len)
{
    double ts;

    if (len && (*line == '[' || *line == '(')) {
        line++;
        len--;
    }
    if (len > 10 && is_digit(line[0]) && is_digit(line[9]) &&
        ep_strip_stamp(&c->zone, line, len, &ts)) {
        set_last(c, ts);
        c->stamp_len = 0;
    }
}

void ep_log_clock_note(struct ep_log_clock *c, const char *line, size_t len)
{
    size_t head = len < EP_LOG_HEAD ? len : EP_LOG_HEAD;
    const char *end = line + len, *dash;
    uint64_t colons = mask(line, head, ':'), dashes;
    double ts;

    colons &= colons >> (TO_COLON_2 - TO_COLON);
    if (!colons) {
        note_seconds(c, line, len);
        return;
    }
    dashes = mask(line, head, '-') | mask(line, head, '/');
    dashes &= dashes >> TO_DASH & colons >> TO_COLON;
    dash = dashes ? line + __builtin_ctzll(dashes) : line;
    if (dash - line >= YEAR && is_digit(dash[-1]) && is_digit(dash[-YEAR])) {
        size_t n = (size_t)(end - (dash - YEAR));

        c->stamp_len = n < sizeof c->stamp ? n : sizeof c->stamp;
        memcpy(c->stamp, dash - YEAR, c->stamp_len);
        return;
    }
    for (; colons; colons &= colons - 1) {
        if (other_form(c, line, line + __builtin_ctzll(colons), end, &ts)) {
            set_last(c, ts);
            c->stamp_len = 0;
            return;
        }
    }
    note_seconds(c, line, len);
}

double ep_log_clock_in(struct ep_log_clock *c, const char *p, const char *end)
{
    double found = (double)NAN;
    const char *from = end - p > BEFORE ? end - BEFORE : p;
    const char *at = from;

    while (at < end) {
        const char *colon = memchr(at, ':', (size_t)(end - at));
        const char *begin;
        double ts;

        if (!colon)
            break;
        at = colon + 1;
        if (end - colon < 6 || colon[TO_COLON_2 - TO_COLON] != ':')
            continue;
        begin = colon - TO_COLON - YEAR;
        if ((colon - from >= YEAR + TO_COLON &&
             ep_strip_time(&c->zone, begin, (size_t)(end - begin), &ts) > 0) ||
            other_form(c, from, colon, end, &ts) > 0)
            found = ts;
    }
    return found;
}

double ep_log_clock_at(struct ep_log_clock *c, double own)
{
    double noted;

    if (!isnan(own))
        set_last(c, own);
    else if (c->stamp_len &&
             ep_strip_time(&c->zone, c->stamp, c->stamp_len, &noted) > 0)
        set_last(c, noted);
    c->stamp_len = 0;
    return isnan(c->last) ? c->mtime : c->last;
}
