/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_skip.c - see json_skip.h.
 *
 * ep_json_skip_levels() turns 64 bytes into masks of quotes, brackets and
 * backslashes. A prefix sum modulo 2 of the quotes says which bytes lie in
 * strings (Langdale and Lemire, "Parsing gigabytes of JSON per second", VLDB
 * Journal 28(6), 2019); brackets outside of them are counted one by one, since
 * there are few. Blocks with a backslash go byte by byte.
 */
#include "config.h"

#include "base/json_skip.h"

#include "base/json_impl.h"

#define BLOCK 64

struct state {
    int depth;
    bool string, escaped;
};

/* Byte by byte from p to end; what follows the last bracket, or NULL. */
static const char *slowly(struct state *s, const char *p, const char *end)
{
    for (; p < end; p++) {
        if (s->string) {
            if (s->escaped)
                s->escaped = false;
            else if (*p == '\\')
                s->escaped = true;
            else
                s->string = *p != '"';
        } else if (*p == '"') {
            s->string = true;
        } else if (*p == '{' || *p == '[') {
            s->depth++;
        } else if ((*p == '}' || *p == ']') && --s->depth == 0) {
            return p + 1;
        }
    }
    return NULL;
}

#if EP_JSON_SSE2

/* A bit per byte of a block. */
struct masks {
    uint64_t quote, slash, open, close;
};

EP_INLINE uint64_t equal(__m128i w, char c)
{
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(w, _mm_set1_epi8(c)));
}

EP_INLINE struct masks look(const char *p)
{
    struct masks m = {0, 0, 0, 0};

    for (int i = 0; i < BLOCK; i += 16) {
        __m128i w = _mm_loadu_si128((const __m128i *)(const void *)(p + i));
        /* '[' and '{', ']' and '}' differ in bit 5 only. */
        __m128i folded = _mm_or_si128(w, _mm_set1_epi8(0x20));

        m.quote |= equal(w, '"') << i;
        m.slash |= equal(w, '\\') << i;
        m.open |= equal(folded, '{') << i;
        m.close |= equal(folded, '}') << i;
    }
    return m;
}

/* Bit i: the number of set bits up to i is odd. */
EP_INLINE uint64_t parity(uint64_t x)
{
    for (int i = 1; i < 64; i *= 2)
        x ^= x << i;
    return x;
}

/* A block without backslashes: bytes up to and with the last bracket, or 0. */
EP_INLINE int block(struct state *s, struct masks m)
{
    uint64_t inside = parity(m.quote) ^ (s->string ? ~UINT64_C(0) : 0);
    uint64_t brackets = (m.open | m.close) & ~inside;

    for (; brackets; brackets &= brackets - 1) {
        if (m.open & brackets & -brackets)
            s->depth++;
        else if (--s->depth == 0)
            return __builtin_ctzll(brackets) + 1;
    }
    s->string = inside >> 63;
    return 0;
}

#endif

const char *ep_json_skip_levels(const char *p, const char *end, int depth)
{
    struct state s = {.depth = depth};
#if EP_JSON_SSE2
    for (; end - p >= BLOCK; p += BLOCK) {
        struct masks m = look(p);

        if (m.slash || s.escaped) {
            const char *q = slowly(&s, p, p + BLOCK);

            if (q)
                return q;
        } else {
            int n = block(&s, m);

            if (n)
                return p + n;
        }
    }
#endif
    return slowly(&s, p, end);
}

/* A closing bracket: true if it closes what is round the element. */
static bool close_level(struct ep_json_skip *k, bool object)
{
    for (int d = 0; d < k->depth && d < 64; d++) {
        if (((k->kinds >> d) & 1) == object) {
            k->kinds = k->kinds >> d >> 1;
            k->depth -= d + 1;
            return false;
        }
    }
    return object != k->in_array;
}

bool ep_json_skip_byte(struct ep_json_skip *k, char c)
{
    if (k->string) {
        if (c == '\n')
            k->string = k->escaped = false;
        else if (k->escaped)
            k->escaped = false;
        else if (c == '\\')
            k->escaped = true;
        else
            k->string = c != '"';
        return false;
    }
    switch (c) {
    case '"':
        k->string = true;
        return false;
    case '{':
    case '[':
        k->depth++;
        k->kinds = k->kinds << 1 | (c == '{');
        return false;
    case '}':
    case ']':
        return close_level(k, c == '}');
    default:
        return c == ',' && k->depth == 0;
    }
}
