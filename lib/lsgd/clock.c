/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - see clock.h. A binary heap in an array. */
#include "config.h"

#include "lsgd/clock.h"

#include "base/mem.h"

#include <stdlib.h>

static bool before(const struct ep_vevent *a, const struct ep_vevent *b)
{
    return a->t < b->t || (a->t == b->t && a->seq < b->seq);
}

void ep_vclock_init(struct ep_vclock *c)
{
    *c = (struct ep_vclock){.now = 0};
}

void ep_vclock_free(struct ep_vclock *c)
{
    free(c->heap);
    ep_vclock_init(c);
}

void ep_vclock_at(struct ep_vclock *c, double t, uint32_t kind, uint32_t id,
                  uint64_t gen)
{
    const struct ep_vevent e = {.t = t > c->now ? t : c->now,
                                .seq = c->entered++,
                                .gen = gen,
                                .kind = kind,
                                .id = id};
    size_t i = c->n++;

    c->heap = ep_grow(c->heap, &c->cap, c->n, sizeof *c->heap);
    while (i > 0 && before(&e, &c->heap[(i - 1) / 2])) {
        c->heap[i] = c->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    c->heap[i] = e;
}

bool ep_vclock_next(struct ep_vclock *c, struct ep_vevent *e)
{
    struct ep_vevent last;
    size_t i = 0, child;

    if (!c->n)
        return false;
    *e = c->heap[0];
    last = c->heap[--c->n];
    while ((child = 2 * i + 1) < c->n) {
        if (child + 1 < c->n && before(&c->heap[child + 1], &c->heap[child]))
            child++;
        if (!before(&c->heap[child], &last))
            break;
        c->heap[i] = c->heap[child];
        i = child;
    }
    if (c->n)
        c->heap[i] = last;
    c->now = e->t;
    c->passed++;
    return true;
}
