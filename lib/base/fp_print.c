/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fp_print.c - double to the shortest decimal text: Schubfach [3 in fp.h].
 *
 * Let x = c 2^q, and let k be such that 10^k is at most the width of the
 * interval of reals that round to x, which is less than 10^(k+1). Then the
 * interval holds at most one multiple of 10^(k+1), which if it is there is
 * the shortest, and at least one multiple of 10^k, of which the closest is
 * taken. Four times c 10^-k 2^q, and the same for both ends of the interval,
 * are computed with their fraction replaced by a sticky bit; 128 bits of
 * 10^-k are enough for that (tests/gen/fp_pow10.py --prove).
 */
#include "config.h"

#include "base/fp.h"

#include "base/fp_pow10.h"

#include <string.h>

/* s 10^exp10 */
struct decimal {
    uint64_t s;
    int exp10;
};

const uint64_t ep_fp_pow10_u64[20] = {
    UINT64_C(1),
    UINT64_C(10),
    UINT64_C(100),
    UINT64_C(1000),
    UINT64_C(10000),
    UINT64_C(100000),
    UINT64_C(1000000),
    UINT64_C(10000000),
    UINT64_C(100000000),
    UINT64_C(1000000000),
    UINT64_C(10000000000),
    UINT64_C(100000000000),
    UINT64_C(1000000000000),
    UINT64_C(10000000000000),
    UINT64_C(100000000000000),
    UINT64_C(1000000000000000),
    UINT64_C(10000000000000000),
    UINT64_C(100000000000000000),
    UINT64_C(1000000000000000000),
    UINT64_C(10000000000000000000),
};

/* floor(g c / 2^128), its last bit set if there is a fraction. */
static uint64_t round_to_odd(uint64_t hi, uint64_t lo, uint64_t c)
{
    unsigned __int128 x = (unsigned __int128)c * lo;
    unsigned __int128 y = (unsigned __int128)c * hi + (uint64_t)(x >> 64);

    return (uint64_t)(y >> 64) | ((uint64_t)y != 0);
}

/* floor(log10(2^q)), or of 3/4 2^q; biased to shift no negative number. */
static int floor_log10(int q, bool three_quarters)
{
    uint32_t t = (uint32_t)(q * 1262611 - (three_quarters ? 524031 : 0));

    return (int)((t + (UINT32_C(400) << 22)) >> 22) - 400;
}

/* x is positive and finite. */
static struct decimal shortest(uint64_t bits)
{
    uint64_t c = bits & ((UINT64_C(1) << 52) - 1);
    int q = (int)(bits >> 52), k, h;
    bool closer = c == 0 && q > 1; /* the double below is nearer than usual */
    uint64_t hi, lo, low, mid, high, s, open;
    const uint64_t *t;

    if (q)
        c |= UINT64_C(1) << 52;
    else
        q = 1;
    q -= 1075;
    open = c & 1; /* both ends round to the neighbour then */
    k = floor_log10(q, closer);
    h = q + ep_fp_log2_pow10(-k) + 1;
    t = ep_fp_pow10 + 2 * (ptrdiff_t)(-k - EP_FP_POW10_MIN);
    hi = t[0];
    lo = t[1] + !ep_fp_pow10_exact(-k); /* never carries */
    low = round_to_odd(hi, lo, (4 * c - 2 + closer) << h) + open;
    mid = round_to_odd(hi, lo, (4 * c) << h);
    high = round_to_odd(hi, lo, (4 * c + 2) << h) - open;

    s = mid / 4;
    if (s >= 10) {
        uint64_t tens = s / 10;
        bool down = low <= 40 * tens, up = 40 * tens + 40 <= high;

        if (down != up)
            return (struct decimal){tens + up, k + 1};
    }
    if ((low <= 4 * s) != (4 * s + 4 <= high))
        s += 4 * s + 4 <= high;
    else
        s += mid > 4 * s + 2 || (mid == 4 * s + 2 && (s & 1));
    return (struct decimal){s, k};
}

static int count_digits(uint64_t v)
{
    int n;

    v |= 1;                                       /* 0 has a digit, too */
    n = ((64 - __builtin_clzll(v)) * 1233) >> 12; /* log10(2) */
    return n + (v >= ep_fp_pow10_u64[n]);
}

/* The 8 digits of v < 10^8, the first in the lowest byte. */
static inline __attribute__((always_inline)) uint64_t eight_digits(uint32_t v)
{
    uint64_t x = v / 10000 | (uint64_t)(v % 10000) << 32;
    uint64_t q = ((x * 10486) >> 20) & UINT64_C(0x7f0000007f); /* x / 100 */

    x = q | (x - 100 * q) << 16;
    q = ((x * 103) >> 10) & UINT64_C(0x000f000f000f000f); /* x / 10 */
    return q | (x - 10 * q) << 8;
}

static void put_eight(char *dst, uint64_t digits)
{
    digits |= UINT64_C(0x3030303030303030);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    digits = __builtin_bswap64(digits);
#endif
    memcpy(dst, &digits, 8);
}

/*
 * 17 digits: one, and twice eight. They stay in registers until they are in
 * place: to load them again at another offset just after they were stored
 * would stall.
 */
struct digits {
    char first;
    uint64_t a, b;
    int n; /* without the zeros at the end */
};

/* 10^16 <= s < 10^17 */
static struct digits split(uint64_t s)
{
    uint64_t rest = s % ep_fp_pow10_u64[16];
    struct digits d;

    d.first = (char)('0' + s / ep_fp_pow10_u64[16]);
    d.a = eight_digits((uint32_t)(rest / 100000000));
    d.b = eight_digits((uint32_t)(rest % 100000000));
    if (d.b)
        d.n = 17 - __builtin_clzll(d.b) / 8;
    else
        d.n = d.a ? 9 - __builtin_clzll(d.a) / 8 : 1;
    return d;
}

