/* SPDX-License-Identifier: Apache-2.0 */
/*
 * word.h - text eight and sixteen bytes at a time: loads, searches, digits; for
 * scanners and printers.
 *
 * A load that would cross the end of a text is moved back to stop there, and
 * the bytes before the wanted ones are shifted out (the functions with a start
 * and an end); the others need so many bytes that may be read.
 */
#ifndef EP_BASE_WORD_H
#define EP_BASE_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(EP_JSON_PORTABLE)
#define EP_JSON_SSE2 1
#include <emmintrin.h>
#else
#define EP_JSON_SSE2 0
#endif

#define EP_LIKELY(x) __builtin_expect(!!(x), 1)
#define EP_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define EP_INLINE static inline __attribute__((always_inline))
#define EP_COLD __attribute__((cold, noinline))

#define EP_BYTES(b) (UINT64_C(0x0101010101010101) * (b))

/* 8 bytes, the first one lowest. */
EP_INLINE uint64_t load8(const char *p)
{
    uint64_t w;

    memcpy(&w, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return w;
}

EP_INLINE void store8(char *p, uint64_t w)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    memcpy(p, &w, 8);
}

/* n < 8 bytes, the first one lowest, then zeros. Loads may overlap. */
EP_INLINE uint64_t load_short(const char *p, size_t n)
{
    uint64_t w = 0;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (n >= 4) {
        uint32_t a, b;

        memcpy(&a, p, 4);
        memcpy(&b, p + n - 4, 4);
        return a | (uint64_t)b << 8 * (n - 4);
    }
#endif
    while (n-- > 0)
        w = w << 8 | (unsigned char)p[n];
    return w;
}

/* 8 bytes of the text from p on, with zeros after its end. p <= end. */
EP_INLINE uint64_t load8_bounded(const char *start, const char *p,
                                 const char *end)
{
    size_t left = (size_t)(end - p);

    if (EP_LIKELY(left >= 8))
        return load8(p);
    if (EP_LIKELY(end - start >= 8))
        return load8(end - 8) >> (56 - 8 * left) >> 8;
    return load_short(p, left);
}

/*
 * Zero if all 8 bytes are plain, else its lowest set bit is bit 7 of the first
 * byte that is not: '"', '\\', below 0x20 or above 0x7f. (Higher bits may be
 * false: a borrow runs upwards, but only from a byte that is not plain.)
 */
EP_INLINE uint64_t not_plain8(uint64_t w)
{
    uint64_t quote = w ^ EP_BYTES('"'), slash = w ^ EP_BYTES('\\');

    quote = (quote - EP_BYTES(1)) & ~quote;
    slash = (slash - EP_BYTES(1)) & ~slash;
    return (quote | slash | ((w - EP_BYTES(0x20)) & ~w) | w) & EP_BYTES(0x80);
}

EP_INLINE bool is_plain(char c)
{
    unsigned char u = (unsigned char)c;

    return u >= 0x20 && u < 0x80 && u != '"' && u != '\\';
}

#if EP_JSON_SSE2
/* Bit i: byte i of the 16 is not plain. A signed comparison finds both the
 * control bytes and those above 0x7f. */
EP_INLINE unsigned not_plain16(const char *p)
{
    __m128i w = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i bad = _mm_cmplt_epi8(w, _mm_set1_epi8(0x20));

    bad = _mm_or_si128(bad, _mm_cmpeq_epi8(w, _mm_set1_epi8('"')));
    bad = _mm_or_si128(bad, _mm_cmpeq_epi8(w, _mm_set1_epi8('\\')));
    return (unsigned)_mm_movemask_epi8(bad);
}
#endif

/* The first of p[0..end) that is one of three characters, or end. */
EP_INLINE const char *find3(const char *p, const char *end, char a, char b,
                            char c)
{
#if EP_JSON_SSE2
    const __m128i x = _mm_set1_epi8(a), y = _mm_set1_epi8(b),
                  z = _mm_set1_epi8(c);

    for (; end - p >= 16; p += 16) {
        __m128i w = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i m = _mm_or_si128(_mm_cmpeq_epi8(w, x), _mm_cmpeq_epi8(w, y));
        unsigned found =
            (unsigned)_mm_movemask_epi8(_mm_or_si128(m, _mm_cmpeq_epi8(w, z)));

        if (found)
            return p + __builtin_ctz(found);
    }
#endif
    while (p < end && *p != a && *p != b && *p != c)
        p++;
    return p;
}

/*
 * Where text[m] begins in p[0..n), or NULL; m >= 1. Candidates have its first
 * and its last byte (Mula, "SIMD-friendly algorithms for substring searching",
 * 2016); in prose that leaves few.
 */
