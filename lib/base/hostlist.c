/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostlist.c - see hostlist.h. A string is parsed into lists of ranges with
 * text between them; then an odometer, whose last wheel turns fastest, counts
 * through the names.
 */
#include "config.h"

#include "base/hostlist.h"

#include "base/buf.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS 18 /* of a number at most: it fits 64 bits */

struct range {
    uint64_t low, high;
    int width;
};

struct list {
    struct ep_span before; /* the text between the last list and this one */
    size_t first, n;       /* its ranges */
    size_t count;          /* its names */
    size_t range;          /* where the wheel stands */
    uint64_t at;
};

struct parse {
    const char *s, *p; /* the whole, and how far */
    struct list *lists;
    size_t nlists, lists_cap;
    struct range *ranges;
    size_t nranges, ranges_cap;
    size_t names; /* of the lists so far: their product */
    struct ep_span after;
    struct ep_error *err;
};

static int refuse(const struct parse *a, int code, const char *at,
                  const char *why)
{
    char shown[120];

    return ep_error_set(a->err, code, "cannot expand %s: at byte %zu: %s",
                        ep_escape(shown, sizeof shown, a->s, strlen(a->s)),
                        (size_t)(at - a->s), why);
}

static int too_many(const struct parse *a)
{
    char shown[120];

    return ep_error_set(
        a->err, EP_ELIMIT, "cannot expand %s: more than %d names",
        ep_escape(shown, sizeof shown, a->s, strlen(a->s)), EP_HOSTLIST_NAMES);
}

/* digit+ at a->p. Returns how many digits, or an error. */
static int parse_number(struct parse *a, uint64_t *x)
{
    const char *from = a->p;

    *x = 0;
    for (; *a->p >= '0' && *a->p <= '9'; a->p++) {
        if (a->p - from == DIGITS)
            return refuse(a, EP_EFORMAT, from, "a number is too long");
        *x = *x * 10 + (uint64_t)(*a->p - '0');
    }
    if (a->p != from)
        return (int)(a->p - from);
    if (*a->p == ']' || *a->p == ',')
        return refuse(a, EP_EFORMAT, a->p,
                      "a number is missing (write a plain '[' as %5B)");
    return refuse(a, EP_EFORMAT, a->p, "not a digit");
}

static int parse_range(struct parse *a, struct list *l)
{
    const char *from = a->p;
    struct range r;
    int rc = parse_number(a, &r.low);

    if (rc < 0)
        return rc;
    r.width = rc;
    r.high = r.low;
    if (*a->p == '-') {
        a->p++;
        rc = parse_number(a, &r.high);
        if (rc < 0)
            return rc;
    }
    if (r.high < r.low)
        return refuse(a, EP_EFORMAT, from, "a range goes down");
    if (r.high - r.low >= EP_HOSTLIST_NAMES - l->count)
        return too_many(a);
    l->count += (size_t)(r.high - r.low + 1);
    a->ranges =
        ep_grow(a->ranges, &a->ranges_cap, a->nranges + 1, sizeof *a->ranges);
    a->ranges[a->nranges++] = r;
    if (l->n++ == 0)
        l->at = r.low;
    return 0;
}

/* The list whose '[' is at a->p. */
static int parse_list(struct parse *a, struct ep_span before)
{
    struct list l = {.before = before, .first = a->nranges};
    int rc;

    do {
        a->p++;
        rc = parse_range(a, &l);
    } while (rc == 0 && *a->p == ',');
    if (rc < 0)
        return rc;
    if (*a->p != ']')
        return refuse(a, EP_EFORMAT, a->p, "not ',', '-' or ']'");
    a->p++;
    a->lists =
        ep_grow(a->lists, &a->lists_cap, a->nlists + 1, sizeof *a->lists);
    a->lists[a->nlists++] = l;
    if (l.count > EP_HOSTLIST_NAMES / a->names)
        return too_many(a);
    a->names *= l.count;
    return 0;
}

static int parse(struct parse *a)
{
    const char *text = a->p;
    int rc;

    while (*(a->p += strcspn(a->p, "[]"))) {
        const char *close = strchr(a->p, ']');

        if (*a->p == ']')
            return refuse(a, EP_EFORMAT, a->p, "']' without '['");
        if (!close)
            return refuse(a, EP_EFORMAT, a->p, "'[' without ']'");
        if (memchr(a->p, ':', (size_t)(close - a->p))) {
            a->p = close + 1; /* [::1] is text */
            continue;
        }
        rc = parse_list(a, (struct ep_span){text, (size_t)(a->p - text)});
        if (rc < 0)
            return rc;
        text = a->p;
    }
    a->after = (struct ep_span){text, (size_t)(a->p - text)};
    return 0;
}

/* The next name; false after the last. */
static bool turn(const struct parse *a)
{
    for (size_t i = a->nlists; i-- > 0;) {
        struct list *l = &a->lists[i];
        const struct range *r = &a->ranges[l->first];

        if (l->at++ < r[l->range].high)
            return true;
        l->range++;
        if (l->range < l->n) {
            l->at = r[l->range].low;
            return true;
        }
        l->range = 0;
        l->at = r[0].low;
    }
    return false;
}

static void print(const struct parse *a, struct ep_buf *name)
{
    ep_buf_reset(name);
    for (size_t i = 0; i < a->nlists; i++) {
        const struct list *l = &a->lists[i];

        ep_buf_add(name, l->before.ptr, l->before.len);
        ep_buf_addf(name, "%0*" PRIu64, a->ranges[l->first + l->range].width,
                    l->at);
    }
    ep_buf_add(name, a->after.ptr, a->after.len);
}

static int add_names(const struct parse *a, struct ep_hostlist *h)
{
    size_t before = h->n, bytes = 0;
    struct ep_buf name;
    int rc = 0;

    ep_buf_init(&name);
    do {
        print(a, &name);
        bytes += name.len + 1;
        if (bytes > EP_HOSTLIST_BYTES && a->nlists > 0) {
            rc = refuse(a, EP_ELIMIT, a->s, "the names are too long");
            break;
        }
        h->v = ep_grow(h->v, &h->cap, h->n + 1, sizeof *h->v);
        h->v[h->n++] = ep_strndup(name.ptr, name.len);
    } while (turn(a));
    ep_buf_free(&name);
    while (rc < 0 && h->n > before)
        free(h->v[--h->n]);
    return rc;
}

int ep_hostlist_expand(struct ep_hostlist *h, const char *s,
                       struct ep_error *err)
{
    struct parse a = {.s = s, .p = s, .names = 1, .err = err};
    int rc = parse(&a);

    if (rc == 0)
        rc = add_names(&a, h);
    free(a.lists);
    free(a.ranges);
    return rc;
}

void ep_hostlist_free(struct ep_hostlist *h)
{
    for (size_t i = 0; i < h->n; i++)
        free(h->v[i]);
    free(h->v);
    *h = (struct ep_hostlist){0};
}
