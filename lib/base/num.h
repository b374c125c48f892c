/* SPDX-License-Identifier: Apache-2.0 */
/*
 * num.h - numbers that a user types, and numbers that a user reads.
 *
 * Strict: the whole of the text must be the number. No white space, no '+'
 * sign, no NaN, no infinity, no hexadecimal; leading zeros do not make it
 * octal ("010" is ten). A point needs a digit after it ("5." is refused).
 *
 * All readers return 0 and set *out, which is then in [lo, hi], or leave *out
 * alone and return
 *   EP_EFORMAT  "not a number", "unknown unit 'xb'", ...
 *   EP_ERANGE   "not in LO..HI": out of bounds, or of the type
 * with these words in *e (may be NULL): the reason only, to which the caller
 * adds what was wrong with ep_error_prefix(). Needs lo <= hi.
 */
#ifndef EP_BASE_NUM_H
#define EP_BASE_NUM_H

#include "base/buf.h"
#include "base/err.h"

#include <stdint.h>

/* An integer: -? digit+ */
int ep_num_int(const char *s, int64_t lo, int64_t hi, int64_t *out,
               struct ep_error *e) EP_MUST_USE;

/*
 * A finite double, rounded to nearest: 5, -0.25, .5, 1e-3. Bounds may be
 * infinite; the value may not.
 */
int ep_num_double(const char *s, double lo, double hi, double *out,
                  struct ep_error *e) EP_MUST_USE;

/*
 * A size in bytes: 4096, 64KiB, 1.5GiB, 10MB, 2e9.
 *
 *     B                     1
 *     KiB MiB GiB TiB PiB   1024^1 ... 1024^5
 *     K   M   G   T   P     the same, as dd(1) and ls(1) have it; also k
 *     kB  MB  GB  TB  PB    1000^1 ... 1000^5; also KB
 *
 * A fraction of a unit is rounded to the nearest byte (ties up); bytes cannot
 * have one: EP_EFORMAT "not a whole number of bytes".
 */
int ep_num_size(const char *s, int64_t lo, int64_t hi, int64_t *out,
                struct ep_error *e) EP_MUST_USE;

/*
 * A duration in seconds: 250ms, 10us, 3ns, 1.5s, 2m, 1h, 1d; a number without
 * unit is seconds. Several may follow each other, from the largest unit to the
 * smallest, each with its unit, a fraction in the last only: 1h30m, 2m0.5s. A
 * '-' at the start counts for all.
 *
 * "250ms" gives the double nearest to 0.25, as "0.25" does; with minutes,
 * hours and days, or several parts, up to one rounding per part is added.
 */
int ep_num_duration(const char *s, double lo, double hi, double *out,
                    struct ep_error *e) EP_MUST_USE;

/*
 * For people, never to be read back: three significant digits, no zeros at
 * the end. NaN and infinities are written "nan", "inf", "-inf" with the unit.
 *
 *     duration   1.41 s   52 ms   0 s   3 min 20 s   2 h 5 min   3 d 4 h
 *     size       1023 B   64 KiB   1.5 GiB             (powers of 1024)
 *     si         120 GFLOP/s   3.2 GB/s   300 mW   0 W   (powers of 1000)
 *
 * From a minute on, a duration is rounded to the smaller of the two units that
 * are shown, and that is left out if it is 0. Prefixes of si go from n to E;
 * a value that is written without prefix, and unit "", has no space at the end.
 */
void ep_num_format_duration(struct ep_buf *b, double s);
void ep_num_format_size(struct ep_buf *b, double bytes);
void ep_num_format_si(struct ep_buf *b, double value, const char *unit);

#endif
