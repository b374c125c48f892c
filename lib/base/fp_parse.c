/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fp_parse.c - decimal text to double: see fp.h for the three ways.
 *
 * A double is handled as its bits: for positive values, the next larger
 * double is the next larger integer, and so is infinity after DBL_MAX.
 *
 * NOTE: differs from [2 in fp.h] in that all of the 128-bit entry is always
 * multiplied (a second multiplication costs less than a branch that is
 * sometimes wrong), and in that the table is rounded down for negative powers
 * too, so that one bound serves all. Exact ties with a negative power (a few
 * inputs of at least 17 digits) therefore take the third way.
 */
#include "config.h"

#include "base/fp.h"

#include "base/fp_pow10.h"

#include <string.h>

#define INF_BITS (UINT64_C(0x7ff) << 52)

/* The halfway point between two doubles has at most 767 significant digits;
   what follows can only tell whether a number is equal to it or above. */
#define MAX_DIGITS 800

/* Bits of both sides of compare_half() are below 2,750: each is at most 801
   digits (2,661 bits), or 54 bits times 5^1125 (2,613 bits), shifted to meet
   the other. */
#define MAX_LIMBS 48

const double ep_fp_exact_pow10[23] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* The parts of a number's text: digits [. digits] [exponent]. */
struct parts {
    const char *digits; /* the first, after the sign */
    const char *point;  /* the '.', or end if there is none */
    const char *end;    /* of the digits */
    int64_t exp10;      /* as written, cut to +-EP_FP_EXP_CAP */
    bool neg;
};

static bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

/* An exponent at p: sets *exp10 and returns its end, or p if there is none. */
static const char *read_exponent(const char *p, const char *end, int64_t *exp10)
{
    const char *q = p;
    int64_t e = 0;
    bool neg;

    *exp10 = 0;
    if (q == end || (*q | 0x20) != 'e')
        return p;
    q++;
    neg = q < end && *q == '-';
    if (q < end && (*q == '-' || *q == '+'))
        q++;
    if (q == end || !is_digit(*q))
        return p;
    for (; q < end && is_digit(*q); q++)
        if (e < EP_FP_EXP_CAP)
            e = 10 * e + (*q - '0');
    if (e > EP_FP_EXP_CAP)
        e = EP_FP_EXP_CAP;
    *exp10 = neg ? -e : e;
    return q;
}

/*
 * Find the parts of the number at the start of text. *mant becomes the value
 * of all digits modulo 2^64. Returns bytes taken, 0 if there is no number.
 */
static size_t split(const char *text, size_t len, struct parts *n,
                    uint64_t *mant)
{
    const char *p = text, *end = text + len;
    uint64_t m = 0;

    n->neg = p < end && *p == '-';
    p += n->neg;
    n->digits = p;
    for (; p < end && is_digit(*p); p++)
        m = 10 * m + (uint64_t)(*p - '0');
    n->point = p;
    if (end - p >= 2 && p[0] == '.' && is_digit(p[1]))
        for (p++; p < end && is_digit(*p); p++)
            m = 10 * m + (uint64_t)(*p - '0');
    n->end = p;
    *mant = m;
    if (p == n->digits)
        return 0;
    return (size_t)(read_exponent(p, end, &n->exp10) - text);
}

/* The exponent of ten of the digit before p. */
static int64_t exponent_at(const struct parts *n, const char *p)
{
    return n->exp10 + (p <= n->point ? n->point - p : n->point + 1 - p);
}

static const char *skip_zeros(const struct parts *n)
{
    const char *p = n->digits;

    while (p < n->end && (*p == '0' || *p == '.'))
        p++;
    return p;
}

/* The decimal of the parts; mant as split() gives it. */
static void reduce(const struct parts *n, uint64_t mant,
                   struct ep_fp_decimal *d)
{
    const int64_t limit = 2 * (int64_t)EP_FP_EXP_CAP;
    const char *p = n->end;
    int64_t e;

    if (n->end - n->digits > 19) { /* mant may have overflowed: count */
        int count = 0;

        mant = 0;
        for (p = skip_zeros(n); p < n->end && count < 19; p++) {
            if (*p == '.')
                continue;
            mant = 10 * mant + (uint64_t)(*p - '0');
            count++;
        }
    }
    e = exponent_at(n, p);
    e = e < -limit ? -limit : e > limit ? limit : e;
    d->mant = mant;
    d->exp10 = (int32_t)e;
    d->neg = n->neg;
    d->cut = p < n->end;
}

