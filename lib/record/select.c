/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - see select.h. */
#include "config.h"

#include "record/select.h"

#include "base/num.h"
#include "record/strip.h"

#include <math.h>
#include <string.h>
#include <time.h>

static int bad(struct ep_error *err, const char *option, const char *text,
               size_t n, const char *why)
{
    char shown[100];

    return ep_error_set(err, EP_EUSAGE, "cannot use --%s %s: %s", option,
                        ep_escape(shown, sizeof shown, text, n), why);
}

static int find_type(const char *name, size_t n)
{
    for (int t = 0; t < EP_TYPES; t++)
        if (ep_type_table[t].name && strlen(ep_type_table[t].name) == n &&
            memcmp(ep_type_table[t].name, name, n) == 0)
            return t;
    return -1;
}

static int find_key(const char *name, size_t n)
{
    for (int k = EP_K_TS; k < EP_KEYS; k++)
        if (strlen(ep_key_table[k].name) == n &&
            memcmp(ep_key_table[k].name, name, n) == 0)
            return k;
    return -1;
}

static int add_types(struct ep_select *s, const char *list,
                     struct ep_error *err)
{
    for (const char *p = list;; p++) {
        size_t n = strcspn(p, ",");
        int t = find_type(p, n);

        if (t < 0)
            return bad(err, "type", p, n, "no such type of record");
        s->types |= UINT32_C(1) << t;
        p += n;
        if (!*p)
            return 0;
    }
}

/* ==== Conditions ==== */

/* "=", ">=" and so on at p, which goes behind it; -1 if it is none. */
static int take_how(const char **p, const char *end)
{
    static const struct {
        const char *text;
        enum ep_select_how how;
    } all[] = {
        {"==", EP_SELECT_EQ}, {"!=", EP_SELECT_NE}, {"<=", EP_SELECT_LE},
        {">=", EP_SELECT_GE}, {"=", EP_SELECT_EQ},  {"<", EP_SELECT_LT},
        {">", EP_SELECT_GT},
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        size_t n = strlen(all[i].text);

        if ((size_t)(end - *p) >= n && memcmp(*p, all[i].text, n) == 0) {
            *p += n;
            return (int)all[i].how;
        }
    }
    return -1;
}

/* The value as a number in the unit of the key, or NaN. */
static double number(struct ep_span text, const char *unit)
{
    char copy[64];
    double x = (double)NAN;
    int64_t bytes;

    if (text.len >= sizeof copy || memchr(text.ptr, '\0', text.len))
        return x;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    if (ep_num_double(copy, -INFINITY, INFINITY, &x, NULL) == 0 || !unit)
        return x;
    if (strcmp(unit, "s") == 0 &&
        ep_num_duration(copy, -INFINITY, INFINITY, &x, NULL) == 0)
        return x;
    if (strcmp(unit, "B") == 0 &&
        ep_num_size(copy, 0, INT64_C(1) << 53, &bytes, NULL) == 0)
        return (double)bytes;
    return (double)NAN;
}

static int add_where(struct ep_select *s, const char *text, size_t n,
                     struct ep_error *err)
{
    const char *end = text + n, *p = text;
    struct ep_select_where *w = &s->where[s->nwhere];
    const char *unit;
    int k, how;

    while (p < end && !strchr("=!<>", *p))
        p++;
    k = find_key(text, (size_t)(p - text));
    if (p == end)
        return bad(err, "where", text, n, "not KEY=VALUE");
    if (k < 0)
        return bad(err, "where", text, (size_t)(p - text), "no such key");
    how = take_how(&p, end);
    if (how < 0)
        return bad(err, "where", text, n, "none of = != < <= > >=");
    if (s->nwhere == EP_SELECT_MAX)
        return ep_error_set(err, EP_ELIMIT, "cannot use --where: over %d",
                            EP_SELECT_MAX);
    unit = ep_key_table[k].unit;
    w->key = (enum ep_key)k;
    w->how = (enum ep_select_how)how;
    w->text = (struct ep_span){p, (size_t)(end - p)};
    w->glob = memchr(p, '*', w->text.len) || memchr(p, '?', w->text.len);
    w->num = number(w->text, unit);
    /* from is a number in a plan, a name in a merge */
    if (how >= EP_SELECT_LT && !unit && k != EP_K_FROM)
        return bad(err, "where", text, n, "text has no order, only = and !=");
    if (isnan(w->num) && (how >= EP_SELECT_LT || (unit && k != EP_K_FROM)))
        return bad(err, "where", text, n, "not a number");
    s->nwhere++;
    return 0;
}

static int add_wheres(struct ep_select *s, const char *list,
                      struct ep_error *err)
{
    for (const char *p = list;; p++) {
        size_t n = strcspn(p, ",");
        int rc = add_where(s, p, n, err);

        if (rc < 0)
            return rc;
        p += n;
        if (!*p)
            return 0;
    }
}

/* ==== Times ==== */

/* When the day began that was days ago, local time. */
static int day_began(double now, int days_ago, double *out)
{
    time_t t = (time_t)now, day;
    struct tm tm;

    if (!localtime_r(&t, &tm))
        return -1;
    tm.tm_mday -= days_ago;
    tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
    tm.tm_isdst = -1;
    day = mktime(&tm);
    *out = (double)day;
    return day == (time_t)-1 ? -1 : 0;
}

#define DATE (sizeof "2026-11-30" - 1)
#define MINUTES (sizeof "2026-11-30T03:14" - 1)

/* "2026-11-30T03:00:00.5+01:00" and what may be left out of it; -1 if it is
 * not that. */
