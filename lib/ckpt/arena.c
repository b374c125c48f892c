/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - see arena.h: a list of chunks, each larger than the one before. */
#include "config.h"

#include "ckpt/arena.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_LEAST = 4096, CHUNK_MOST = 1 << 20 };

struct ep_arena_chunk {
    struct ep_arena_chunk *older;
    size_t used, cap;
    unsigned char data[];
};

void ep_arena_free(struct ep_arena *a)
{
    while (a->chunk) {
        struct ep_arena_chunk *older = a->chunk->older;

        free(a->chunk);
        a->chunk = older;
    }
}

void *ep_arena_alloc(struct ep_arena *a, size_t n, size_t align)
{
    struct ep_arena_chunk *c = a->chunk;
    size_t at = c ? (c->used + align - 1) & ~(align - 1) : 0;

    if (!c || c->cap < at || c->cap - at < n) {
        size_t cap = c ? c->cap * 2 : CHUNK_LEAST;

        if (cap > CHUNK_MOST)
            cap = CHUNK_MOST;
        if (cap < n)
            cap = n;
        c = ep_realloc(NULL, sizeof *c + cap, 1);
        c->older = a->chunk;
        c->cap = cap;
        a->chunk = c;
        at = 0;
    }
    c->used = at + n;
    return c->data + at;
}

static char *copy(struct ep_arena *a, const char *src, size_t n)
{
    char *p = ep_arena_alloc(a, n + 1, 1);

    if (n)
        memcpy(p, src, n);
    p[n] = '\0';
    return p;
}

struct ep_span ep_arena_text(struct ep_arena *a, const struct ep_json_value *v)
{
    struct ep_span s = {NULL, v->raw.len};
    struct ep_buf decoded;

    if (!v->escaped) {
        s.ptr = copy(a, v->raw.ptr, v->raw.len);
        return s;
    }
    ep_buf_init(&decoded);
    ep_json_unescape(v, &decoded);
    s.len = decoded.len;
    s.ptr = copy(a, decoded.ptr, decoded.len);
    ep_buf_free(&decoded);
    return s;
}

bool ep_arena_text_is(const struct ep_json_value *v, const char *want)
{
    struct ep_buf decoded;
    bool same;

    if (!v->escaped)
        return ep_span_eq(v->raw, want);
    ep_buf_init(&decoded);
    ep_json_unescape(v, &decoded);
    same = ep_span_eq((struct ep_span){decoded.ptr, decoded.len}, want);
    ep_buf_free(&decoded);
    return same;
}

int ep_span_order(struct ep_span a, struct ep_span b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.ptr, b.ptr, n) : 0;

    return order ? order : (a.len > b.len) - (a.len < b.len);
}
