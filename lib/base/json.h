/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - a pull scanner for JSON (RFC 8259).
 *
 * One pass, no tree, no allocation: the caller asks for the next member or
 * element of the level it is in and gets a view into its own text. Containers
 * are returned unentered; the caller enters the ones it wants, and the next
 * call passes over the others, checking them in full. A text whose values
 * were all pulled or passed, and on which ep_json_end() returned 0, is valid.
 *
 *     struct ep_json j;
 *     struct ep_json_value key, v;
 *     int r = ep_json_begin(&j, line, len, &v, err);
 *
 *     if (r == 0 && v.kind == EP_JSON_OBJECT) {
 *         ep_json_enter(&j);
 *         while ((r = ep_json_next(&j, &key, &v)) > 0)
 *             take(&key, &v);
 *     }
 *     if (r == 0)
 *         r = ep_json_end(&j);
 *
 * The text is borrowed: it must stay unchanged while the scanner or a value
 * that came from it is used. No byte at or after text + len is read (nothing
 * needs to be padded or terminated).
 *
 * What is accepted is RFC 8259 and no more: numbers by its grammar, the four
 * white space bytes, strings in well-formed UTF-8 without control bytes below
 * 0x20, \u surrogates only in pairs, no byte order mark, no NUL, nothing
 * after the root. Nesting is capped at EP_JSON_MAX_DEPTH levels.
 *
 * Duplicate keys: the scanner returns each member as it comes. "The last one
 * wins" is a rule for the consumer: assign, and let a later one overwrite.
 *
 * Errors: EP_EFORMAT for a byte that cannot be there; EP_ETRUNC where the text
 * ends too early, so that a line that was cut can be told from a bad one (an
 * empty text counts as cut); EP_ELIMIT for too many levels. The message is
 * "byte N: what", N counted from 0 and equal to ep_json_offset(). After an
 * error every further call on the scanner returns the same code.
 *
 * Cost: O(length); about 1 ns per byte of telemetry records, numbers made
 * doubles included, and 1.6 where json_next.c has no fast path for the machine
 * (tests/bench/bench_json.c).
 */
#ifndef EP_BASE_JSON_H
#define EP_BASE_JSON_H

#include "base/buf.h"
#include "base/err.h"
#include "base/fp.h"

#include <float.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EP_JSON_MAX_DEPTH 64

enum ep_json_kind {
    EP_JSON_NULL,
    EP_JSON_FALSE,
    EP_JSON_TRUE,
    EP_JSON_NUMBER,
    EP_JSON_STRING,
    EP_JSON_ARRAY,
    EP_JSON_OBJECT,
};

/*
 * One value, or a key (which is a STRING). Fields that the comment does not
 * name for a kind hold nothing of use.
 */
struct ep_json_value {
    enum ep_json_kind kind;
    bool escaped;             /* STRING: has a backslash, so raw is not the
                                 text: see ep_json_unescape() */
    bool integer;             /* NUMBER: no '.', no exponent */
    struct ep_span raw;       /* STRING: between the quotes; NUMBER and
                                 literals: the text; containers: the opening
                                 bracket (ep_json_skip() gives the whole) */
    struct ep_fp_decimal dec; /* NUMBER; an exponent beyond +-10^9 is kept as
                                 +-10^9, which no double or integer can tell */
};

/* A scanner. Private: use the functions. Nothing needs to be freed. */
struct ep_json {
    const char *start, *p, *end;
    const char *readable; /* end of what may be loaded, >= end */
    struct ep_error *err;
    int depth;        /* levels entered */
    int failed;       /* code of the first error, else 0 */
    uint64_t objects; /* bit d: the level d outside this is an object */
    bool pending;     /* a container was returned, and neither entered nor
                         passed; p is after its opening bracket */
    bool wide;        /* the processor has AVX2 and BMI2 */
    int separator;    /* what has to be at p; see json_impl.h */
};

/*
 * Begin a text: one value of any kind, white space allowed round it.
 *
 * text    [len] borrowed until the scanner and its values are done with
 * root    written
 * err     kept by the scanner for all later calls; may be NULL
 */
int ep_json_begin(struct ep_json *j, const char *text, size_t len,
                  struct ep_json_value *root, struct ep_error *err) EP_MUST_USE;

/*
 * As above for a text inside a larger buffer: the pad bytes after the text may
 * be loaded too, whatever they are (they are never looked at). With 32 or more
 * of them the last members of a record are as fast as the others.
 */
int ep_json_begin_padded(struct ep_json *j, const char *text, size_t len,
                         size_t pad, struct ep_json_value *root,
                         struct ep_error *err) EP_MUST_USE;

/*
 * Go into the container that ep_json_begin() or ep_json_next() has just
 * returned. Does nothing if the last value was no container.
 */
void ep_json_enter(struct ep_json *j);

/*
 * The next member (key and v are written) or element (v is written) of this
 * level: 1; or 0 at its end, and then the level is left: the next call goes on
 * in the one outside. key may be NULL. A container returned earlier that was
 * not entered is passed over first. Outside of any container: 0.
 */
int ep_json_next(struct ep_json *j, struct ep_json_value *key,
                 struct ep_json_value *v) EP_MUST_USE;

/*
 * Pass over the container just returned. *raw (may be NULL) becomes its whole
 * text, brackets included; empty if the last value was no container.
 */
int ep_json_skip(struct ep_json *j, struct ep_span *raw) EP_MUST_USE;

/*
 * Check that nothing but white space follows the root value. What was not
 * read, in this level or outside, is read and checked first.
 */
int ep_json_end(struct ep_json *j) EP_MUST_USE;

/* Where the scanner is; after an error, where that is. Bytes from 0. */
size_t ep_json_offset(const struct ep_json *j);

/*
 * The first 8 bytes of a key or string of this text as a number (first byte
 * lowest, zeros after the end): s.len and this tell keys of up to 8 bytes
 * apart in two comparisons.
 *
 * s       raw of a key or string that j returned
 * Cost: one load; reads nothing past the text.
 */
static inline uint64_t ep_json_head(const struct ep_json *j, struct ep_span s)
{
    uint64_t w = 0;

    if (j->end - s.ptr >= 8)
        memcpy(&w, s.ptr, 8);
    else
        memcpy(&w, s.ptr, s.len);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    return s.len >= 8 ? w : w & ((UINT64_C(1) << 8 * s.len) - 1);
}

/*
 * The double nearest to a NUMBER (ties to even); values that are too small
 * become 0. EP_ERANGE if it overflows (1e999), EP_EFORMAT if v is not a
 * NUMBER; *out is then unchanged.
 */
static inline EP_MUST_USE int ep_json_double(const struct ep_json_value *v,
                                             double *out)
{
    double x;

    if (v->kind != EP_JSON_NUMBER)
        return EP_EFORMAT;
    x = ep_fp_from_decimal(&v->dec, v->raw.ptr, v->raw.len);
    if (x < -DBL_MAX || x > DBL_MAX)
        return EP_ERANGE;
    *out = x;
    return 0;
}

/*
 * The exact value of a NUMBER that is an integer in any spelling (1e3, 1.0
 * and -0 count). EP_ERANGE if it does not fit, EP_EFORMAT if it has a
 * fraction or v is not a NUMBER; *out is then unchanged.
 */
int ep_json_int(const struct ep_json_value *v, int64_t *out) EP_MUST_USE;

/*
 * Append the decoded bytes of a STRING or key (UTF-8, may contain NUL).
 * Cost: O(length); a copy if !v->escaped.
 */
void ep_json_unescape(const struct ep_json_value *v, struct ep_buf *out);

#endif
