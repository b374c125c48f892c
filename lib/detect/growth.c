/* SPDX-License-Identifier: Apache-2.0 */
/* growth.c - see growth.h: open addressing, load at most 1/2. */
#include "config.h"

#include "detect/growth.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

struct ep_counter {
    uint64_t key; /* 0: the slot is free */
    double last;
};

void ep_growth_free(struct ep_growth *g)
{
    free(g->v);
    *g = (struct ep_growth){NULL, 0, 0};
}

static uint64_t mix(uint64_t h, uint64_t w)
{
    h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ h >> 29;
}

static struct ep_counter *slot_of(struct ep_counter *v, size_t slots,
                                  uint64_t key)
{
    size_t at = key & (slots - 1);

    while (v[at].key && v[at].key != key)
        at = (at + 1) & (slots - 1);
    return &v[at];
}

static void more_slots(struct ep_growth *g)
{
    size_t slots = g->slots ? 2 * g->slots : 64;
    struct ep_counter *v = ep_calloc(slots, sizeof *v);

    for (size_t i = 0; i < g->slots; i++)
        if (g->v[i].key)
            *slot_of(v, slots, g->v[i].key) = g->v[i];
    free(g->v);
    g->v = v;
    g->slots = slots;
}

double ep_growth_since(struct ep_growth *g, size_t device, struct ep_span name,
                       double value)
{
    uint64_t key = mix(device, name.len);
    struct ep_counter *c;
    double last;

    for (size_t i = 0; i < name.len; i++)
        key = mix(key, (unsigned char)name.ptr[i]);
    key += !key;
    if (2 * (g->n + 1) > g->slots)
        more_slots(g);
    c = slot_of(g->v, g->slots, key);
    if (!c->key) {
        if (g->n >= EP_GROWTH_MAX)
            return (double)NAN;
        g->n++;
        *c = (struct ep_counter){key, value};
        return (double)NAN;
    }
    last = c->last;
    c->last = value;
    return value >= last ? value - last : fmax(value, 0);
}

static int by_key(const void *pa, const void *pb)
{
    const struct ep_counter *a = pa, *b = pb;

    return (a->key > b->key) - (a->key < b->key);
}

/* All of them by their keys: places depend on the order of their coming. */
static struct ep_counter *sorted(const struct ep_growth *g)
{
    struct ep_counter *v = ep_calloc(g->n + 1, sizeof *v);
    size_t n = 0;

    for (size_t i = 0; i < g->slots; i++)
        if (g->v[i].key)
            v[n++] = g->v[i];
    qsort(v, n, sizeof *v, by_key);
    return v;
}

void ep_growth_archive(struct ep_archive *a, struct ep_growth *g)
{
    struct ep_counter *v = a->saving ? sorted(g) : NULL;
    size_t n = ep_archive_size(a, g->n, EP_GROWTH_MAX, 16);
    uint64_t before = 0;

    for (size_t i = 0; i < n && ep_archive_ok(a); i++) {
        struct ep_counter c = v ? v[i] : (struct ep_counter){0, 0};

        c.key = ep_archive_bits(a, c.key);
        c.last = ep_archive_finite(a, c.last);
        ep_archive_require(a, c.key > before, "counters are out of order");
        before = c.key;
        if (v || !ep_archive_ok(a))
            continue;
        if (2 * (g->n + 1) > g->slots)
            more_slots(g);
        *slot_of(g->v, g->slots, c.key) = c;
        g->n++;
    }
    free(v);
}
