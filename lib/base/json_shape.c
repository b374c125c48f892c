/* SPDX-License-Identifier: Apache-2.0 */
/* json_shape.c - see json_shape.h. */
#include "config.h"

#include "base/json_shape.h"

#include "base/json_impl.h"

/* ---- learning ---- */

void ep_json_shape_begin(struct ep_json_shape *s)
{
    s->n = 0;
    s->noted = 0;
    s->learning = true;
}

void ep_json_shape_note(struct ep_json_shape *s, struct ep_json_value *to,
                        const struct ep_json_value *v)
{
    struct ep_json_shape_part *part = &s->part[s->noted];

    if (v->kind != EP_JSON_STRING && v->kind != EP_JSON_NUMBER) {
        /* null, true and false that nobody wants are text like any other */
        s->learning &= v->kind < EP_JSON_NUMBER && !to;
        return;
    }
    if (s->noted == EP_JSON_SHAPE_VALUES ||
        (v->kind == EP_JSON_STRING && v->escaped))
        s->learning = false;
    if (!s->learning)
        return;
    part->to = to;
    part->noted = v->raw.ptr;
    part->noted_len = v->raw.len;
    part->string = v->kind == EP_JSON_STRING;
    s->noted++;
}

void ep_json_shape_end(struct ep_json_shape *s, const struct ep_json *j)
{
    const char *p = j->start;
    size_t used = 0;

    if (!s->learning || j->failed || j->depth || j->pending)
        return;
    s->learning = false;
    for (int i = 0; i <= s->noted; i++) {
        struct ep_json_shape_part *part = &s->part[i];
        const char *to = i < s->noted ? part->noted : j->p;
        size_t len = (size_t)(to - p);

        if (len > EP_JSON_SHAPE_TEXT - used)
            return;
        memcpy(s->text + used, p, len);
        part->at = (unsigned)used;
        part->len = (unsigned)len;
        used += len;
        if (i < s->noted)
            p = to + part->noted_len;
    }
    s->n = s->noted + 1;
}

/* ---- matching ---- */

/* Is the text at p this one? May look at the 15 bytes behind both. */
EP_INLINE bool equals(const char *p, const char *text, size_t n)
{
#if EP_JSON_SSE2
    for (;; n -= 16, p += 16, text += 16) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)text);
        unsigned differ =
            ~(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(a, b)) & 0xffff;

        if (n <= 16)
            return (differ & ((1U << n) - 1)) == 0;
        if (differ)
            return false;
    }
#else
    for (; n > 8; n -= 8, p += 8, text += 8)
        if (load8(p) != load8(text))
            return false;
    return !n || (load8(p) ^ load8(text)) << (64 - 8 * n) == 0;
#endif
}

/* A whole number of which the scanner would say so. */
EP_INLINE const char *whole(struct ep_json_value *v, const char *from,
                            const char *p)
{
    v->kind = EP_JSON_NUMBER;
    v->escaped = false;
    v->integer = true;
    v->raw = (struct ep_span){from, (size_t)(p - from)};
    v->dec.exp10 = 0;
    v->dec.cut = false;
    return p;
}

EP_INLINE bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* A plain number at p, with 16 bytes of the text before it: what follows it, or
   NULL. Leaves exponents and many digits to the scanner. */
EP_INLINE const char *number(const char *p, const char *end,
                             struct ep_json_value *v)
{
    const char *from = p;
    uint64_t fraction;
    unsigned n, f = 0;

    v->dec.neg = *p == '-';
    p += v->dec.neg;
    /* numbers of ranks, stages and microbatches are of one digit mostly */
    if (is_digit(p[0]) && !is_digit(p[1]) && p[1] != '.') {
        v->dec.mant = (uint64_t)(p[0] - '0');
        return whole(v, from, p + 1);
    }
    v->dec.mant = digits16(p, &n);
    if (n - 1 > 14 || (*p == '0' && n > 1))
        return NULL;
    p += n;
    if (p >= end || *p != '.')
        return whole(v, from, p);
    fraction = digits16(p + 1, &f);
    if (f - 1 > 14 || n + f > 19)
        return NULL;
    v->dec.mant = v->dec.mant * ep_fp_pow10_u64[f] + fraction;
    p = whole(v, from, p + 1 + f);
    v->integer = false;
    v->dec.exp10 = -(int32_t)f;
    return p;
}

EP_INLINE const char *plain_string(const char *p, const char *end,
                                   struct ep_json_value *v)
{
    const char *q = plain_end_padded(p, end);

    if (q >= end || *q != '"')
        return NULL;
    v->kind = EP_JSON_STRING;
    v->escaped = false;
    v->raw = (struct ep_span){p, (size_t)(q - p)};
    return q;
}

bool ep_json_shape_match(const struct ep_json_shape *s, struct ep_json *j)
{
    const char *p = j->start, *end = j->end;
    struct ep_json_value unused = {.kind = EP_JSON_NULL};

    if (!s->n || j->readable - end < 32)
        return false;
    for (int i = 0;; i++) {
        const struct ep_json_shape_part *part = &s->part[i];
        struct ep_json_value *to = part->to ? part->to : &unused;

        if ((size_t)(end - p) < part->len ||
            !equals(p, s->text + part->at, part->len))
            return false;
        p += part->len;
        if (i == s->n - 1)
            break;
        if (p == end)
            return false;
        if (part->string)
            p = plain_string(p, end, to);
        else if (p - j->start >= 16)
            p = number(p, end, to);
        else
            return false;
        if (!p || p > end)
            return false;
    }
    j->p = p;
    j->pending = false;
    j->separator = EP_JSON_NO_SEPARATOR;
    return true;
}
