/* SPDX-License-Identifier: Apache-2.0 */
/* pattern_literals.c - many literals in one pass, see pattern_literal.h. */
#include "config.h"

#include "base/mem.h"
#include "record/pattern_literal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define HAVE_TEDDY 1
#include <immintrin.h>
#else
#define HAVE_TEDDY 0
#endif

/* Where its bytes in a row are that are rarest together. */
static size_t rarest(const struct ep_literal *l)
{
    size_t best = 0;
    int least = INT_MAX;

    for (size_t at = 0; at + EP_LITERALS_BYTES <= l->len; at++) {
        int sum = 0;

        for (size_t i = 0; i < EP_LITERALS_BYTES; i++)
            sum += ep_literal_commonness((unsigned char)l->text[at + i]);
        if (sum < least) {
            least = sum;
            best = at;
        }
    }
    return best;
}

static bool is_known(const struct ep_literals *set, const struct ep_literal *l)
{
    for (size_t i = 0; i < set->n; i++)
        if (set->v[i].literal.len == l->len &&
            memcmp(set->v[i].literal.text, l->text, l->len) == 0)
            return true;
    return false;
}

/* Mark the bytes by which a literal is looked for as of the buckets in bits. */
static void mark(struct ep_literals *set, const struct ep_literals_entry *e,
                 unsigned char bits)
{
    for (size_t i = 0; i < EP_LITERALS_BYTES; i++) {
        unsigned x =
            (unsigned char)e->literal.text[(e->at + i) % EP_LITERAL_MAX];

        if (e->at + i < e->literal.len) {
            set->low[i][x & 15] |= bits;
            set->high[i][x >> 4] |= bits;
            continue;
        }
        for (int j = 0; j < 16; j++) { /* any byte */
            set->low[i][j] |= bits;
            set->high[i][j] |= bits;
        }
    }
}

/* How many texts of three bytes a bucket takes for one of its literals. */
static double width(const struct ep_literals *set, size_t bucket)
{
    double all = 1;

    for (size_t i = 0; i < EP_LITERALS_BYTES; i++) {
        int low = 0, high = 0;

        for (int j = 0; j < 16; j++) {
            low += set->low[i][j] >> bucket & 1;
            high += set->high[i][j] >> bucket & 1;
        }
        all *= (double)low * high;
    }
    return all;
}

/* The bucket that becomes wider the least by a literal: like goes to like. */
static size_t choose(const struct ep_literals *set,
                     const struct ep_literals_entry *e)
{
    struct ep_literals with = *set;
    double least = INFINITY;
    size_t best = 0;

    mark(&with, e, UCHAR_MAX);
    for (size_t b = 0; b < EP_LITERALS_BUCKETS; b++) {
        double growth = width(&with, b) - width(set, b);

        if (growth < least) {
            least = growth;
            best = b;
        }
    }
    return best;
}

void ep_literals_add(struct ep_literals *set, const struct ep_literal *l)
{
    struct ep_literals_entry *e;
    size_t bucket;

    if (l->len == 0) {
        set->always = true;
        return;
    }
    if (is_known(set, l))
        return;
    set->v = ep_grow(set->v, &set->cap, set->n + 1, sizeof *set->v);
    e = &set->v[set->n];
    *e = (struct ep_literals_entry){.literal = *l, .at = rarest(l)};
    bucket = choose(set, e);
    e->next = set->first[bucket];
    set->first[bucket] = ++set->n;
    set->tail = set->tail || l->len < EP_LITERALS_BYTES;
    mark(set, e, (unsigned char)(1U << bucket));
}

void ep_literals_free(struct ep_literals *set)
{
    free(set->v);
    *set = (struct ep_literals){.n = 0};
}

static bool any_by_one(const struct ep_literals *set, const char *s, size_t n)
{
    for (size_t i = 0; i < set->n; i++)
        if (ep_literal_in(&set->v[i].literal, s, n))
            return true;
    return false;
}

