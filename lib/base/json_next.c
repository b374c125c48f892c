/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_next.c - ep_json_next() at speed.
 *
 * A member of a telemetry record is short: ,"busy":1.2034551 is 17 bytes. So
 * one window of 32 bytes is loaded at the separator and turned into three
 * masks, a bit per byte: quotes, bytes a plain string cannot have, and bytes
 * that are no digits. The end of the key, the beginning of the value and its
 * end are then bits of these masks, found with a few scalar instructions and
 * no further loads, which keeps the chain of dependent instructions from one
 * member to the next short; it is what limits a scanner that goes from load
 * to load. (The masks are the idea of Langdale and Lemire, "Parsing gigabytes
 * of JSON per second", VLDB Journal 28(6), 2019; there they are made for the
 * whole text in a pass of its own, here for one member, and on demand.)
 *
 * This path takes what it knows and nothing else: a member of the commonest
 * shape that lies within the text. Anything else, errors included, is left to
 * ep_json_next_general(), which begins again at the separator; *key and *v may
 * have been written by then, the scanner has not.
 *
 * There is one form for AVX2 and BMI2, chosen at run time, and one for SSE2,
 * which every x86-64 has. Other machines use the general function alone.
 */
#include "config.h"

#include "base/json_impl.h"

#if !EP_JSON_SSE2

bool ep_json_have_wide(void)
{
    return false;
}

int ep_json_next(struct ep_json *j, struct ep_json_value *key,
                 struct ep_json_value *v)
{
    return ep_json_next_general(j, key, v);
}

#else

#include <immintrin.h>

#define WINDOW EP_JSON_WINDOW

/*
 * Keeps the compiler from turning a rare branch that changes x into
 * arithmetic: a branch is predicted, arithmetic waits for what it depends on,
 * here for a load, in the chain that limits the speed.
 */
#define BRANCH(x) __asm__("" : "+r"(x))

/* Bit i is about byte i of the window. */
struct masks {
    uint32_t quote; /* '"' */
    uint32_t odd;   /* '\\', below 0x20 or above 0x7f */
    uint32_t other; /* not a digit */
};

/* Value of the n digits (1 to 8) before q. Reads the 8 bytes before q. */
EP_INLINE uint64_t short_run(const char *q, unsigned n)
{
    uint64_t w = load8(q - 8) ^ EP_BYTES('0');

    return eight_digits(w & (~UINT64_C(0) << (-8 * n & 63)));
}

/* As above for 1 to 16 digits. */
EP_INLINE uint64_t run(const char *q, unsigned n)
{
    if (EP_LIKELY(n <= 8))
        return short_run(q, n);
    return short_run(q - 8, n - 8) * 100000000 +
           eight_digits(load8(q - 8) ^ EP_BYTES('0'));
}

/*
 * Take the number whose first byte is at s, as the value of a member; bit i of
 * other is set if s[i] is no digit. Leaves numbers with an exponent or many
 * digits, and what is not a number, to the general function.
 */
EP_INLINE int take_number(struct ep_json *j, struct ep_json_value *key,
                          struct ep_json_value *v, const char *s,
                          uint32_t other)
{
    const char *q;
    unsigned n, f = 0;
    uint64_t mant;

    v->raw.ptr = s;
    v->dec.neg = false;
    if (EP_UNLIKELY(*s == '-')) {
        v->dec.neg = true;
        s++;
        other >>= 1;
        BRANCH(other);
    }
    if (EP_UNLIKELY(other == 0 || s - j->start < 8))
        return ep_json_next_general(j, key, v);
    n = (unsigned)__builtin_ctz(other);
    if (EP_UNLIKELY(n - 1 > 15 || (*s == '0' && n > 1)))
        return ep_json_next_general(j, key, v);
    q = s + n;
    mant = run(q, n);
    if (*q == '.') {
        other &= other - 1;
        if (EP_UNLIKELY(other == 0))
            return ep_json_next_general(j, key, v);
        q = s + __builtin_ctz(other);
        f = (unsigned)__builtin_ctz(other) - n - 1;
        if (EP_UNLIKELY(f - 1 > 15 || n + f > 19))
            return ep_json_next_general(j, key, v);
        mant = mant * ep_fp_pow10_u64[f] + run(q, f);
    }
    /* With a padded text, this may have run into what follows it. */
    if (EP_UNLIKELY((*q | 0x20) == 'e' || q > j->end))
        return ep_json_next_general(j, key, v);
    v->kind = EP_JSON_NUMBER;
    v->escaped = false;
    v->integer = f == 0;
    v->raw.len = (size_t)(q - v->raw.ptr);
    v->dec.mant = mant;
    v->dec.exp10 = -(int32_t)f;
    v->dec.cut = false;
    j->p = q;
    j->separator = ',';
    return 1;
}

