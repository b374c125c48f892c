/* SPDX-License-Identifier: Apache-2.0 */
/* pairs_fit.c - the set of faults with the least J; see pairs.h. */
#include "config.h"

#include "base/mem.h"
#include "base/stats.h"
#include "detect/pairs_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 6       /* of a fit that is repeated */
#define REPLACE_MAX 64 /* faults that are each tried against all others */
#define PASSES 4
#define ADD_MAX 1024 /* times that faults are added */

/* ==== Lists ==== */

/* From counts in at[i + 1] to where each begins. */
static void add_up(uint32_t *at, uint32_t keys)
{
    for (uint32_t i = 0; i < keys; i++)
        at[i + 1] += at[i];
}

/* Lists of measurements by key[e]; those with key UINT32_MAX are in none. */
static struct pair_lists make_lists(const uint32_t *key, uint32_t n,
                                    uint32_t keys)
{
    struct pair_lists l = {ep_calloc((size_t)keys + 2, sizeof *l.at),
                           ep_calloc(n ? n : 1, sizeof *l.list)};

    /* at[k + 2] counts; at[k + 1] is where the next one of k goes */
    for (uint32_t e = 0; e < n; e++)
        if (key[e] != UINT32_MAX)
            l.at[key[e] + 2]++;
    add_up(l.at + 1, keys);
    for (uint32_t e = 0; e < n; e++)
        if (key[e] != UINT32_MAX)
            l.list[l.at[key[e] + 1]++] = e;
    return l;
}

struct ends {
    uint32_t a, b, e;
};

static int by_ends(const void *x, const void *y)
{
    const struct ends *p = x, *q = y;

    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    return (p->b > q->b) - (p->b < q->b);
}

/* Numbers of the links, in the order of their ends, into key. */
static uint32_t number_links(const struct pair_model *s, uint32_t *key)
{
    struct ends *v = ep_calloc(s->n ? s->n : 1, sizeof *v);
    uint32_t links = 0;

    for (uint32_t e = 0; e < s->n; e++) {
        uint32_t i = s->v[e].src, j = s->v[e].dst;

        v[e] = (struct ends){i < j ? i : j, i < j ? j : i, e};
    }
    qsort(v, s->n, sizeof *v, by_ends);
    for (uint32_t k = 0; k < s->n; k++) {
        links += k == 0 || by_ends(&v[k], &v[k - 1]) != 0;
        key[v[k].e] = links - 1;
    }
    free(v);
    return links;
}

void ep_pair_lists_make(struct pair_model *s)
{
    uint32_t *key = ep_calloc(s->n ? s->n : 1, sizeof *key);

    for (uint32_t e = 0; e < s->n; e++)
        key[e] = s->v[e].src;
    s->out = make_lists(key, s->n, s->ends);
    for (uint32_t e = 0; e < s->n; e++)
        key[e] = s->v[e].dst;
    s->in = make_lists(key, s->n, s->ends);
    for (uint32_t e = 0; e < s->n; e++)
        key[e] = isnan(s->v[e].ref) ? UINT32_MAX : s->v[e].cls;
    s->cls = make_lists(key, s->n, s->classes);
    s->pairs = number_links(s, key);
    s->pair = make_lists(key, s->n, s->pairs);
    free(key);
}

void ep_pair_lists_free(struct pair_model *s)
{
    struct pair_lists *all[] = {&s->out, &s->in, &s->pair, &s->cls};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        free(all[i]->at);
        free(all[i]->list);
    }
}

/* The list of a key. */
static uint32_t list_of(const struct pair_lists *l, uint32_t key,
                        const uint32_t **list)
{
    *list = l->list + l->at[key];
    return l->at[key + 1] - l->at[key];
}

