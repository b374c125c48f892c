/* SPDX-License-Identifier: Apache-2.0 */
/* select.c - see select.h. */
#include "config.h"

#include "record/select.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
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
    for (int k = 0; k < EP_KEYS; k++)
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

static int add_where(struct ep_select *s, const char *text, size_t n,
                     struct ep_error *err)
{
    const char *equals = memchr(text, '=', n);
    struct ep_select_where *w = &s->where[s->nwhere];
    char copy[64];
    int k;

    if (!equals)
        return bad(err, "where", text, n, "not KEY=VALUE");
    k = find_key(text, (size_t)(equals - text));
    if (k < 0)
        return bad(err, "where", text, (size_t)(equals - text), "no such key");
    if (s->nwhere == EP_SELECT_MAX)
        return ep_error_set(err, EP_ELIMIT, "cannot use --where: over %d",
                            EP_SELECT_MAX);
    w->key = (enum ep_key)k;
    w->text = equals + 1;
    w->len = n - (size_t)(w->text - text);
    w->num = (double)NAN;
    if (w->len < sizeof copy) {
        memcpy(copy, w->text, w->len);
        copy[w->len] = '\0';
        if (ep_num_double(copy, -INFINITY, INFINITY, &w->num, NULL) < 0)
            w->num = (double)NAN;
    }
    /* from is a number in a plan, a name in a merge */
    if (ep_key_table[k].unit && k != EP_K_FROM && isnan(w->num))
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

/* "2026-11-30T03:00:00Z" and the like; -1 if it is not that. */
static int read_date(const char *text, double *out)
{
    static const char *const forms[] = {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M",
                                        "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M",
                                        "%Y-%m-%d"};

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        struct tm tm = {.tm_isdst = -1};
        const char *end = strptime(text, forms[i], &tm);
        bool utc = end && strcmp(end, "Z") == 0;
        time_t t;

        if (!end || (*end && !utc))
            continue;
        t = utc ? timegm(&tm) : mktime(&tm);
        *out = (double)t;
        return t == (time_t)-1 ? -1 : 0;
    }
    return -1;
}

static int read_time(const char *option, const char *text, double *out,
                     struct ep_error *err)
{
    if (ep_num_double(text, 0, 1e15, out, NULL) == 0 ||
        read_date(text, out) == 0)
        return 0;
    return bad(err, option, text, strlen(text),
               "neither seconds since the epoch nor YYYY-MM-DDThh:mm:ss");
}

int ep_select_init(struct ep_select *s, const char *types, const char *where,
                   const char *since, const char *until, struct ep_error *err)
{
    int rc = 0;

    *s = (struct ep_select){.since = (double)-INFINITY,
                            .until = (double)INFINITY};
    if (types)
        rc = add_types(s, types, err);
    if (rc == 0 && where)
        rc = add_wheres(s, where, err);
    if (rc == 0 && since)
        rc = read_time("since", since, &s->since, err);
    if (rc == 0 && until)
        rc = read_time("until", until, &s->until, err);
    return rc;
}

static bool holds(const struct ep_select_where *w, const struct ep_record *r)
{
    if (!ep_record_has(r, w->key))
        return false;
    switch (ep_key_value(r->type, w->key)) {
    case EP_V_NUMBER:
    case EP_V_INTEGER:
        return ep_record_num(r, w->key) == w->num;
    default: {
        struct ep_span v = ep_record_str(r, w->key);

        return v.len == w->len && memcmp(v.ptr, w->text, v.len) == 0;
    }
    }
}

/* Does w, or another one for its key, hold? */
static bool any_holds(const struct ep_select *s, const struct ep_record *r,
                      enum ep_key key)
{
    for (int i = 0; i < s->nwhere; i++)
        if (s->where[i].key == key && holds(&s->where[i], r))
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
        if (!any_holds(s, r, s->where[i].key))
            return false;
    return true;
}