static void put_plain(char *p, const struct digits *d)
{
    p[0] = d->first;
    put_eight(p + 1, d->a);
    put_eight(p + 9, d->b);
}

/* Eight digits with a point before number at, 0..7; nine bytes. */
static void put_point(char *p, uint64_t digits, int at)
{
    uint64_t left = (UINT64_C(1) << 8 * at) - 1;

    put_eight(p, (digits & left) | (digits & ~left) << 8);
    p[at] = '.';
    p[8] = (char)('0' + (digits >> 56));
}

/* 0 < v < 10^8, without zeros in front; eight bytes are written. */
static char *put_small(char *p, uint32_t v)
{
    uint64_t d = eight_digits(v);
    unsigned zeros = (unsigned)__builtin_ctzll(d) & ~7U;

    put_eight(p, d >> zeros);
    return p + 8 - zeros / 8;
}

/* At most 20 digits, and 8 bytes. */
static char *put_uint(char *p, uint64_t v)
{
    const uint64_t e8 = 100000000;

    if (v < 10) {
        *p = (char)('0' + v);
        return p + 1;
    }
    if (v < e8)
        return put_small(p, (uint32_t)v);
    if (v < e8 * e8) {
        p = put_small(p, (uint32_t)(v / e8));
    } else {
        p = put_small(p, (uint32_t)(v / (e8 * e8)));
        v %= e8 * e8;
        put_eight(p, eight_digits((uint32_t)(v / e8)));
        p += 8;
    }
    put_eight(p, eight_digits((uint32_t)(v % e8)));
    return p + 8;
}

/* d.ddde-x: the first digit has weight 10^e. */
static char *put_scientific(char *p, const struct digits *d, int e)
{
    p[0] = d->first;
    p[1] = '.';
    put_eight(p + 2, d->a);
    put_eight(p + 10, d->b);
    p += d->n > 1 ? d->n + 1 : 1;
    *p++ = 'e';
    if (e < 0)
        *p++ = '-';
    return put_uint(p, (uint64_t)(e < 0 ? -e : e));
}

/* The same without exponent, -5 <= e < 17. */
static char *put_decimal(char *p, const struct digits *d, int e)
{
    if (e < 0) {
        memcpy(p, "0.0000", sizeof "0.0000");
        p += 1 - e;
        put_plain(p, d);
        return p + d->n;
    }
    if (d->n <= e + 1) {
        put_plain(p, d);
        return p + e + 1;
    }
    p[0] = d->first;
    if (e < 8) {
        put_point(p + 1, d->a, e);
        put_eight(p + 10, d->b);
    } else {
        put_eight(p + 1, d->a);
        put_point(p + 9, d->b, e - 8);
    }
    return p + d->n + 1;
}

/*
 * A quick way for what clocks and counters give: x is r / scale for an integer
 * r and scale 10^9 or 10^6. If so, r / scale reads back as x, because a
 * quotient of two exact doubles is rounded as a number's text is. It is the
 * shortest, too: with r < 2^52, 1 / scale is more than the distance of doubles
 * at x, so no other multiple of 1 / scale reads back as x; and a shorter
 * number of this size would be such a multiple.
 *
 * 1e-5 <= x < 2^52, no integer. Returns NULL if x is not such a number.
 */
static char *put_ticks(char *p, double x)
{
    bool fine = x < 4e6;
    double scale = fine ? 1e9 : 1e6, y = x * scale;
    uint64_t r, fraction, d;

    if (y >= 0x1p52)
        return NULL;
    r = (uint64_t)(int64_t)(y + 0.5);
    if ((double)(int64_t)r / scale != x)
        return NULL;
    if (fine) {
        p = put_uint(p, r / 1000000000);
        fraction = r % 1000000000;
    } else {
        p = put_uint(p, r / 1000000);
        fraction = r % 1000000 * 1000;
    }
    p[0] = '.';
    p[1] = (char)('0' + fraction / 100000000);
    d = eight_digits((uint32_t)(fraction % 100000000));
    put_eight(p + 2, d);
    return p + (d ? 10 - __builtin_clzll(d) / 8 : 2);
}

size_t ep_fp_print(double x, char out[EP_FP_MAX])
{
    char *p = out;
    struct decimal v;
    struct digits d;
    uint64_t bits;
    int n, e;

    memcpy(&bits, &x, sizeof bits);
    if (bits >> 63) {
        *p++ = '-';
        bits &= INT64_MAX;
        x = -x;
    }
    if (!(x <= DBL_MAX)) {
        memcpy(out, "null", sizeof "null");
        return 4;
    }
    if (x < 9007199254740992.0 && (double)(int64_t)x == x)
        return (size_t)(put_uint(p, (uint64_t)x) - out);
    if (FLT_EVAL_METHOD == 0 && x >= 1e-5 && x < 0x1p52) {
        char *end = put_ticks(p, x);

        if (end)
            return (size_t)(end - out);
    }
    v = shortest(bits);
    n = count_digits(v.s);
    e = v.exp10 + n - 1;
    d = split(v.s * ep_fp_pow10_u64[17 - n]);
    p = e < -5 || e >= 17 ? put_scientific(p, &d, e) : put_decimal(p, &d, e);
    return (size_t)(p - out);
}

size_t ep_fp_print_int(int64_t v, char out[EP_FP_MAX])
{
    char *p = out;

    if (v < 0)
        *p++ = '-';
    return (size_t)(put_uint(p, v < 0 ? 0 - (uint64_t)v : (uint64_t)v) - out);
}
