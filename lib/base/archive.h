/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive.h - the state of a program in bytes, and back.
 *
 * One function per struct describes both directions: it passes each field
 * through an archive and takes what comes back,
 *
 *     s->n = (unsigned)ep_archive_u64(a, s->n, MAX);
 *     s->level = ep_archive_f64(a, s->level);
 *
 * Saving, the value goes out and comes back as it is; loading, it is what is in
 * the archive. So the two cannot drift apart. The first error stays: all later
 * calls load zeros (or the least that is allowed) and do nothing else, and are
 * asked once, at the end or before something is built on what was loaded.
 *
 * Bytes:
 *
 *     "EPSTATE\n"  program (u8 length, bytes)  format (u32)
 *     version of the program (u8 length, bytes)  payload bytes (u64)
 *     payload  CRC-32 (ISO 3309, as in gzip) of all before it
 *
 * all fixed numbers little-endian; in the payload integers are LEB128 (7 bits a
 * byte, the lowest first; signed ones folded: 0, -1, 1, -2, ...), doubles their 8
 * bytes, so that they come back bit by bit, NaN and infinity too. The same state
 * gives the same bytes. The sum is ours, so that a build without zlib has it
 * too; it is against accidents. Against malice stands that nothing loaded is
 * believed: integers have limits, and a count is held against the bytes that are
 * left, so that loading takes memory in proportion to the archive.
 */
#ifndef EP_BASE_ARCHIVE_H
#define EP_BASE_ARCHIVE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Visible so that it can stand on the stack; fields are read-only. */
struct ep_archive {
    bool saving;
    struct ep_buf out;             /* saving: what was saved */
    size_t header;                 /* bytes of it before the payload */
    const unsigned char *at, *end; /* loading: what is left */
    struct ep_error err;           /* code 0: none */
};

/*
 * Begin to save the state of a program (its name, < 256 bytes) in a format of
 * that number; version is for people. Free with ep_archive_free.
 */
void ep_archive_save(struct ep_archive *a, const char *program, uint32_t format,
                     const char *version);

/* Saving is over: a->out is the whole. Returns 0 or the error of a. */
int ep_archive_saved(struct ep_archive *a, struct ep_error *err) EP_MUST_USE;

/*
 * Begin to load from n bytes, which are borrowed until the end. EP_EFORMAT, with
 * a reason for people, unless they are whole, and of that program and format
 * ("is in format 2, of version 1.4; format 1 is known here").
 */
int ep_archive_load(struct ep_archive *a, const void *bytes, size_t n,
                    const char *program, uint32_t format,
                    struct ep_error *err) EP_MUST_USE;

/* Loading is over: the error of a, or EP_EFORMAT if there is more in it. */
int ep_archive_loaded(struct ep_archive *a, struct ep_error *err) EP_MUST_USE;

void ep_archive_free(struct ep_archive *a);

/* No error so far? Loading: build on what came only then. */
static inline bool ep_archive_ok(const struct ep_archive *a)
{
    return a->err.code == 0;
}

/* What was loaded makes no sense (EP_EFORMAT), for that reason. */
void ep_archive_fail(struct ep_archive *a, const char *why);

/* Fail unless the condition holds; checked in both directions. */
static inline void ep_archive_require(struct ep_archive *a, bool condition,
                                      const char *why)
{
    if (!condition)
        ep_archive_fail(a, why);
}

/* ---- Values: each is O(1), or O(bytes) ----------------------------------- */

/* Fails above max. A value to be saved has to be within the limits too. */
uint64_t ep_archive_u64(struct ep_archive *a, uint64_t v, uint64_t max);
int64_t ep_archive_i64(struct ep_archive *a, int64_t v, int64_t min,
                       int64_t max);
uint64_t ep_archive_bits(struct ep_archive *a, uint64_t v); /* any; 8 bytes */
bool ep_archive_bool(struct ep_archive *a, bool v);
double ep_archive_f64(struct ep_archive *a, double v); /* any bits */
double ep_archive_finite(struct ep_archive *a, double v);
void ep_archive_f64s(struct ep_archive *a, double *v, size_t n);

/*
 * A number of elements, each of which takes at least so many (>= 1) bytes: fails
 * above max, and if that many bytes are not left.
 */
size_t ep_archive_size(struct ep_archive *a, size_t n, size_t max, size_t each);

/*
 * Bytes with their length, at most max; NULs allowed. What is loaded is borrowed
 * from the bytes of ep_archive_load.
 */
struct ep_span ep_archive_span(struct ep_archive *a, struct ep_span s,
                               size_t max);

/*
 * A string or NULL. Loading: s is not looked at, the result is for free(); it
 * ends at the first NUL.
 */
char *ep_archive_string(struct ep_archive *a, char *s, size_t max);

/* CRC-32 of n bytes (polynomial 0xEDB88320, reflected). Cost: 1 ns/byte. */
uint32_t ep_archive_crc32(const void *bytes, size_t n);

#endif
