/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_text.h - what the importers of NCCL's texts have in common: a cursor
 * over a line, names of operations, hosts and communicators.
 *
 * Nothing here allocates, and nothing reads beyond a span's end.
 */
#ifndef EP_RECORD_NCCL_TEXT_H
#define EP_RECORD_NCCL_TEXT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Does a span equal a string literal? One comparison of constant length. */
#define EP_SPAN_IS(s, literal)                                                 \
    ((s).len == sizeof(literal) - 1 &&                                         \
     memcmp((s).ptr, literal, sizeof(literal) - 1) == 0)

/* What is left of a text that is read from left to right. */
struct ep_cursor {
    const char *p, *end;
};

/* Pass over literal if the text begins with it; false (and nothing passed) if
 * it does not. */
static inline bool ep_cursor_lit(struct ep_cursor *c, const char *literal)
{
    size_t n = strlen(literal); /* known when it is compiled */

    if ((size_t)(c->end - c->p) < n || memcmp(c->p, literal, n) != 0)
        return false;
    c->p += n;
    return true;
}

/* Go behind the next occurrence of literal; false leaves the cursor alone. */
bool ep_cursor_find(struct ep_cursor *c, const char *literal);

/* Pass over blanks (spaces and tabs). */
static inline void ep_cursor_blanks(struct ep_cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t'))
        c->p++;
}

/* The bytes up to the next blank (perhaps none), which are passed over. */
struct ep_span ep_cursor_word(struct ep_cursor *c);

/*
 * Decimal digits, below 2^53. False, and nothing passed, if there are none or
 * the number is larger.
 */
static inline bool ep_cursor_uint(struct ep_cursor *c, int64_t *out)
{
    const char *p = c->p;
    int64_t v = 0;

    for (; p < c->end && *p >= '0' && *p <= '9'; p++) {
        v = v * 10 + (*p - '0');
        if (v > (INT64_C(1) << 53) - 1)
            return false;
    }
    if (p == c->p)
        return false;
    c->p = p;
    *out = v;
    return true;
}

/* Hexadecimal digits with or without 0x; likewise, at most 64 bits. */
bool ep_cursor_hex(struct ep_cursor *c, uint64_t *out);

#define EP_NCCL_OP_MAX 48

/*
 * An operation's name as records have it: AllReduce is all_reduce, All2All and
 * AlltoAll are all_to_all, SendRecv is send_recv; another name in camel case
 * is taken apart in the same way. The result is static text or in buf; empty
 * if the name is empty, "Invalid" or "Unknown" (what NCCL prints for a function
 * it has no name for), longer than fits, or not letters, digits and _.
 */
struct ep_span ep_nccl_op(struct ep_span name, char buf[EP_NCCL_OP_MAX]);

/*
 * A host name up to its first dot; an IPv4 or IPv6 address as it is. Empty if
 * there is a NUL in it, or it is "unknown" or empty.
 */
struct ep_span ep_nccl_host(struct ep_span name);

#define EP_NCCL_COMM_MAX 20

/* A communicator's hash as NCCL Inspector writes it, 0x27a079b828ff1a75. */
struct ep_span ep_nccl_comm(uint64_t hash, char buf[EP_NCCL_COMM_MAX]);

#endif