/*
 * A function of its own, to which the others jump: members with a string then
 * need none of the registers that would have to be saved.
 */
typedef int number_fn(struct ep_json *j, struct ep_json_value *key,
                      struct ep_json_value *v, const char *s, uint32_t other);

static __attribute__((noinline)) int number_sse2(struct ep_json *j,
                                                 struct ep_json_value *key,
                                                 struct ep_json_value *v,
                                                 const char *s, uint32_t other)
{
    return take_number(j, key, v, s, other);
}

__attribute__((target("bmi,bmi2"))) static __attribute__((noinline)) int
number_bmi2(struct ep_json *j, struct ep_json_value *key,
            struct ep_json_value *v, const char *s, uint32_t other)
{
    return take_number(j, key, v, s, other);
}

EP_INLINE void set_string(struct ep_json_value *v, const char *from,
                          const char *to)
{
    v->kind = EP_JSON_STRING;
    v->escaped = false;
    v->raw.ptr = from;
    v->raw.len = (size_t)(to - from);
}

/* A member whose value is a string that goes on after the window of p. */
static __attribute__((noinline)) int long_string(struct ep_json *j,
                                                 struct ep_json_value *key,
                                                 struct ep_json_value *v,
                                                 const char *p, unsigned at)
{
    const char *q;

    if (j->end - p <= WINDOW)
        return ep_json_next_general(j, key, v);
    q = plain_end(j->start, p + WINDOW, j->end);
    if (q == j->end || *q != '"')
        return ep_json_next_general(j, key, v);
    set_string(v, p + at + 1, q);
    j->p = q + 1;
    j->separator = ',';
    return 1;
}

/*
 * Take the member of which p[0] is the separator or the blank after it; left
 * bytes of the window may be looked at. Returns as ep_json_next().
 */
EP_INLINE int take_member(struct ep_json *j, struct ep_json_value *key,
                          struct ep_json_value *v, const char *p, unsigned left,
                          struct masks m, number_fn *number)
{
    uint32_t quote = m.quote & (m.quote - 1);
    const char *q;
    unsigned n, at;

    if (EP_UNLIKELY((m.quote & 3) != 2 || quote == 0))
        return ep_json_next_general(j, key, v);
    n = (unsigned)__builtin_ctz(quote);
    at = n + 2;
    if (EP_UNLIKELY(n + 4 > left || p[n + 1] != ':' ||
                    m.odd & (quote ^ (quote - 1))))
        return ep_json_next_general(j, key, v);
    set_string(key, p + 2, p + n);
    if (EP_UNLIKELY(p[at] == ' ')) {
        at++;
        BRANCH(at);
    }
    if (p[at] != '"')
        return number(j, key, v, p + at, m.other >> at);
    quote &= quote - 1; /* the opening quote */
    quote &= quote - 1;
    if (EP_UNLIKELY(quote == 0 && m.odd == 0))
        return long_string(j, key, v, p, at);
    /* If quote is 0, then odd is not, and this is true. */
    if (EP_UNLIKELY(m.odd & (quote ^ (quote - 1))))
        return ep_json_next_general(j, key, v);
    q = p + __builtin_ctz(quote);
    if (EP_UNLIKELY(q >= j->end))
        return ep_json_next_general(j, key, v);
    set_string(v, p + at + 1, q);
    j->p = q + 1;
    j->separator = ',';
    return 1;
}

/*
 * The separator of the member at j->p, or the blank after it; NULL if this is
 * no place for the fast path.
 */
EP_INLINE const char *member_begin(const struct ep_json *j,
                                   const struct ep_json_value *key)
{
    const char *p = j->p;

    if (EP_UNLIKELY(j->end - p < 2 || (unsigned char)*p != j->separator ||
                    !key))
        return NULL;
    if (EP_UNLIKELY(p[1] == ' ')) {
        p++;
        BRANCH(p);
    }
    return p;
}

EP_INLINE uint32_t join(__m128i low, __m128i high)
{
    return (uint32_t)_mm_movemask_epi8(low) | (uint32_t)_mm_movemask_epi8(high)
                                                  << 16;
}

EP_INLINE __m128i quote16(__m128i w)
{
    return _mm_cmpeq_epi8(w, _mm_set1_epi8('"'));
}

