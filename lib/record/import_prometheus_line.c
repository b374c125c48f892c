/* SPDX-License-Identifier: Apache-2.0 */
/* import_prometheus_line.c - see import_prometheus_line.h. */
#include "config.h"

#include "record/import_prometheus_line.h"

#include "base/word.h"

#include <stdint.h>
#include <string.h>

/* What a byte may be: in a name, first in a name, in a label's name. */
enum { IN_NAME = 1, DIGIT = 2, COLON = 4 };

/* Of bytes below 128. */
static const unsigned char classes[256] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4, 0, 0, 0, 0, 0, 0, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0,
};

static int class_of(char c)
{
    return classes[(unsigned char)c];
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && is_blank(*p))
        p++;
    return p;
}

#if EP_JSON_SSE2
/* Which bytes are from lo to hi, of 16; both are ASCII. */
static __m128i range16(__m128i w, char lo, char hi)
{
    return _mm_and_si128(_mm_cmpgt_epi8(w, _mm_set1_epi8((char)(lo - 1))),
                         _mm_cmplt_epi8(w, _mm_set1_epi8((char)(hi + 1))));
}

/* Bit i: p[i] is neither letter nor digit nor '_', nor, if it may be, ':',
   which follows '9'. */
static unsigned no_name16(const char *p, bool colon)
{
    __m128i w = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i is = range16(_mm_or_si128(w, _mm_set1_epi8(0x20)), 'a', 'z');

    is = _mm_or_si128(is, range16(w, '0', colon ? ':' : '9'));
    is = _mm_or_si128(is, _mm_cmpeq_epi8(w, _mm_set1_epi8('_')));
    return (unsigned)_mm_movemask_epi8(is) ^ 0xffff;
}
#endif

/* The end of the identifier at p; p if there is none. */
static const char *identifier(const char *p, const char *end, int more)
{
    if (p == end || !(class_of(*p) & (IN_NAME | more)))
        return p;
#if EP_JSON_SSE2
    for (; end - p >= 16; p += 16) {
        unsigned other = no_name16(p, more != 0);

        if (other)
            return p + __builtin_ctz(other);
    }
#endif
    while (p < end && (class_of(*p) & (IN_NAME | DIGIT | more)))
        p++;
    return p;
}

/* The next quote or backslash at or behind p, or end. */
static const char *special(const char *p, const char *end)
{
    return find3(p, end, '"', '\\', '"');
}

/* ==== Labels ==== */

struct scan {
    const char *p, *end;
    bool literal; /* a backslash is one */
    int stray;    /* quotes in values that were not escaped */
    struct ep_span last;
    struct ep_prometheus_line *out;
    struct ep_error *err;
};

/* What is between { and }: a label, the metric's name, or the end. */
enum item { BAD, LABEL, NAME, CLOSE };

/* A quoted name at p: its end, or NULL. */
static const char *quoted(const char *p, const char *end, struct ep_span *name)
{
    const char *q = special(p + 1, end);

    if (q == end || *q != '"')
        return NULL;
    *name = (struct ep_span){p + 1, (size_t)(q - p) - 1};
    return q + 1;
}

/*
 * What begins at s->p, up to the first byte of a label's value. Nothing is
 * passed if it is bad.
 */
static enum item begin_item(struct scan *s, struct ep_span *name,
                            bool *in_quotes)
{
    const char *p = skip_blanks(s->p, s->end), *from = p;

    if (p < s->end && *p == '}') {
        s->p = p + 1;
        return CLOSE;
    }
    *in_quotes = p < s->end && *p == '"';
    if (*in_quotes) {
        p = quoted(p, s->end, name);
        if (!p || !name->len)
            return BAD;
    } else {
        p = identifier(p, s->end, 0);
        *name = (struct ep_span){from, (size_t)(p - from)};
    }
    if (!name->len)
        return BAD;
    p = skip_blanks(p, s->end);
    if (*in_quotes && p < s->end && (*p == ',' || *p == '}')) {
        s->p = p + (*p == ',');
        return NAME;
    }
    if (p == s->end || *p != '=')
        return BAD;
    p = skip_blanks(p + 1, s->end);
    if (p == s->end || *p != '"')
        return BAD;
    s->p = p + 1;
    return LABEL;
}

