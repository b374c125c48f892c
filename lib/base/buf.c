/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c - see buf.h. */
#include "config.h"

#include "base/buf.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What ptr is while nothing is allocated (cap is 0 then). */
static char empty[1];

void ep_buf_init(struct ep_buf *b)
{
    b->ptr = empty;
    b->len = 0;
    b->cap = 0;
}

void ep_buf_free(struct ep_buf *b)
{
    if (b->cap)
        free(b->ptr);
    ep_buf_init(b);
}

void ep_buf_reset(struct ep_buf *b)
{
    b->len = 0;
    if (b->cap)
        b->ptr[0] = '\0';
}

char *ep_buf_reserve(struct ep_buf *b, size_t n)
{
    if (b->cap - b->len <= n || !b->cap) {
        b->ptr = ep_grow(b->cap ? b->ptr : NULL, &b->cap, b->len + n + 1, 1);
        b->ptr[b->len] = '\0';
    }
    return b->ptr + b->len;
}

char *ep_buf_extend(struct ep_buf *b, size_t n)
{
    char *dst = ep_buf_reserve(b, n);

    b->len += n;
    dst[n] = '\0';
    return dst;
}

void ep_buf_add(struct ep_buf *b, const void *src, size_t n)
{
    char *dst = ep_buf_extend(b, n);

    if (n)
        memcpy(dst, src, n);
}

void ep_buf_addc(struct ep_buf *b, char c)
{
    ep_buf_add(b, &c, 1);
}

void ep_buf_adds(struct ep_buf *b, const char *str)
{
    ep_buf_add(b, str, strlen(str));
}

void ep_buf_add_escaped(struct ep_buf *b, const char *src, size_t n)
{
    size_t cap = 4 * n + 8;

    b->len += strlen(ep_escape(ep_buf_reserve(b, cap), cap, src, n));
}

void ep_buf_addf(struct ep_buf *b, const char *fmt, ...)
{
    va_list ap, again;
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n > 0) {
        (void)vsnprintf(ep_buf_reserve(b, (size_t)n), (size_t)n + 1, fmt,
                        again);
        b->len += (size_t)n;
    }
    va_end(again);
}
