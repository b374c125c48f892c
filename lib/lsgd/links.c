/* SPDX-License-Identifier: Apache-2.0 */
/* links.c - see links.h. */
#include "config.h"

#include "lsgd/links.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a sender has on its way. */
struct flow {
    bool busy;
    bool flowing; /* its bits are on the link (contention) */
    size_t link;
    double bytes;
    uint64_t gen; /* rises with every transfer and cancel */
};

/* A transfer that shares a link: where V will be at its end. */
struct share {
    double end; /* bits */
    uint64_t seq, gen;
    size_t sender;
};

struct link {
    double bits_s;
    bool between;
    double bytes; /* that arrived */
    /* contention */
    size_t flows;       /* on it now */
    double v;           /* bits that each of them got since the link was idle */
    double since;       /* v is of this moment */
    uint64_t gen;       /* of the event that is due */
    uint64_t seq;       /* transfers so far */
    struct share *heap; /* by end; may hold some that were cancelled */
    size_t n, cap;
};

struct ep_links {
    struct ep_links_config config;
    struct ep_vclock *clock;
    struct flow *flow; /* [nsenders] */
    struct link *link; /* [n n + n] */
    size_t nlinks;
    double between, inside;
};

struct ep_links *ep_links_new(const struct ep_links_config *config,
                              struct ep_vclock *clock)
{
    struct ep_links *l = ep_calloc(1, sizeof *l);
    size_t n = config->nregions;

    l->config = *config;
    l->clock = clock;
    l->flow = ep_calloc(config->nsenders, sizeof *l->flow);
    l->nlinks = n * n + n;
    l->link = ep_calloc(l->nlinks, sizeof *l->link);
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            l->link[i * n + j].bits_s = 1e9 * config->gbit_s[i * n + j];
            l->link[i * n + j].between = i != j;
        }
        l->link[n * n + i].bits_s = 1e9 * config->gbit_s[i * n + i];
    }
    return l;
}

void ep_links_free(struct ep_links *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->nlinks; i++)
        free(l->link[i].heap);
    free(l->link);
    free(l->flow);
    free(l);
}

size_t ep_links_between(const struct ep_links *l, size_t from, size_t to,
                        bool down)
{
    size_t n = l->config.nregions;

    return from == to && down ? n * n + from : from * n + to;
}

/* ==== Sharing ==== */

static bool sooner(const struct share *a, const struct share *b)
{
    return a->end < b->end || (a->end == b->end && a->seq < b->seq);
}