#if HAVE_TEDDY

/* Does a literal of one of the buckets have its bytes at s[at]? */
static bool is_at(const struct ep_literals *set, unsigned buckets,
                  const char *s, size_t n, size_t at)
{
    for (; buckets; buckets &= buckets - 1) {
        size_t i = set->first[__builtin_ctz(buckets)];

        for (; i; i = set->v[i - 1].next) {
            const struct ep_literals_entry *e = &set->v[i - 1];

            /* most are there by their halves of bytes only */
            if (s[at] == e->literal.text[e->at] && at >= e->at &&
                at - e->at + e->literal.len <= n &&
                memcmp(s + at - e->at, e->literal.text, e->literal.len) == 0)
                return true;
        }
    }
    return false;
}

__attribute__((target("avx2"))) static inline __m256i
table(const unsigned char t[16])
{
    return _mm256_broadcastsi128_si256(
        _mm_loadu_si128((const __m128i *)(const void *)t));
}

/* Per place the buckets of which byte i may be here. */
__attribute__((target("avx2"))) static inline __m256i
buckets_of(const char *s, __m256i low, __m256i high)
{
    const __m256i nibble = _mm256_set1_epi8(15);
    __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)s);
    __m256i h = _mm256_and_si256(_mm256_srli_epi16(x, 4), nibble);

    return _mm256_and_si256(
        _mm256_shuffle_epi8(low, _mm256_and_si256(x, nibble)),
        _mm256_shuffle_epi8(high, h));
}

#define STEP 32
#define REACH (STEP + EP_LITERALS_BYTES - 1) /* bytes that a step reads */

/* s has REACH bytes at least that may be read; n of all are the text. */
__attribute__((target("avx2"))) static bool
any_at_once(const struct ep_literals *set, const char *s, size_t readable,
            size_t n)
{
    __m256i low[EP_LITERALS_BYTES], high[EP_LITERALS_BYTES];

    for (int i = 0; i < EP_LITERALS_BYTES; i++) {
        low[i] = table(set->low[i]);
        high[i] = table(set->high[i]);
    }
    for (size_t at = 0;; at += STEP) {
        __m256i found;
        unsigned places;

        if (at > readable - REACH)
            at = readable - REACH; /* the last, over the one before */
        found = buckets_of(s + at, low[0], high[0]);
        for (int i = 1; i < EP_LITERALS_BYTES; i++)
            found = _mm256_and_si256(found,
                                     buckets_of(s + at + i, low[i], high[i]));
        places = ~(unsigned)_mm256_movemask_epi8(
            _mm256_cmpeq_epi8(found, _mm256_setzero_si256()));
        if (places) {
            unsigned char buckets[STEP];

            _mm256_storeu_si256((__m256i *)(void *)buckets, found);
            for (; places; places &= places - 1) {
                unsigned i = (unsigned)__builtin_ctz(places);

                if (is_at(set, buckets[i], s, n, at + i))
                    return true;
            }
        }
        if (at == readable - REACH)
            return false;
    }
}

bool ep_literals_any(const struct ep_literals *set, const char *s, size_t n)
{
    char tail[2 * STEP] = {0};

    if (set->always)
        return true;
    if (!__builtin_cpu_supports("avx2"))
        return any_by_one(set, s, n);
    if (n < REACH) {
        memcpy(tail, s, n);
        return any_at_once(set, tail, sizeof tail, n);
    }
    if (any_at_once(set, s, n, n))
        return true;
    /* In the last two bytes of the text a literal of fewer than three only can
       begin: what is behind them is zeros. */
    memcpy(tail, s + n - 2, 2);
    return set->tail && any_at_once(set, tail, REACH, 2);
}

#else

bool ep_literals_any(const struct ep_literals *set, const char *s, size_t n)
{
    return set->always || any_by_one(set, s, n);
}

#endif
