/* SPDX-License-Identifier: Apache-2.0 */
/* period_table.c - patterns of calls, kept once for all ranks; see period.h. */
#include "config.h"

#include "base/mem.h"
#include "detect/period_impl.h"

#include <stdlib.h>
#include <string.h>

struct ep_period_table *ep_period_table_new(void)
{
    struct ep_period_table *t = ep_calloc(1, sizeof *t);

    t->slots = 256;
    t->slot = ep_calloc(t->slots, sizeof(void *));
    return t;
}

static void free_pattern(struct pattern *x)
{
    free(x->w);
    free(x->fail);
    free(x);
}

void ep_period_table_free(struct ep_period_table *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->n; i++)
        free_pattern(t->list[i]);
    free(t->list);
    free(t->slot);
    free(t);
}

size_t ep_period_table_count(const struct ep_period_table *t)
{
    return t->n;
}

/* Where the least rotation of w begins. */
static uint32_t least_rotation(const uint64_t *w, uint32_t n)
{
    uint32_t i = 0, j = 1, k = 0;

    while (i < n && j < n && k < n) {
        uint64_t a = w[(i + k) % n], b = w[(j + k) % n];

        if (a == b) {
            k++;
            continue;
        }
        if (a > b)
            i += k + 1;
        else
            j += k + 1;
        if (i == j)
            j++;
        k = 0;
    }
    return i < j ? i : j;
}

static void rotate(uint64_t *w, uint32_t n, uint32_t by)
{
    uint64_t *copy;

    if (!by)
        return;
    copy = ep_calloc(n, sizeof *copy);
    memcpy(copy, w, n * sizeof *w);
    for (uint32_t i = 0; i < n; i++)
        w[i] = copy[(i + by) % n];
    free(copy);
}

static void fill_fail(struct pattern *x)
{
    uint32_t q = 0;

    x->fail[0] = 0;
    if (x->n > 1)
        x->fail[1] = 0;
    for (uint32_t k = 1; k + 1 < x->n; k++) {
        q = ep_pattern_step(x, q, x->w[k]);
        x->fail[k + 1] = q;
    }
}

/*
 * One more than the longest prefix of w that also begins elsewhere in w w w...:
 * the Z function of w w, one window [l, r) of known equality at a time.
 */
static uint32_t unique_prefix(const uint64_t *w, uint32_t n)
{
    uint32_t *z = ep_calloc(n, sizeof *z), l = 0, r = 0, most = 0;

    for (uint32_t i = 1; i < n; i++) {
        uint32_t k = i < r && z[i - l] < r - i ? z[i - l] : i < r ? r - i : 0;

        while (k < n && w[k] == w[(i + k) % n])
            k++;
        z[i] = k;
        if (i + k > r) {
            l = i;
            r = i + k;
        }
        most = k > most ? k : most;
    }
    free(z);
    return most + 1 < n ? most + 1 : n;
}

static uint64_t hash_of(const uint64_t *w, uint32_t n, bool gaps)
{
    uint64_t h = n * UINT64_C(2) + gaps;

    for (uint32_t i = 0; i < n; i++) {
        h = (h ^ w[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

static void grow_table(struct ep_period_table *t)
{
    free(t->slot);
    t->slots *= 2;
    t->slot = ep_calloc(t->slots, sizeof(void *));
    for (size_t i = 0; i < t->n; i++) {
        struct pattern *x = t->list[i], **at;

        at = &t->slot[x->hash & (t->slots - 1)];
        x->next = *at;
        *at = x;
    }
}

static struct pattern *new_pattern(struct ep_period_table *t, const uint64_t *w,
                                   uint32_t n, bool gaps, uint64_t hash)
{
    struct pattern *x = ep_calloc(1, sizeof *x), **at;

    x->hash = hash;
    x->n = n;
    x->gaps = gaps;
    x->w = ep_calloc(n, sizeof *x->w);
    x->fail = ep_calloc(n, sizeof *x->fail);
    memcpy(x->w, w, n * sizeof *w);
    for (uint32_t i = 0; i < n; i++)
        x->bloom |= ep_bloom_bit(w[i]);
    fill_fail(x);
    x->unique = unique_prefix(w, n);
    x->number = ++t->numbers;
    x->at = (uint32_t)t->n;
    t->list = ep_grow(t->list, &t->cap, t->n + 1, sizeof(void *));
    t->list[t->n++] = x;
    t->changes++;
    at = &t->slot[hash & (t->slots - 1)];
    x->next = *at;
    *at = x;
    if (t->n > t->slots)
        grow_table(t);
    return x;
}

struct pattern *ep_pattern_get(struct ep_period_table *t, uint64_t *w,
                               uint32_t n, bool gaps)
{
    struct pattern *x;
    uint64_t hash;

    rotate(w, n, least_rotation(w, n));
    hash = hash_of(w, n, gaps);
    for (x = t->slot[hash & (t->slots - 1)]; x; x = x->next)
        if (x->hash == hash && x->n == n && x->gaps == gaps &&
            memcmp(x->w, w, n * sizeof *w) == 0)
            return ep_pattern_ref(x);
    return ep_pattern_ref(new_pattern(t, w, n, gaps, hash));
}

struct pattern *ep_pattern_restore(struct ep_period_table *t, const uint64_t *w,
                                   uint32_t n, bool gaps, uint32_t number)
{
    struct pattern *x;

    if (least_rotation(w, n) != 0)
        return NULL;
    x = new_pattern(t, w, n, gaps, hash_of(w, n, gaps));
    x->number = number;
    return x;
}

struct pattern *ep_pattern_ref(struct pattern *x)
{
    x->refs++;
    return x;
}

void ep_pattern_unref(struct ep_period_table *t, struct pattern *x)
{
    struct pattern **at;

    if (!x || --x->refs)
        return;
    at = &t->slot[x->hash & (t->slots - 1)];
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    t->list[x->at] = t->list[--t->n];
    t->list[x->at]->at = x->at;
    free_pattern(x);
}
