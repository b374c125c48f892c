/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern.c - see intern.h: open addressing, a multiplicative hash of 8 bytes at
 * a time, load at most 1/2.
 */
#include "config.h"

#include "base/intern.h"

#include "base/mem.h"
#include "base/word.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    char *name;
    size_t len;
    uint64_t hash;
};

struct ep_intern {
    struct entry *v;
    size_t n, cap;
    uint32_t *slot; /* number + 1; 0 is free */
    size_t slots;   /* a power of two */
};

struct ep_intern *ep_intern_new(void)
{
    struct ep_intern *t = ep_calloc(1, sizeof *t);

    t->slots = 64;
    t->slot = ep_calloc(t->slots, sizeof *t->slot);
    return t;
}

void ep_intern_free(struct ep_intern *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        free(t->v[i].name);
    free(t->v);
    free(t->slot);
    free(t);
}

static uint64_t mix(uint64_t h, uint64_t w)
{
    h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

static uint64_t hash_of(struct ep_span s)
{
    const char *p = s.len ? s.ptr : "", *begin = p, *end = p + s.len;
    uint64_t h = s.len;

    for (; end - p > 8; p += 8)
        h = mix(h, load8(p));
    return mix(h, load8_bounded(begin, p, end));
}

static void put(struct ep_intern *t, size_t i)
{
    size_t at = t->v[i].hash & (t->slots - 1);

    while (t->slot[at])
        at = (at + 1) & (t->slots - 1);
    t->slot[at] = (uint32_t)i + 1;
}

long ep_intern_add(struct ep_intern *t, struct ep_span s, size_t max)
{
    uint64_t h = hash_of(s);
    size_t at = h & (t->slots - 1);

    for (; t->slot[at]; at = (at + 1) & (t->slots - 1)) {
        const struct entry *e = &t->v[t->slot[at] - 1];

        if (e->hash == h && e->len == s.len &&
            (!s.len || memcmp(e->name, s.ptr, s.len) == 0))
            return (long)t->slot[at] - 1;
    }
    if (t->n >= max || t->n >= UINT32_MAX - 1)
        return -1;
    t->v = ep_grow(t->v, &t->cap, t->n + 1, sizeof *t->v);
    t->v[t->n] = (struct entry){ep_strndup(s.ptr, s.len), s.len, h};
    t->n++;
    if (t->n * 2 > t->slots) {
        free(t->slot);
        t->slots *= 2;
        t->slot = ep_calloc(t->slots, sizeof *t->slot);
        for (size_t i = 0; i < t->n; i++)
            put(t, i);
    } else {
        put(t, t->n - 1);
    }
    return (long)t->n - 1;
}

const char *ep_intern_name(const struct ep_intern *t, size_t i)
{
    return t->v[i].name;
}

struct ep_span ep_intern_span(const struct ep_intern *t, size_t i)
{
    return (struct ep_span){t->v[i].name, t->v[i].len};
}

size_t ep_intern_count(const struct ep_intern *t)
{
    return t->n;
}