/*
 * The value at s->p, or, if from is not NULL, of the label whose value was
 * thought to end at the quote before from. False if there is no quote any more.
 */
static bool end_value(struct scan *s, struct ep_prometheus_label *l,
                      const char *from)
{
    const char *begin = from ? l->value.ptr : s->p;
    const char *q = from ? from : begin;

    enum ep_prometheus_text odd =
        s->literal ? EP_PROMETHEUS_RAW : EP_PROMETHEUS_ESCAPED;

    s->stray += from != NULL;
    l->text = from ? odd : EP_PROMETHEUS_PLAIN;
    for (;;) {
        const char *after;

        q = special(q, s->end);
        if (q == s->end)
            return false;
        if (*q == '\\') {
            l->text = odd;
            q += s->literal || s->end - q == 1 ? 1 : 2;
            continue;
        }
        after = skip_blanks(q + 1, s->end);
        if (after < s->end && (*after == ',' || *after == '}'))
            break;
        l->text = odd;
        s->stray++;
        q++;
    }
    l->value = (struct ep_span){begin, (size_t)(q - begin)};
    s->p = q + 1;
    return true;
}

/*
 * A closing brace was passed. If a quote follows, not in an exemplar, then the
 * brace may have been part of the last value: take it there, unless the labels
 * would not end then.
 */
static bool reopen(struct scan *s)
{
    struct ep_prometheus_line *out = s->out;
    struct ep_prometheus_label *l, before;
    const char *p = s->p, *value = skip_blanks(p, s->end), *quote;
    int stray = s->stray;

    if (!out->nlabels || (value < s->end && class_of(*value) == DIGIT))
        return false; /* a value: nearly all lines */
    l = &out->labels[out->nlabels - 1];
    quote = memchr(p, '"', (size_t)(s->end - p));
    if (!quote || memchr(p, '#', (size_t)(quote - p)))
        return false;
    before = *l;
    if (end_value(s, l, l->value.ptr + l->value.len + 1))
        return true;
    *l = before;
    s->p = p;
    s->stray = stray;
    return false;
}

static int too_early(struct scan *s)
{
    return ep_error_set(s->err, EP_ETRUNC, "the labels do not end");
}

/* The comma behind a value, if that is what is there. */
static void skip_comma(struct scan *s)
{
    const char *p = skip_blanks(s->p, s->end);

    if (p < s->end && *p == ',')
        s->p = p + 1;
}

/*
 * The next label if it is as exporters write them: name="value" with nothing
 * odd in it, and a comma or the brace behind. Else nothing is passed.
 */
static bool usual_label(struct scan *s)
{
    struct ep_prometheus_line *out = s->out;
    const char *from = s->p, *p = identifier(from, s->end, 0), *q;

    if (p == from || s->end - p < 2 || p[0] != '=' || p[1] != '"' ||
        out->nlabels == EP_PROMETHEUS_LABELS)
        return false;
    q = special(p + 2, s->end);
    if (s->end - q < 2 || *q != '"' || (q[1] != ',' && q[1] != '}'))
        return false;
    out->labels[out->nlabels++] = (struct ep_prometheus_label){
        .name = {from, (size_t)(p - from)},
        .value = {p + 2, (size_t)(q - p) - 2},
    };
    s->p = q + 1 + (q[1] == ',');
    return true;
}

/* All between { and }, from behind the {. */
static int labels(struct scan *s)
{
    struct ep_prometheus_line *out = s->out;

    for (;;) {
        struct ep_prometheus_label *l;
        struct ep_span name;
        bool in_quotes;
        enum item item;

        if (usual_label(s))
            continue;
        l = &out->labels[out->nlabels];
        item = begin_item(s, &name, &in_quotes);
        if (item == CLOSE && !reopen(s))
            return 0;
        if (item == CLOSE) {
            skip_comma(s);
            continue;
        }
        if (item == NAME) {
            if (out->name.len)
                return ep_error_set(s->err, EP_EFORMAT, "two names");
            out->name = name;
            out->quoted = true;
            continue;
        }
        if (item == BAD && !out->nlabels)
            return s->p == s->end
                       ? too_early(s)
                       : ep_error_set(s->err, EP_EFORMAT, "not a label");
        if (item == BAD) { /* then the quote before was part of the value */
            l--;
            if (!end_value(s, l, l->value.ptr + l->value.len + 1))
                return too_early(s);
            skip_comma(s);
            continue;
        }
        if (out->nlabels == EP_PROMETHEUS_LABELS)
            return ep_error_set(s->err, EP_ELIMIT, "too many labels");
        *l = (struct ep_prometheus_label){.name = name, .quoted = in_quotes};
        if (!end_value(s, l, NULL))
            return too_early(s);
        out->nlabels++;
        skip_comma(s);
    }
}

