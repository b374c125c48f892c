/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fp.h - doubles from and to decimal text, exactly.
 *
 * Reading gives the double nearest to the decimal value, ties to the even
 * one, for input of any length. Writing gives the fewest digits that read
 * back as the same double and, of those, the closest to it. Neither looks at
 * the locale nor allocates. The rounding mode must be to nearest, as it is
 * unless a program changes it.
 *
 * Reading takes the first of three ways that decides:
 *   1. One exact double times or divided by an exact power of ten [1].
 *   2. Eisel-Lemire: the leading 19 digits times a power of ten known to 128
 *      bits [2]. The error of the product is bounded, and the result taken
 *      only if every value within the bound rounds to it.
 *   3. The digits as a big integer, compared with the point halfway between
 *      two neighbouring doubles.
 * Writing is Schubfach [3], with a short cut for multiples of 10^-6 and 10^-9.
 *
 * [1] W. D. Clinger, "How to Read Floating Point Numbers Accurately", 1990.
 * [2] D. Lemire, "Number Parsing at a Gigabyte per Second", 2021.
 * [3] R. Giulietti, "The Schubfach way to render doubles", 2020.
 */
#ifndef EP_BASE_FP_H
#define EP_BASE_FP_H

#include "base/err.h"

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EP_FP_MAX 32 /* bytes that ep_fp_print needs at most */

/*
 * Where a scanner stops counting an exponent that is written out: beyond it,
 * the value is 0 or infinite whatever its digits (of fewer than 10^9 bytes).
 */
#define EP_FP_EXP_CAP 1000000000

/*
 * A decimal number as a scanner saw it: (-1)^neg mant 10^exp10. If cut, the
 * value lies in [mant, mant + 1] 10^exp10.
 */
struct ep_fp_decimal {
    uint64_t mant; /* first 19 significant digits (leading 0s do not count) */
    int32_t exp10;
    bool neg;
    bool cut; /* more than 19 significant digits: mant is truncated */
};

/* 10^0 ... 10^22, all exact. Private to ep_fp_from_decimal. */
extern const double ep_fp_exact_pow10[23];

/* 10^0 .. 10^19: all that fit. For scanners. */
extern const uint64_t ep_fp_pow10_u64[20];

/* What ep_fp_from_decimal does when the first way does not serve. */
double ep_fp_from_decimal_slow(const struct ep_fp_decimal *d, const char *text,
                               size_t len);

/*
 * The double nearest to *d, ties to even; +-inf where that overflows (from
 * halfway between DBL_MAX and 2^1024 on), +-0 where it underflows. Keeps the
 * sign of zero.
 *
 * text    [len] the number as ep_fp_scan reads it; only read if d->cut, and
 *         then it, not *d, has the last word
 * Cost (tests/bench/bench_fp.c on a Xeon of 2.1 to 3 GHz): 3 ns for mant up to
 * 2^53 and an exponent in -22..22, 10 to 20 ns in most other cases; where 19
 * digits leave two doubles to choose from, 0.4 us for 50 digits to 3 us for 800
 * or more, and 2 ns for each byte of text. No allocation.
 */
static inline double ep_fp_from_decimal(const struct ep_fp_decimal *d,
                                        const char *text, size_t len)
{
    if (FLT_EVAL_METHOD == 0 && !d->cut && d->mant <= UINT64_C(1) << 53 &&
        d->exp10 >= -22 && d->exp10 <= 22) {
        double x = (double)(int64_t)d->mant;

        x = d->exp10 < 0 ? x / ep_fp_exact_pow10[-d->exp10]
                         : x * ep_fp_exact_pow10[d->exp10];
        return d->neg ? -x : x;
    }
    return ep_fp_from_decimal_slow(d, text, len);
}

/*
 * Read the longest number that text begins with:
 *
 *     -? ( digit+ ( . digit+ )? | . digit+ ) ( [eE] [+-]? digit+ )?
 *
 * which is wider than JSON's grammar (leading zeros, nothing before the
 * point). Returns how many bytes it took, 0 if text begins with no number; *d
 * is then untouched. Reads no byte beyond text[len - 1].
 */
size_t ep_fp_scan(const char *text, size_t len, struct ep_fp_decimal *d);

/*
 * Read a JSON number (RFC 8259, section 6) that must be the whole of text.
 * A value too small for a double is +-0.
 *
 * out     written only on success; finite
 * Errors: EP_EFORMAT if it is not a JSON number; EP_ERANGE if it overflows.
 */
int ep_fp_parse(const char *text, size_t len, double *out) EP_MUST_USE;

/*
 * Write the shortest decimal number that reads back as x, as a JSON number:
 *
 *     1e-5 <= |x| < 1e17      8   0.25   1730000000.123456   0.00001
 *     otherwise               1.5e-7   1e22   -1.7976931348623157e308
 *     zero                    0   -0
 *
 * Integers up to 2^53 come out digit by digit; a larger one below 1e17 has at
 * most 17 digits, of which the last may be zeros that stand for others. JSON
 * has no NaN and no infinity: callers keep them out, and if one gets here
 * "null" is written, lest the output cease to be JSON.
 *
 * out     [EP_FP_MAX] char, written, not terminated; bytes beyond the result
 *         may be overwritten
 * Returns the length, 1 to 24. Cost (same machine): 15 ns for a duration in
 * us, 21 ns for a timestamp, 23 ns for integers of random length, 40 ns for 16
 * or 17 digits.
 */
size_t ep_fp_print(double x, char out[EP_FP_MAX]);

/*
 * Write v in decimal. As above: returns the length (1 to 20), not terminated.
 */
size_t ep_fp_print_int(int64_t v, char out[EP_FP_MAX]);

#endif