/* The number of the link between two ends, of which it is known to be. */
static uint32_t link_of(const struct pair_model *s, uint32_t a, uint32_t b)
{
    uint32_t lo = 0, hi = s->pairs - 1;
    struct ends want = {a < b ? a : b, a < b ? b : a, 0};

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        const struct ep_pair *x = &s->v[s->pair.list[s->pair.at[mid]]];
        struct ends is = {x->src < x->dst ? x->src : x->dst,
                          x->src < x->dst ? x->dst : x->src, 0};

        if (by_ends(&is, &want) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* ==== Things ==== */

double ep_pair_price(const struct pair_model *s, enum ep_pairs_kind kind)
{
    static const double price[] = {
        [EP_PAIRS_END] = 0.75,     [EP_PAIRS_SENDS] = 0.8,
        [EP_PAIRS_RECEIVES] = 0.8, [EP_PAIRS_LINK] = 0.5,
        [EP_PAIRS_WAY] = 0.55,     [EP_PAIRS_ALL] = 1.1,
    };

    return price[kind] * s->T;
}

uint32_t ep_pair_cover(struct pair_model *s, const struct ep_pairs_thing *t,
                       const uint32_t **list)
{
    const uint32_t *part;
    uint32_t n, k = 0;

    switch (t->kind) {
    case EP_PAIRS_SENDS:
        return list_of(&s->out, t->a, list);
    case EP_PAIRS_RECEIVES:
        return list_of(&s->in, t->a, list);
    case EP_PAIRS_LINK:
        return list_of(&s->pair, link_of(s, t->a, t->b), list);
    case EP_PAIRS_ALL:
        return list_of(&s->cls, t->a, list);
    case EP_PAIRS_WAY:
        n = list_of(&s->pair, link_of(s, t->a, t->b), &part);
        for (uint32_t i = 0; i < n; i++)
            if (s->v[part[i]].src == t->a)
                s->some[k++] = part[i];
        *list = s->some;
        return k;
    case EP_PAIRS_END:
        k = list_of(&s->out, t->a, &part);
        memcpy(s->some, part, k * sizeof *part);
        n = list_of(&s->in, t->a, &part);
        memcpy(s->some + k, part, n * sizeof *part);
        *list = s->some;
        return k + n;
    }
    return 0;
}

/* Mean of those of r that x explains, weighed; x itself if none. */
static double refine(const struct pair_model *s, const uint32_t *list,
                     uint32_t n, double x)
{
    double sum = 0, weight = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t e = list[i];
        double z = (s->r[e] - x) / s->sigma[e];

        if (z * z < 2 * s->T) {
            double w = 1 / (s->sigma[e] * s->sigma[e]);

            sum += w * s->r[e];
            weight += w;
        }
    }
    return weight > 0 ? sum / weight : x;
}

double ep_pair_fit(struct pair_model *s, const struct ep_pairs_thing *t,
                   double *x)
{
    const uint32_t *list;
    uint32_t n = ep_pair_cover(s, t, &list);
    double least = 0, gain = 0;

    if (!n)
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        s->room[i] = s->r[list[i]];
        least = fmax(least, s->least[list[i]]);
    }
    *x = ep_median(s->room, n);
    for (int i = 0; i < ROUNDS; i++) {
        double was = *x;

        *x = refine(s, list, n, was);
        if (fabs(*x - was) < 1e-12)
            break;
    }
    if (!(*x >= least - 1e-12))
        return 0;
    for (uint32_t i = 0; i < n; i++)
        gain += ep_pair_loss(s, list[i], s->r[list[i]]) -
                ep_pair_loss(s, list[i], s->r[list[i]] - *x);
    return gain;
}

static void offer(struct pair_model *s, const struct ep_pairs_thing *t,
                  void (*fn)(void *ctx, const struct pair_fault *f), void *ctx)
{
    struct pair_fault f = {*t, 0, 0};

    f.gain = ep_pair_fit(s, t, &f.x);
    if (f.gain > 0)
        fn(ctx, &f);
}

void ep_pair_scan(struct pair_model *s,
                  void (*fn)(void *ctx, const struct pair_fault *f), void *ctx)
{
    const uint32_t *list;

    for (uint32_t i = 0; i < s->ends; i++)
        for (int kind = EP_PAIRS_END; kind <= EP_PAIRS_RECEIVES; kind++)
            offer(s, &(struct ep_pairs_thing){(enum ep_pairs_kind)kind, i, 0},
                  fn, ctx);
    for (uint32_t k = 0; k < s->pairs; k++) {
        uint32_t n = list_of(&s->pair, k, &list);
        uint32_t i = s->v[list[0]].src, j = s->v[list[0]].dst;
        bool both = false;

        for (uint32_t q = 1; q < n && !both; q++)
            both = s->v[list[q]].src != i;
        offer(s,
              &(struct ep_pairs_thing){EP_PAIRS_LINK, i < j ? i : j,
                                       i < j ? j : i},
              fn, ctx);
        if (!both)
            continue;
        offer(s, &(struct ep_pairs_thing){EP_PAIRS_WAY, i, j}, fn, ctx);
        offer(s, &(struct ep_pairs_thing){EP_PAIRS_WAY, j, i}, fn, ctx);
    }
    for (uint32_t c = 0; c < s->classes; c++)
        offer(s, &(struct ep_pairs_thing){EP_PAIRS_ALL, c, 0}, fn, ctx);
}

