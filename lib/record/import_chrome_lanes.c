/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_chrome_lanes.c - the threads of a timeline and their names; see
 * import_chrome.h.
 */
#include "config.h"

#include "record/import_chrome.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define LANES_MAX ((size_t)1 << 18)
#define FREE UINT32_MAX

struct ep_chrome_lanes {
    struct ep_chrome_lane *lane;
    size_t n, cap;
    uint32_t *index; /* open addressing; FREE or a number */
    size_t slots;    /* a power of two, at least 2 * n */
    uint32_t last;   /* the one that was found last: events come in runs */
};

static size_t hash(int64_t pid, int64_t tid)
{
    uint64_t x = (uint64_t)pid * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)tid;

    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return (size_t)(x >> 32);
}

/* Where the thread is in the index, or the free slot where it would be. */
static size_t locate(const struct ep_chrome_lanes *l, int64_t pid, int64_t tid)
{
    size_t at = hash(pid, tid) & (l->slots - 1);

    while (l->index[at] != FREE && (l->lane[l->index[at]].pid != pid ||
                                    l->lane[l->index[at]].tid != tid))
        at = (at + 1) & (l->slots - 1);
    return at;
}

static void set_slots(struct ep_chrome_lanes *l, size_t slots)
{
    l->index = ep_realloc(l->index, slots, sizeof *l->index);
    l->slots = slots;
    for (size_t i = 0; i < slots; i++)
        l->index[i] = FREE;
    for (size_t i = 0; i < l->n; i++)
        l->index[locate(l, l->lane[i].pid, l->lane[i].tid)] = (uint32_t)i;
}

struct ep_chrome_lanes *ep_chrome_lanes_new(void)
{
    struct ep_chrome_lanes *l = ep_calloc(1, sizeof *l);

    set_slots(l, 64);
    return l;
}

void ep_chrome_lanes_free(struct ep_chrome_lanes *l)
{
    if (!l)
        return;
    free(l->lane);
    free(l->index);
    free(l);
}

const struct ep_chrome_lane *ep_chrome_lane(const struct ep_chrome_lanes *l,
                                            uint32_t lane)
{
    return &l->lane[lane];
}

int ep_chrome_lane_find(struct ep_chrome_lanes *l, int64_t pid, int64_t tid,
                        uint32_t *lane, struct ep_error *err)
{
    size_t at;

    *lane = l->last;
    if (l->n && l->lane[l->last].pid == pid && l->lane[l->last].tid == tid)
        return 0;
    at = locate(l, pid, tid);
    if (l->index[at] == FREE) {
        if (l->n == LANES_MAX)
            return ep_error_set(err, EP_ELIMIT, "more than %zu threads",
                                LANES_MAX);
        if (2 * (l->n + 1) > l->slots) {
            set_slots(l, 2 * l->slots);
            at = locate(l, pid, tid);
        }
        l->lane = ep_grow(l->lane, &l->cap, l->n + 1, sizeof *l->lane);
        l->lane[l->n] = (struct ep_chrome_lane){
            .pid = pid, .tid = tid, .pp = -1, .tp = -1, .rank = -1};
        l->index[at] = (uint32_t)l->n++;
    }
    *lane = l->last = l->index[at];
    return 0;
}

/* The number behind a word in a name, or -1. */
static int32_t number_after(struct ep_span name, const char *word)
{
    const char *p = memmem(name.ptr, name.len, word, strlen(word));
    const char *end = name.ptr + name.len;
    int32_t x = -1;

    if (!p)
        return -1;
    for (p += strlen(word); p < end && *p >= '0' && *p <= '9'; p++) {
        if (x > 9999999)
            return -1;
        x = (x < 0 ? 0 : x * 10) + (*p - '0');
    }
    return x;
}

void ep_chrome_lane_name(struct ep_chrome_lanes *l, uint32_t lane,
                         struct ep_span name)
{
    l->lane[lane].pp = number_after(name, "PP rank ");
    l->lane[lane].tp = number_after(name, "TP rank ");
}

/* ---- ranks ---- */

static int order(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static bool same_group(const struct ep_chrome_lane *a,
                       const struct ep_chrome_lane *b)
{
    return a->pid == b->pid && a->pp == b->pp && a->tp == b->tp;
}

static int by_group(const void *a, const void *b)
{
    const struct ep_chrome_lane *x = *(struct ep_chrome_lane *const *)a;
    const struct ep_chrome_lane *y = *(struct ep_chrome_lane *const *)b;

    if (x->pid != y->pid)
        return order(x->pid, y->pid);
    if (x->pp != y->pp)
        return order(x->pp, y->pp);
    return x->tp != y->tp ? order(x->tp, y->tp) : order(x->tid, y->tid);
}

static int by_tid(const void *a, const void *b)
{
    const struct ep_chrome_lane *x = *(struct ep_chrome_lane *const *)a;
    const struct ep_chrome_lane *y = *(struct ep_chrome_lane *const *)b;

    return order(x->tid, y->tid);
}

/* How many of the sorted lanes are of the group of the first. */
static size_t group_size(struct ep_chrome_lane *const *v, size_t n)
{
    size_t size = 1;

    while (size < n && same_group(v[0], v[size]))
        size++;
    return size;
}

/* The threads of a rank, if all named lanes fit the rule; else 0. */
static int64_t per_rank(struct ep_chrome_lane **v, size_t n)
{
    size_t size;

    if (n == 0)
        return 0;
    qsort(v, n, sizeof(struct ep_chrome_lane *), by_group);
    size = group_size(v, n);
    if (size < 2)
        return 0;
    for (size_t at = 0; at < n; at += size) {
        if (group_size(v + at, n - at) != size || v[at]->tid < 0 ||
            v[at]->tid % (int64_t)size != 0)
            return 0;
        for (size_t i = 1; i < size; i++)
            if (v[at + i]->tid != v[at]->tid + (int64_t)i)
                return 0;
    }
    qsort(v, n, sizeof(struct ep_chrome_lane *), by_tid);
    for (size_t i = 1; i < n; i++)
        if (v[i]->tid == v[i - 1]->tid)
            return 0;
    return (int64_t)size;
}

void ep_chrome_lanes_rank(struct ep_chrome_lanes *l)
{
    struct ep_chrome_lane **named =
        ep_calloc(l->n + 1, sizeof(struct ep_chrome_lane *));
    size_t n = 0;
    int64_t size;

    for (size_t i = 0; i < l->n; i++)
        if (l->lane[i].pp >= 0)
            named[n++] = &l->lane[i];
    size = per_rank(named, n);
    for (size_t i = 0; size && i < n; i++)
        named[i]->rank = named[i]->tid / size;
    free(named);
}
