/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern_literal.c - see pattern_literal.h.
 *
 * Of the literal two bytes are compared, at their distance, and the whole only
 * where both fit. Which two: those that are rare in logs, by a guess of a few
 * classes, since logs of training jobs are words, digits and blanks.
 */
#include "config.h"

#include "record/pattern_literal.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* ==== The literal of an expression ==== */

int ep_literal_commonness(unsigned char c)
{
    if (c == ' ' || c == 'e' || c == '0')
        return 5;
    if (c >= '0' && c <= '9')
        return 4;
    if (strchr("taoinsrl.:,", c) && c)
        return 4;
    if (c >= 'a' && c <= 'z')
        return strchr("jqxzkv", c) ? 1 : 3;
    if (strchr("-_[]()=/\"'|", c) && c)
        return 2;
    return c >= 'A' && c <= 'Z' ? 1 : 0;
}

void ep_literal_set(struct ep_literal *l, const char *text, size_t len)
{
    size_t a = 0, b = 0;

    l->len = len < EP_LITERAL_MAX ? len : EP_LITERAL_MAX;
    memcpy(l->text, text, l->len);
    for (size_t i = 1; i < l->len; i++) {
        int here = ep_literal_commonness((unsigned char)text[i]);

        if (here < ep_literal_commonness((unsigned char)text[a])) {
            b = a;
            a = i;
        } else if (b == a ||
                   here < ep_literal_commonness((unsigned char)text[b])) {
            b = i;
        }
    }
    l->a = a < b ? a : b;
    l->b = a < b ? b : a;
}

/* The run of plain characters that goes on, and the longest one before. */
struct run {
    char now[EP_LITERAL_MAX], best[EP_LITERAL_MAX];
    size_t len, best_len;
};

static void end_run(struct run *run)
{
    if (run->len > run->best_len) {
        memcpy(run->best, run->now, run->len);
        run->best_len = run->len;
    }
    run->len = 0;
}

static void add_to_run(struct run *run, char c)
{
    if (run->len == EP_LITERAL_MAX)
        end_run(run);
    run->now[run->len++] = c;
}

/* Behind a class, p being behind its '['; NULL if it has no end. */
static const char *class_end(const char *p)
{
    if (*p == '^')
        p++;
    if (*p == ']') /* the first one is itself */
        p++;
    while (*p && *p != ']') {
        if (*p == '\\') {
            if (p[1] == 'Q' || !p[1])
                return NULL;
            p += 2;
        } else if (*p == '[' && (p[1] == ':' || p[1] == '.' || p[1] == '=')) {
            const char kind = p[1];
            const char *q = p + 2;

            while (*q && *q != ']' && *q != '\\' && !(*q == kind))
                q++;
            p = *q == kind && q[1] == ']' ? q + 2 : p + 1;
        } else {
            p++;
        }
    }
    return *p ? p + 1 : NULL;
}

/* Behind a group, p being at its '('; NULL if that cannot be told. */
static const char *group_end(const char *p)
{
    int depth = 0;

    while (*p) {
        if (p[0] == '(' && p[1] == '?' && (p[2] == '#' || p[2] == 'C'))
            return NULL; /* text with brackets of its own */
        if (p[0] == '(' && p[1] == '?' && strchr("imnsxJU^-)", p[2]))
            return NULL; /* options: x changes what a text means */
        if (p[0] == '(' && p[1] == '*')
            return NULL;
        if (*p == '\\') {
            if (p[1] == 'Q' || !p[1])
                return NULL;
            p += 2;
            continue;
        }
        if (*p == '[') {
            p = class_end(p + 1);
            if (!p)
                return NULL;
            continue;
        }
        depth += *p == '(';
        depth -= *p == ')';
        p++;
        if (depth == 0)
            return p;
    }
    return NULL;
}

/* "{2,3}", "{,3}" or "{ 2 }" at p: its length, or 0 if it is text. */
static size_t braces(const char *p)
{
    size_t n;

    if (*p != '{')
        return 0;
    n = 1 + strspn(p + 1, "0123456789, ");
    return p[n] == '}' && n > 1 ? n + 1 : 0;
}