/* The sign of w - 0x20, saturated, is set below 0x20 and above 0x7f. */
EP_INLINE __m128i odd16(__m128i w)
{
    return _mm_or_si128(_mm_subs_epi8(w, _mm_set1_epi8(0x20)),
                        _mm_cmpeq_epi8(w, _mm_set1_epi8('\\')));
}

/* w - '0' is above 9 if w is not a digit; then adding 118 sets the sign. */
EP_INLINE __m128i other16(__m128i w)
{
    return _mm_adds_epu8(_mm_sub_epi8(w, _mm_set1_epi8('0')),
                         _mm_set1_epi8(118));
}

/*
 * A window that would cross the end of the text: it is loaded where it ends
 * with the text, and the masks are shifted.
 */
static __attribute__((noinline)) int
edge(struct ep_json *j, struct ep_json_value *key, struct ep_json_value *v)
{
    const char *p = member_begin(j, key), *from;
    struct masks m;
    unsigned shift;
    __m128i low, high;

    if (!p || j->end - j->start < WINDOW || j->end - p >= WINDOW)
        return ep_json_next_general(j, key, v);
    from = j->end - WINDOW;
    shift = (unsigned)(p - from);
    low = _mm_loadu_si128((const __m128i *)(const void *)from);
    high = _mm_loadu_si128((const __m128i *)(const void *)(from + 16));
    m.quote = join(quote16(low), quote16(high)) >> shift;
    m.odd = join(odd16(low), odd16(high)) >> shift;
    m.other = join(other16(low), other16(high)) >> shift;
    return take_member(j, key, v, p, WINDOW - shift, m, number_sse2);
}

static int next_sse2(struct ep_json *j, struct ep_json_value *key,
                     struct ep_json_value *v)
{
    const char *p = member_begin(j, key);
    struct masks m;
    __m128i low, high;

    if (EP_UNLIKELY(!p))
        return ep_json_next_general(j, key, v);
    if (EP_UNLIKELY(j->readable - p < WINDOW))
        return edge(j, key, v);
    low = _mm_loadu_si128((const __m128i *)(const void *)p);
    high = _mm_loadu_si128((const __m128i *)(const void *)(p + 16));
    m.quote = join(quote16(low), quote16(high));
    m.odd = join(odd16(low), odd16(high));
    m.other = join(other16(low), other16(high));
    return take_member(j, key, v, p, WINDOW, m, number_sse2);
}

#define BYTES8(b) b, b, b, b, b, b, b, b
#define BYTES32(b)                                                             \
    {                                                                          \
        BYTES8(b), BYTES8(b), BYTES8(b), BYTES8(b)                             \
    }

static const struct constants {
    char quote[32], slash[32], blank[32], zero[32], above[32];
} constants = {BYTES32('"'), BYTES32('\\'), BYTES32(' '), BYTES32('0'),
               BYTES32(118)};

__attribute__((target("avx2"))) EP_INLINE __m256i load32(const char *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

/* As above with one load, and scalar instructions that take a cycle less. */
__attribute__((target("avx2,bmi,bmi2"))) static int
next_avx2(struct ep_json *j, struct ep_json_value *key, struct ep_json_value *v)
{
    const char *p = member_begin(j, key);
    struct masks m;
    const struct constants *k = &constants;
    __m256i w, odd, other;

    /* Hides what k points to: loads are cheaper than making constants. */
    __asm__("" : "+r"(k));
    if (EP_UNLIKELY(!p))
        return ep_json_next_general(j, key, v);
    if (EP_UNLIKELY(j->readable - p < WINDOW))
        return edge(j, key, v);
    w = load32(p);
    odd = _mm256_or_si256(_mm256_subs_epi8(w, load32(k->blank)),
                          _mm256_cmpeq_epi8(w, load32(k->slash)));
    other =
        _mm256_adds_epu8(_mm256_sub_epi8(w, load32(k->zero)), load32(k->above));
    m.quote =
        (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(w, load32(k->quote)));
    m.odd = (uint32_t)_mm256_movemask_epi8(odd);
    m.other = (uint32_t)_mm256_movemask_epi8(other);
    return take_member(j, key, v, p, WINDOW, m, number_bmi2);
}

bool ep_json_have_wide(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
}

int ep_json_next(struct ep_json *j, struct ep_json_value *key,
                 struct ep_json_value *v)
{
    return j->wide ? next_avx2(j, key, v) : next_sse2(j, key, v);
}

#endif