/* ==== Lines ==== */

/* As identifier(), a little faster if it is the name again that was last. */
static const char *name_end(const char *p, const char *end, struct ep_span last)
{
    size_t n = last.len;

    if (n && (size_t)(end - p) > n && memcmp(p, last.ptr, n) == 0 &&
        !class_of(p[n]))
        return p + n;
    return identifier(p, end, COLON);
}

static int scan(struct scan *s, const char *line)
{
    struct ep_prometheus_line *out = s->out;
    const char *p = skip_blanks(line, s->end), *from = p;
    bool apart;

    p = name_end(p, s->end, s->last);
    out->series = (struct ep_span){from, (size_t)(p - from)};
    out->name = (struct ep_span){from, (size_t)(p - from)};
    out->quoted = false;
    out->nlabels = 0;
    s->p = skip_blanks(p, s->end);
    apart = s->p > p;
    if (s->p < s->end && *s->p == '{') {
        int rc;

        s->p++;
        rc = labels(s);
        if (rc < 0)
            return rc;
        out->series.len = (size_t)(s->p - from);
        s->p = skip_blanks(s->p, s->end);
        apart = true;
    }
    if (!out->name.len)
        return ep_error_set(s->err, EP_EFORMAT, "no name of a metric");
    if (s->p == s->end)
        return ep_error_set(s->err, EP_ETRUNC, "no value");
    if (!apart)
        return ep_error_set(s->err, EP_EFORMAT, "not a sample");
    from = s->p;
    p = from;
    while (p < s->end && !is_blank(*p))
        p++;
    out->value = (struct ep_span){from, (size_t)(p - from)};
    p = skip_blanks(p, s->end);
    out->rest = (struct ep_span){p, (size_t)(s->end - p)};
    return 0;
}

int ep_prometheus_scan(const char *line, size_t len, struct ep_span last,
                       struct ep_prometheus_line *out, struct ep_error *err)
{
    struct scan s = {.end = line + len, .last = last, .out = out, .err = err};
    int rc = scan(&s, line);

    if ((rc < 0 || s.stray) && memchr(line, '\\', len)) {
        struct scan other = {.end = line + len, .literal = true, .out = out};

        if (scan(&other, line) == 0 && (rc < 0 || other.stray < s.stray))
            return 0;
        rc = scan(&s, line);
    }
    return rc;
}

/* ==== Values ==== */

/* The byte at *p, an escape taken as one; *p goes behind it. */
static char next_byte(const struct ep_prometheus_label *l, const char **p,
                      const char *end)
{
    char c = *(*p)++;

    if (c != '\\' || l->text != EP_PROMETHEUS_ESCAPED || *p == end)
        return c;
    if (**p == 'n' || **p == '\\' || **p == '"') {
        c = **p;
        if (c == 'n')
            c = '\n';
        (*p)++;
    }
    return c;
}

char *ep_prometheus_decode(const struct ep_prometheus_label *label, char *to)
{
    const char *p = label->value.ptr, *end = p + label->value.len;

    while (p < end)
        *to++ = next_byte(label, &p, end);
    return to;
}

char *ep_prometheus_encode(const struct ep_prometheus_label *label, char *to)
{
    const char *p = label->value.ptr, *end = p + label->value.len;

    if (label->text == EP_PROMETHEUS_PLAIN) {
        memcpy(to, p, label->value.len);
        return to + label->value.len;
    }
    while (p < end) {
        char c = next_byte(label, &p, end);

        if (c == '\\' || c == '"' || c == '\n')
            *to++ = '\\';
        if (c == '\n')
            c = 'n';
        *to++ = c;
    }
    return to;
}
