/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - spans of bytes and a growable string.
 *
 * Invariants of struct ep_buf: ptr is never NULL after ep_buf_init, and
 * ptr[len] is '\0' whenever a function of this module returns. Fields may be
 * read; only these functions write them.
 */
#ifndef EP_BASE_BUF_H
#define EP_BASE_BUF_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Bytes that belong to somebody else; not terminated. */
struct ep_span {
    const char *ptr;
    size_t len;
};

/* Do the bytes equal the terminated string? */
static inline bool ep_span_eq(struct ep_span s, const char *str)
{
    return strlen(str) == s.len && (!s.len || memcmp(s.ptr, str, s.len) == 0);
}

struct ep_buf {
    char *ptr;
    size_t len;
    size_t cap; /* bytes allocated, the '\0' included */
};

void ep_buf_init(struct ep_buf *b);  /* allocates nothing */
void ep_buf_free(struct ep_buf *b);  /* b is then as after ep_buf_init */
void ep_buf_reset(struct ep_buf *b); /* empty, keeps its memory */

/* Make room for n more bytes and a '\0'; returns where they go. */
char *ep_buf_reserve(struct ep_buf *b, size_t n);

/* Append n bytes, which the caller writes at the place returned. */
char *ep_buf_extend(struct ep_buf *b, size_t n);

void ep_buf_add(struct ep_buf *b, const void *src, size_t n);
void ep_buf_addc(struct ep_buf *b, char c);
void ep_buf_adds(struct ep_buf *b, const char *str);
/* n bytes of input as ep_escape makes them printable, none left out. */
void ep_buf_add_escaped(struct ep_buf *b, const char *src, size_t n);
void ep_buf_addf(struct ep_buf *b, const char *fmt, ...) EP_PRINTF(2, 3);

#endif