void ep_pair_apply(struct pair_model *s, const struct pair_fault *f, int sign)
{
    const uint32_t *list;
    uint32_t n = ep_pair_cover(s, &f->what, &list);

    for (uint32_t i = 0; i < n; i++)
        s->r[list[i]] -= sign * f->x;
}

/* ==== Search ==== */

struct search {
    struct pair_model *s;
    struct pair_fault best;
    double net; /* gain of best less its price */
    /* links that are worth their price: many are taken at once */
    struct pair_fault *links;
    size_t nlinks, cap;
    bool *blamed; /* [ends] that would be worth their price too */
};

static void consider(void *ctx, const struct pair_fault *f)
{
    struct search *a = ctx;
    double net = f->gain - ep_pair_price(a->s, f->what.kind);

    if (net > a->net) {
        a->net = net;
        a->best = *f;
    }
    if (net > 0 && f->what.kind <= EP_PAIRS_RECEIVES)
        a->blamed[f->what.a] = true;
    if (net > 0 && f->what.kind == EP_PAIRS_LINK) {
        a->links = ep_grow(a->links, &a->cap, a->nlinks + 1, sizeof *a->links);
        a->links[a->nlinks++] = *f;
    }
}

static bool same(const struct ep_pairs_thing *x, const struct ep_pairs_thing *y)
{
    return x->kind == y->kind && x->a == y->a && x->b == y->b;
}

static void add_fault(struct pair_model *s, const struct pair_fault *f)
{
    ep_pair_apply(s, f, 1);
    s->fault = ep_grow(s->fault, &s->cap, s->nfault + 1, sizeof *s->fault);
    s->fault[s->nfault++] = *f;
}

/* Constants and sizes once more, each with all others as they are. */
static void refit(struct pair_model *s)
{
    for (size_t i = 0; i < s->nfault && s->nfault <= REPLACE_MAX; i++) {
        struct pair_fault *f = &s->fault[i], was = *f;

        ep_pair_apply(s, f, -1);
        f->gain = ep_pair_fit(s, &f->what, &f->x);
        if (!(f->gain > 0))
            f->x = was.x;
        ep_pair_apply(s, f, 1);
    }
}

static bool add_best(struct pair_model *s, struct search *a)
{
    a->net = 0;
    a->nlinks = 0;
    memset(a->blamed, 0, s->ends * sizeof *a->blamed);
    ep_pair_scan(s, consider, a);
    if (!(a->net > 0))
        return false;
    add_fault(s, &a->best);
    /* more of the kind, of which no end could be the reason */
    for (size_t i = 0; i < a->nlinks; i++) {
        const struct ep_pairs_thing *t = &a->links[i].what;

        if (a->best.what.kind == EP_PAIRS_LINK && !a->blamed[t->a] &&
            !a->blamed[t->b] && !same(t, &a->best.what))
            add_fault(s, &a->links[i]);
    }
    refit(s);
    return true;
}

/* Try each fault against all others, and against none. */
static bool replace(struct pair_model *s, struct search *a)
{
    bool changed = false;

    for (size_t i = 0; i < s->nfault && s->nfault <= REPLACE_MAX;) {
        struct pair_fault was = s->fault[i];
        double net;

        ep_pair_apply(s, &was, -1);
        was.gain = ep_pair_fit(s, &was.what, &was.x);
        net = was.gain - ep_pair_price(s, was.what.kind);
        a->net = fmax(net, 0) + 1e-9 * s->T;
        a->best = was;
        a->nlinks = 0;
        ep_pair_scan(s, consider, a);
        if (same(&a->best.what, &was.what) && !(net > 0)) {
            memmove(&s->fault[i], &s->fault[i + 1],
                    (--s->nfault - i) * sizeof *s->fault);
            changed = true;
            continue;
        }
        changed |= !same(&a->best.what, &was.what);
        s->fault[i] = a->best;
        ep_pair_apply(s, &s->fault[i++], 1);
    }
    refit(s);
    return changed;
}

double ep_pair_search(struct pair_model *s)
{
    struct search a = {.s = s, .blamed = ep_calloc(s->ends, sizeof(bool))};
    double j = 0;

    for (int left = ADD_MAX; left > 0 && add_best(s, &a); left--)
        ;
    for (int pass = 0; pass < PASSES && s->nfault && replace(s, &a); pass++)
        while (s->nfault < ADD_MAX && add_best(s, &a))
            ;
    for (uint32_t e = 0; e < s->n; e++)
        j += ep_pair_loss(s, e, s->r[e]);
    for (size_t i = 0; i < s->nfault; i++)
        j += ep_pair_price(s, s->fault[i].what.kind);
    free(a.links);
    free(a.blamed);
    return j;
}