EP_INLINE const char *find_text(const char *p, size_t n, const char *text,
                                size_t m)
{
    const char *end;

    if (n < m)
        return NULL; /* p may be NULL */
    end = p + n;
#if EP_JSON_SSE2
    if (n >= m + 15) {
        const __m128i first = _mm_set1_epi8(text[0]);
        const __m128i last = _mm_set1_epi8(text[m - 1]);
        const char *stop = end - (m + 15); /* the last block begins there */

        for (;;) {
            __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
            __m128i b =
                _mm_loadu_si128((const __m128i *)(const void *)(p + m - 1));
            unsigned both = (unsigned)_mm_movemask_epi8(_mm_and_si128(
                _mm_cmpeq_epi8(a, first), _mm_cmpeq_epi8(b, last)));

            for (; both; both &= both - 1)
                if (memcmp(p + __builtin_ctz(both), text, m) == 0)
                    return p + __builtin_ctz(both);
            if (p == stop)
                return NULL;
            p = stop - p > 16 ? p + 16 : stop;
        }
    }
#endif
    for (; (size_t)(end - p) >= m; p++)
        if (*p == *text && memcmp(p, text, m) == 0)
            return p;
    return NULL;
}

/* Value of 8 digits (as numbers 0 to 9), the first one lowest. */
EP_INLINE uint64_t eight_digits(uint64_t w)
{
    const uint64_t mask = UINT64_C(0x000000ff000000ff);

    w = w * 10 + (w >> 8);
    return ((w & mask) * (100 + (UINT64_C(1000000) << 32)) +
            ((w >> 16) & mask) * (1 + (UINT64_C(10000) << 32))) >>
           32;
}

/* The first byte from p on that is not plain, or the end of the text. */
EP_INLINE const char *plain_end(const char *start, const char *p,
                                const char *end)
{
#if EP_JSON_SSE2
    while (EP_LIKELY(end - p >= 16)) {
        unsigned bad = not_plain16(p);

        if (EP_LIKELY(bad != 0))
            return p + __builtin_ctz(bad);
        p += 16;
    }
    if (EP_LIKELY(end - start >= 16 && p <= end)) {
        unsigned left = (unsigned)(end - p);
        unsigned bad = not_plain16(end - 16) >> (16 - left) | 1U << left;

        return p + __builtin_ctz(bad);
    }
#else
    while (EP_LIKELY(end - p >= 8)) {
        uint64_t bad = not_plain8(load8(p));

        if (EP_LIKELY(bad != 0))
            return p + (__builtin_ctzll(bad) >> 3);
        p += 8;
    }
    (void)start;
#endif
    while (p < end && is_plain(*p))
        p++;
    return p;
}

/* The first byte from p on that is not plain; it may be behind end, where 16
   bytes may be loaded. */
EP_INLINE const char *plain_end_padded(const char *p, const char *end)
{
    while (p < end) {
#if EP_JSON_SSE2
        unsigned odd = not_plain16(p);

        if (EP_LIKELY(odd != 0))
            return p + __builtin_ctz(odd);
        p += 16;
#else
        uint64_t odd = not_plain8(load8(p));

        if (EP_LIKELY(odd != 0))
            return p + (__builtin_ctzll(odd) >> 3);
        p += 8;
#endif
    }
    return p;
}

/* Bit 7 of each byte that is no digit, of a word ^ EP_BYTES('0'). */
EP_INLINE uint64_t no_digit(uint64_t w)
{
    return ((w + EP_BYTES(0x76)) | w) & EP_BYTES(0x80);
}

/*
 * At most 16 digits at p, their number in *n; if that is 16 there may be more,
 * and if it is 0 the value means nothing.
 * Reads 16 bytes from p on, and as many before it. How many there are changes
 * from line to line, so nothing branches on it.
 */
EP_INLINE uint64_t digits16(const char *p, unsigned *n)
{
    uint64_t low = no_digit(load8(p) ^ EP_BYTES('0'));
    uint64_t high = no_digit(load8(p + 8) ^ EP_BYTES('0'));
    unsigned a = low ? (unsigned)__builtin_ctzll(low) >> 3 : 8;
    unsigned b = high ? (unsigned)__builtin_ctzll(high) >> 3 : 8;
    const char *end = p + (a += low ? 0 : b);

    *n = a;
    low = load8(end - 8) ^ EP_BYTES('0');
    high = load8(end - 16) ^ EP_BYTES('0');
    low &= a < 8 ? ~((UINT64_C(1) << (64 - 8 * a) % 64) - 1) : ~UINT64_C(0);
    high &= a > 8 ? ~((UINT64_C(1) << (128 - 8 * a) % 64) - 1) : 0;
    return eight_digits(high) * 100000000 + eight_digits(low);
}

#endif