static void push(struct link *k, const struct share *s)
{
    size_t i = k->n++;

    k->heap = ep_grow(k->heap, &k->cap, k->n, sizeof *k->heap);
    while (i > 0 && sooner(s, &k->heap[(i - 1) / 2])) {
        k->heap[i] = k->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    k->heap[i] = *s;
}

static void pop(struct link *k)
{
    const struct share last = k->heap[--k->n];
    size_t i = 0, child;

    while ((child = 2 * i + 1) < k->n) {
        if (child + 1 < k->n && sooner(&k->heap[child + 1], &k->heap[child]))
            child++;
        if (!sooner(&k->heap[child], &last))
            break;
        k->heap[i] = k->heap[child];
        i = child;
    }
    if (k->n)
        k->heap[i] = last;
}

/* Bring v up to now. An idle link begins again at 0, so that a transfer that
   is alone is as exact as without contention. */
static void advance(struct link *k, double now)
{
    if (k->flows)
        k->v += (now - k->since) * k->bits_s / (double)k->flows;
    else
        k->v = 0;
    k->since = now;
}

/* Put the next end of a link on the clock, in place of the one that was. */
static void schedule(struct ep_links *l, size_t link)
{
    struct link *k = &l->link[link];
    double rest;

    k->gen++;
    while (k->n && k->heap[0].gen != l->flow[k->heap[0].sender].gen)
        pop(k);
    if (!k->n)
        return;
    rest = k->heap[0].end > k->v ? k->heap[0].end - k->v : 0;
    ep_vclock_at(l->clock, l->clock->now + rest * (double)k->flows / k->bits_s,
                 l->config.ended, (uint32_t)link, k->gen);
}

void ep_links_ended(struct ep_links *l, const struct ep_vevent *e)
{
    struct link *k = &l->link[e->id];
    struct share s;

    if (e->gen != k->gen)
        return;
    s = k->heap[0];
    pop(k);
    k->v = s.end; /* exactly: no error adds up */
    k->since = l->clock->now;
    k->flows--;
    l->flow[s.sender].flowing = false;
    ep_vclock_at(l->clock, l->clock->now + l->config.latency, l->config.arrived,
                 (uint32_t)s.sender, s.gen);
    schedule(l, e->id);
}

/* ==== Transfers ==== */

void ep_links_send(struct ep_links *l, size_t sender, size_t link, double bytes)
{
    struct link *k = &l->link[link];
    struct flow *f = &l->flow[sender];

    f->busy = true;
    f->link = link;
    f->bytes = bytes;
    f->gen++;
    if (!l->config.contention) {
        ep_vclock_at(l->clock,
                     l->clock->now +
                         (l->config.latency + bytes * 8 / k->bits_s),
                     l->config.arrived, (uint32_t)sender, f->gen);
        return;
    }
    advance(k, l->clock->now);
    k->flows++;
    f->flowing = true;
    push(k, &(struct share){k->v + bytes * 8, k->seq++, f->gen, sender});
    schedule(l, link);
}

void ep_links_cancel(struct ep_links *l, size_t sender)
{
    struct flow *f = &l->flow[sender];

    if (!f->busy)
        return;
    f->busy = false;
    f->gen++;
    if (!f->flowing)
        return;
    f->flowing = false;
    advance(&l->link[f->link], l->clock->now);
    l->link[f->link].flows--;
    schedule(l, f->link);
}

bool ep_links_arrived(struct ep_links *l, const struct ep_vevent *e)
{
    struct flow *f = &l->flow[e->id];

    if (e->gen != f->gen)
        return false;
    f->busy = false;
    f->gen++;
    l->link[f->link].bytes += f->bytes;
    if (l->link[f->link].between)
        l->between += f->bytes;
    else
        l->inside += f->bytes;
    return true;
}

void ep_links_bytes(const struct ep_links *l, double *between, double *inside)
{
    *between = l->between;
    *inside = l->inside;
}

double ep_links_busiest(const struct ep_links *l, size_t *from, size_t *to)
{
    size_t n = l->config.nregions;
    double most = 0;

    *from = *to = 0;
    for (size_t i = 0; i < l->nlinks; i++) {
        double seconds = l->link[i].bytes * 8 / l->link[i].bits_s;

        if (seconds <= most)
            continue;
        most = seconds;
        *from = i < n * n ? i / n : i - n * n;
        *to = i < n * n ? i % n : i - n * n;
    }
    return most;
}

void ep_links_credit(struct ep_links *l, double between, double inside)
{
    l->between += between;
    l->inside += inside;
}

/* ==== Rings ==== */

/*
 * Is there a Hamiltonian cycle over links at least as wide as least? Held and
 * Karp's way: ends[S] are the regions at which a path from 0 through all of S
 * can end.
 */
static bool has_ring(const double *gbit_s, size_t n, double least,
                     uint16_t *ends)
{
    uint16_t into[EP_LINKS_REGIONS] = {0}; /* from where a region is reached */
    size_t full = ((size_t)1 << n) - 1;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (i != j && gbit_s[i * n + j] >= least)
                into[j] |= (uint16_t)(1u << i);
    memset(ends, 0, (full + 1) * sizeof *ends);
    ends[1] = 1;
    for (size_t s = 3; s <= full; s += 2)
        for (size_t j = 1; j < n; j++)
            if (s >> j & 1 && ends[s & ~((size_t)1 << j)] & into[j])
                ends[s] |= (uint16_t)(1u << j);
    return ends[full] & into[0];
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

double ep_ring_narrowest(const double *gbit_s, size_t n)
{
    double widths[EP_LINKS_REGIONS * EP_LINKS_REGIONS];
    size_t lo = 0, hi = 0; /* widths[lo] has a ring, widths[hi] has none */
    uint16_t *ends;

    if (n < 2)
        return (double)INFINITY;
    for (size_t i = 0; i < n * n; i++)
        if (i % (n + 1))
            widths[hi++] = gbit_s[i];
    qsort(widths, hi, sizeof *widths, by_size);
    ends = ep_calloc((size_t)1 << n, sizeof *ends);
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;

        if (has_ring(gbit_s, n, widths[mid], ends))
            lo = mid;
        else
            hi = mid;
    }
    free(ends);
    return widths[lo];
}

double ep_links_allreduce(const struct ep_links *l, const size_t *workers,
                          double bytes, double *between, double *inside)
{
    size_t n = l->config.nregions, all = 0;
    double narrowest = ep_ring_narrowest(l->config.gbit_s, n), each;

    for (size_t r = 0; r < n; r++) {
        double own = l->config.gbit_s[r * n + r];

        all += workers[r];
        if (workers[r] > 1 && own < narrowest)
            narrowest = own;
    }
    *between = *inside = 0;
    if (all < 2)
        return 0;
    each = 2 * (double)(all - 1) / (double)all * bytes;
    *between = n > 1 ? (double)n * each : 0;
    *inside = (double)all * each - *between;
    return each * 8 / (1e9 * narrowest) +
           2 * (double)(all - 1) * l->config.latency;
}