size_t ep_fp_scan(const char *text, size_t len, struct ep_fp_decimal *d)
{
    struct parts n;
    uint64_t mant;
    size_t used = split(text, len, &n, &mant);

    if (used)
        reduce(&n, mant, d);
    return used;
}

/* ---- the second way ---- */

struct rounded {
    uint64_t below;   /* bits of a double that is not above the value */
    uint64_t nearest; /* bits of the nearest double, if sure */
    bool sure;
};

/*
 * Round w 10^q. With w scaled to 64 bits, P = w T(q) has 191 or 192 bits, and
 * the value is in [P, P + w), above P if the entry is not exact.
 */
static struct rounded scale(uint64_t w, int q)
{
    const uint64_t *t = ep_fp_pow10 + 2 * (ptrdiff_t)(q - EP_FP_POW10_MIN);
    int lead = __builtin_clzll(w), top, biased, shift;
    bool exact = ep_fp_pow10_exact(q);
    unsigned __int128 hi, lo;
    uint64_t a, b, c, m, mask, up; /* P = a 2^128 + b 2^64 + c */
    struct rounded r;

    w <<= lead;
    lo = (unsigned __int128)w * t[1];
    hi = (unsigned __int128)w * t[0] + (uint64_t)(lo >> 64);
    a = (uint64_t)(hi >> 64);
    b = (uint64_t)hi;
    c = (uint64_t)lo;
    top = (int)(a >> 63);
    biased = 63 + top - lead + ep_fp_log2_pow10(q) + 1023;
    shift = 9 + top; /* leaves 53 bits and the rounding bit */
    if (biased < 1) {
        shift += 1 - biased;
        biased = 1;
    }
    if (shift > 64)
        return (struct rounded){0, 0, true};
    m = shift < 64 ? a >> shift : 0;
    mask = shift < 64 ? (UINT64_C(1) << shift) - 1 : UINT64_MAX;
    up = (m & 1) && (!exact || (a & mask) || b || c || (m & 2));
    r.sure =
        (m & 1) || exact || (a & mask) != mask || b != UINT64_MAX || c + w >= c;
    r.below = ((uint64_t)(biased - 1) << 52) + (m >> 1);
    r.nearest = r.below + up;
    if (r.below >= INF_BITS)
        r = (struct rounded){INF_BITS, INF_BITS, true};
    return r;
}

/* ---- the third way ---- */

struct big {
    uint64_t w[MAX_LIMBS]; /* least significant first */
    int n;                 /* limbs in use */
};

/* b <- b mul + add */
static void big_mul(struct big *b, uint64_t mul, uint64_t add)
{
    uint64_t carry = add;

    for (int i = 0; i < b->n; i++) {
        unsigned __int128 t = (unsigned __int128)b->w[i] * mul + carry;

        b->w[i] = (uint64_t)t;
        carry = (uint64_t)(t >> 64);
    }
    if (carry)
        b->w[b->n++] = carry;
}

/* b <- b 5^n */
static void big_mul_pow5(struct big *b, int n)
{
    const uint64_t pow5_27 = UINT64_C(7450580596923828125);
    uint64_t rest = 1;

    for (; n >= 27; n -= 27)
        big_mul(b, pow5_27, 0);
    while (n-- > 0)
        rest *= 5;
    big_mul(b, rest, 0);
}

/* b <- b 2^n */
static void big_shift(struct big *b, int n)
{
    int limbs = n / 64, bits = n % 64;

    big_mul(b, UINT64_C(1) << bits, 0);
    if (!b->n || !limbs)
        return;
    memmove(b->w + limbs, b->w, (size_t)b->n * sizeof *b->w);
    memset(b->w, 0, (size_t)limbs * sizeof *b->w);
    b->n += limbs;
}

static int big_compare(const struct big *a, const struct big *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (int i = a->n; i-- > 0;)
        if (a->w[i] != b->w[i])
            return a->w[i] < b->w[i] ? -1 : 1;
    return 0;
}