static int read_date(const char *text, double *out)
{
    struct ep_strip_zone zone = {.known = false};
    size_t n = strlen(text), kept = n, used;
    const char *missing = "";
    char whole[80];
    double ts;

    if (n < DATE || n > sizeof whole - 16)
        return -1;
    if (text[DATE] != 'T' && text[DATE] != ' ') {
        kept = DATE;
        missing = " 00:00:00";
    } else if (n >= MINUTES && text[MINUTES] != ':') {
        kept = MINUTES;
        missing = ":00";
    }
    used = strlen(missing);
    memcpy(whole, text, kept);
    memcpy(whole + kept, missing, used);
    memcpy(whole + kept + used, text + kept, n - kept);
    n += used;
    if (ep_strip_time(&zone, whole, n, &ts) != n)
        return -1;
    *out = ts;
    return 0;
}

static int read_time(const char *option, const char *text, double now,
                     double *out, struct ep_error *err)
{
    double age;

    if (strcmp(text, "now") == 0) {
        *out = now;
        return 0;
    }
    if ((strcmp(text, "today") == 0 && day_began(now, 0, out) == 0) ||
        (strcmp(text, "yesterday") == 0 && day_began(now, 1, out) == 0))
        return 0;
    if (*text == '-' && ep_num_duration(text + 1, 0, 1e12, &age, NULL) == 0) {
        *out = now - age;
        return 0;
    }
    if (ep_num_double(text, 0, 1e15, out, NULL) == 0 ||
        read_date(text, out) == 0)
        return 0;
    return bad(err, option, text, strlen(text),
               "not YYYY-MM-DD[Thh:mm[:ss]], with Z or +hh:mm behind it or in "
               "local time, nor seconds since the epoch, -AGE (-10m), now, "
               "today, yesterday");
}

int ep_select_init(struct ep_select *s, const struct ep_select_texts *texts,
                   struct ep_error *err)
{
    int rc = 0;

    *s = (struct ep_select){.since = (double)-INFINITY,
                            .until = (double)INFINITY};
    for (int i = 0; i < texts->ntypes && rc == 0; i++)
        rc = add_types(s, texts->types[i], err);
    for (int i = 0; i < texts->nwhere && rc == 0; i++)
        rc = add_wheres(s, texts->where[i], err);
    if (rc == 0 && texts->since)
        rc = read_time("since", texts->since, texts->now, &s->since, err);
    if (rc == 0 && texts->until)
        rc = read_time("until", texts->until, texts->now, &s->until, err);
    if (rc == 0 && texts->since && !(s->since < s->until))
        rc = bad(err, "since", texts->since, strlen(texts->since),
                 "not before --until");
    return rc;
}

/* ==== Matching ==== */

/* Does the text fit the pattern, in which * and ? stand for others? */
static bool fits(struct ep_span pattern, struct ep_span text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, from = 0;

    while (t < text.len) {
        bool any = p < pattern.len && pattern.ptr[p] == '?';
        bool quoted = p + 1 < pattern.len && pattern.ptr[p] == '\\';

        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = ++p; /* first it stands for nothing */
            from = t;
        } else if (p < pattern.len &&
                   (any || pattern.ptr[p + quoted] == text.ptr[t])) {
            p += 1 + (size_t)quoted;
            t++;
        } else if (star < SIZE_MAX) {
            p = star; /* then for one byte more each time */
            t = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*')
        p++;
    return p == pattern.len;
}

static bool holds(const struct ep_select_where *w, const struct ep_record *r)
{
    enum ep_value kind = ep_key_value(r->type, w->key);
    struct ep_span v;
    double x;
    bool same;

    if (!ep_record_has(r, w->key))
        return false;
    if (kind != EP_V_NUMBER && kind != EP_V_INTEGER) {
        v = ep_record_str(r, w->key);
        same = w->glob ? fits(w->text, v)
                       : v.len == w->text.len &&
                             (!v.len || memcmp(v.ptr, w->text.ptr, v.len) == 0);
        return w->how == EP_SELECT_EQ ? same : w->how == EP_SELECT_NE && !same;
    }
    x = ep_record_num(r, w->key);
    switch (w->how) {
    case EP_SELECT_EQ:
        return x == w->num;
    case EP_SELECT_NE:
        return x != w->num;
    case EP_SELECT_LT:
        return x < w->num;
    case EP_SELECT_LE:
        return x <= w->num;
    case EP_SELECT_GT:
        return x > w->num;
    case EP_SELECT_GE:
        return x >= w->num;
    }
    return false;
}

/* Does one of those with = hold for the key? */
static bool any_holds(const struct ep_select *s, const struct ep_record *r,
                      enum ep_key key)
{
    for (int i = 0; i < s->nwhere; i++)
        if (s->where[i].key == key && s->where[i].how == EP_SELECT_EQ &&
            holds(&s->where[i], r))
            return true;
    return false;
}

bool ep_select_match(const struct ep_select *s, const struct ep_record *r)
{
    if (s->types && !(s->types >> r->type & 1))
        return false;
    if (s->since > (double)-INFINITY || s->until < (double)INFINITY) {
        double ts = ep_record_num(r, EP_K_TS);

        if (!(ts >= s->since && ts < s->until))
            return false;
    }
    for (int i = 0; i < s->nwhere; i++)
        if (s->where[i].how == EP_SELECT_EQ ? !any_holds(s, r, s->where[i].key)
                                            : !holds(&s->where[i], r))
            return false;
    return true;
}