/* What follows an escape that is one character: "d" is not, "." is. */
static bool is_escaped_text(char c)
{
    return c && strchr(".[]{}()*+?|^$\\/-:,;=#%@!<>\"'&~ ", c);
}

/* A step behind something that is no text; NULL to give up. */
static const char *skip(const char *p)
{
    switch (*p) {
    case '\\':
        if (!p[1] || !strchr("dDwWsSbBAzZhHvVRntrf", p[1]))
            return NULL;
        return p + 2;
    case '[':
        return class_end(p + 1);
    case '(':
        return group_end(p);
    default:
        return p + 1;
    }
}

/* The quantifiers at p: their length, and whether none at all is enough. */
static size_t quantifiers(const char *p, bool *optional)
{
    size_t n = 0, more;

    *optional = false;
    for (;; n += more) {
        more = braces(p + n);
        if (p[n] == '*' || p[n] == '?' || p[n] == '+')
            more = 1;
        if (!more)
            return n;
        /* {2,3} is not optional, but {0,1} is */
        *optional = *optional || p[n] != '+';
    }
}

void ep_literal_find(struct ep_literal *l, const char *regex)
{
    struct run run = {.len = 0};
    const char *p = regex;

    *l = (struct ep_literal){.len = 0};
    while (p && *p) {
        bool text = !strchr("\\[(.^$|*+?", *p), optional;
        size_t n;
        char c = *p;

        if (*p == '|')
            return;
        if (*p == '\\' && is_escaped_text(p[1])) {
            text = true;
            c = p[1];
            p++;
        }
        p = text ? p + 1 : skip(p);
        if (!p)
            return;
        n = quantifiers(p, &optional);
        if (text && !(n && optional))
            add_to_run(&run, c);
        if (!text || n)
            end_run(&run);
        p += n;
    }
    end_run(&run);
    ep_literal_set(l, run.best, run.best_len);
}

/* ==== Search ==== */

/* For lines of a few bytes. */
static bool search_short(const struct ep_literal *l, const char *s, size_t n)
{
    const char *p = s, *end = s + (n - l->len + 1);

    while (p < end) {
        p = memchr(p + l->a, l->text[l->a], (size_t)(end - p));
        if (!p)
            return false;
        p -= l->a;
        if (memcmp(p, l->text, l->len) == 0)
            return true;
        p++;
    }
    return false;
}

#if defined(__SSE2__)

static bool is_at(const struct ep_literal *l, const char *s, unsigned places)
{
    for (; places; places &= places - 1)
        if (memcmp(s + __builtin_ctz(places), l->text, l->len) == 0)
            return true;
    return false;
}

/* Where in s[0 .. 15] both bytes fit. */
static unsigned places(const struct ep_literal *l, const char *s, __m128i a,
                       __m128i b)
{
    __m128i at_a = _mm_loadu_si128((const __m128i *)(const void *)(s + l->a));
    __m128i at_b = _mm_loadu_si128((const __m128i *)(const void *)(s + l->b));

    return (unsigned)_mm_movemask_epi8(
        _mm_and_si128(_mm_cmpeq_epi8(at_a, a), _mm_cmpeq_epi8(at_b, b)));
}

bool ep_literal_in(const struct ep_literal *l, const char *s, size_t n)
{
    __m128i a, b;
    size_t last, i;

    if (n < l->len + 15)
        return l->len == 0 || (n >= l->len && search_short(l, s, n));
    if (l->len == 0)
        return true;
    a = _mm_set1_epi8(l->text[l->a]);
    b = _mm_set1_epi8(l->text[l->b]);
    last = n - l->len - 15; /* the last 16 places begin here */
    for (i = 0; i < last; i += 16) {
        unsigned found = places(l, s + i, a, b);

        if (found && is_at(l, s + i, found))
            return true;
    }
    return is_at(l, s + last, places(l, s + last, a, b));
}

#else

bool ep_literal_in(const struct ep_literal *l, const char *s, size_t n)
{
    return l->len == 0 || (n >= l->len && search_short(l, s, n));
}

#endif