/* Digits of a text, at most MAX_DIGITS and a 1 for all that follow. */
static int big_digits(struct big *b, const struct parts *n)
{
    const char *p = skip_zeros(n);
    uint64_t group = 0, weight = 1;
    int count = 0;
    int64_t e;

    b->n = 0;
    for (; p < n->end && count < MAX_DIGITS; p++) {
        if (*p == '.')
            continue;
        group = 10 * group + (uint64_t)(*p - '0');
        weight *= 10;
        if (++count % 19 == 0) {
            big_mul(b, weight, group);
            group = 0;
            weight = 1;
        }
    }
    big_mul(b, weight, group);
    e = exponent_at(n, p);
    while (p < n->end && (*p == '0' || *p == '.'))
        p++;
    if (p < n->end) {
        big_mul(b, 10, 1);
        e--;
    }
    return (int)e;
}

/* Compare digits 10^q with the point halfway between bits and bits + 1. */
static int compare_half(const struct big *digits, int q, uint64_t bits)
{
    uint64_t m = bits & ((UINT64_C(1) << 52) - 1);
    int e = (int)(bits >> 52), shift;
    struct big value = *digits, half;

    if (e)
        m |= UINT64_C(1) << 52;
    else
        e = 1;
    half.n = 1;
    half.w[0] = 2 * m + 1; /* times 2^(e - 1076) */
    if (q >= 0)
        big_mul_pow5(&value, q);
    else
        big_mul_pow5(&half, -q);
    shift = q - (e - 1076);
    if (shift >= 0)
        big_shift(&value, shift);
    else
        big_shift(&half, -shift);
    return big_compare(&value, &half);
}

static double from_bits(uint64_t bits, bool neg)
{
    double x;

    bits |= (uint64_t)neg << 63;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/*
 * Round by comparison. From 19 digits, scale() gives a double not above the
 * value and at most two steps below the nearest.
 */
static double round_big(const struct ep_fp_decimal *d, const char *text,
                        size_t len)
{
    struct ep_fp_decimal lead = *d;
    struct big digits;
    struct parts n;
    uint64_t bits;
    int q = d->exp10;

    digits.n = 1;
    digits.w[0] = d->mant;
    if (d->cut && split(text, len, &n, &bits)) {
        reduce(&n, bits, &lead);
        if (lead.exp10 >= EP_FP_POW10_MIN && lead.exp10 <= 308)
            q = big_digits(&digits, &n);
    }
    if (!lead.mant || lead.exp10 < EP_FP_POW10_MIN)
        return from_bits(0, d->neg);
    if (lead.exp10 > 308)
        return from_bits(INF_BITS, d->neg);
    bits = scale(lead.mant, lead.exp10).below;
    while (bits < INF_BITS) {
        int c = compare_half(&digits, q, bits);

        if (c < 0 || (c == 0 && !(bits & 1)))
            break;
        bits++;
    }
    return from_bits(bits, d->neg);
}

double ep_fp_from_decimal_slow(const struct ep_fp_decimal *d, const char *text,
                               size_t len)
{
    struct rounded r;

    if (!d->mant)
        return d->cut ? round_big(d, text, len) : from_bits(0, d->neg);
    if (d->exp10 < EP_FP_POW10_MIN) /* 2^64 10^-343 is below 2^-1075 */
        return from_bits(0, d->neg);
    if (d->exp10 > 308)
        return from_bits(INF_BITS, d->neg);
    r = scale(d->mant, d->exp10);
    if (d->cut && r.sure && d->mant != UINT64_MAX) {
        struct rounded next = scale(d->mant + 1, d->exp10);

        r.sure = next.sure && next.nearest == r.nearest;
    }
    if (!r.sure)
        return round_big(d, text, len);
    return from_bits(r.nearest, d->neg);
}

int ep_fp_parse(const char *text, size_t len, double *out)
{
    struct ep_fp_decimal d = {0};
    const char *p = text, *end = text + len;
    double x;

    if (p < end && *p == '-')
        p++;
    if (p >= end || !is_digit(*p))
        return EP_EFORMAT;
    if (*p == '0' && skip_digits(p, end) != p + 1)
        return EP_EFORMAT;
    if (ep_fp_scan(text, len, &d) != len)
        return EP_EFORMAT;
    x = ep_fp_from_decimal(&d, text, len);
    if (x > DBL_MAX || x < -DBL_MAX)
        return EP_ERANGE;
    *out = x;
    return 0;
}
