/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comms_locate.c - hypotheses and which explains the evidence best; comms.h has
 * the equations. Of a hypothesis only the sums over its set are kept, sum y / se^2
 * and sum 1 / se^2, and a sum of hashes that tells equal sets.
 *
 * A priori each kind of hypothesis (link; host; group; all; none) is about as
 * likely as another, and shares that among its members: many hypotheses need
 * more evidence. A group alone is ten times less likely: it has to be
 * something that hits neither a link nor a host as a whole, such as one rail.
 */
#include "config.h"

#include "detect/comms_trial.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

static const double sure = 0.98; /* of what is named */
static const double factor_max = 100;
enum { FULL = 128 }; /* ranks of which all pairs are looked at */

/* ==== Sets ==== */

static uint32_t add_hypothesis(struct trial *t, enum kind kind, int32_t a,
                               int32_t b)
{
    t->h = ep_grow(t->h, &t->cap, t->nh + 1, sizeof *t->h);
    t->h[t->nh++] = (struct hypothesis){.kind = kind, .a = a, .b = b};
    return (uint32_t)t->nh;
}

static uint64_t scatter(uint64_t x)
{
    x = (x ^ x >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ x >> 32;
}

static void grow_links(struct trial *t)
{
    uint32_t *old = t->table;
    size_t was = t->slots;

    if (2 * (t->links + 1) <= was)
        return;
    t->slots = was ? 2 * was : 256;
    t->table = ep_calloc(t->slots, sizeof *t->table);
    for (size_t i = 0; i < was; i++)
        if (old[i]) {
            const struct hypothesis *h = &t->h[old[i] - 1];
            size_t at =
                scatter((uint64_t)h->a << 32 | (uint32_t)h->b) & (t->slots - 1);

            while (t->table[at])
                at = (at + 1) & (t->slots - 1);
            t->table[at] = old[i];
        }
    free(old);
}

static uint32_t link_of(struct trial *t, int32_t a, int32_t b)
{
    int32_t lo = a < b ? a : b, hi = a < b ? b : a;
    size_t at;

    grow_links(t);
    at = scatter((uint64_t)lo << 32 | (uint32_t)hi) & (t->slots - 1);
    for (; t->table[at]; at = (at + 1) & (t->slots - 1)) {
        const struct hypothesis *h = &t->h[t->table[at] - 1];

        if (h->a == lo && h->b == hi)
            return t->table[at];
    }
    t->links++;
    t->table[at] = add_hypothesis(t, LINK, lo, hi);
    return t->table[at];
}

static uint32_t node_of(struct trial *t, uint32_t *of, enum kind kind,
                        int32_t node)
{
    if (!of[node])
        of[node] = add_hypothesis(t, kind, node, -1);
    return of[node];
}

/* Series i is of the set, once. */
static void belongs(struct trial *t, uint32_t number, size_t i)
{
    struct hypothesis *h = &t->h[number - 1];

    if (h->stamp == i + 1)
        return;
    h->stamp = i + 1;
    h->wy += t->e[i].w * t->e[i].y;
    h->w += t->e[i].w;
    h->set += scatter(i + 1);
    h->n++;
    t->in = ep_grow(t->in, &t->in_cap, t->nin + 1, sizeof *t->in);
    t->in[t->nin++] = number;
}

static int32_t node(const struct trial *t, const struct comms_member *m)
{
    return t->hosts ? comms_host(m) : m->rank;
}

/* Series i goes from p to q. */
static void cross(struct trial *t, size_t i, const struct comms_member *p,
                  const struct comms_member *q)
{
    int32_t a, b;

    if (!p || !q)
        return;
    a = node(t, p);
    b = node(t, q);
    if (a < 0 || b < 0 || a == b)
        return;
    belongs(t, link_of(t, a, b), i);
    belongs(t, node_of(t, t->node, NODE, a), i);
    belongs(t, node_of(t, t->node, NODE, b), i);
}

static void cross_group(struct trial *t, size_t i, const struct comms_group *g)
{
    struct comms_member *const *m = g->member;
    /* comm_ranks are 0..nranks-1; without it, as many as were heard */
    size_t n = g->nranks > 0 && (size_t)g->nranks > g->cap ? g->cap
               : g->nranks > 0                             ? (size_t)g->nranks
                                                           : g->n;

    if (n > g->cap)
        n = g->cap;
    for (size_t d = 0; d + 1 < n; d++)
        cross(t, i, m[d], m[d + 1]);
    if (n > 2 && (g->nranks < 0 || (size_t)g->nranks == n))
        cross(t, i, m[n - 1], m[0]);
    if (!g->full || n > FULL)
        return;
    for (size_t d = 0; d < n; d++)
        for (size_t k = d + 1; k < n; k++)
            cross(t, i, m[d], m[k]);
}

/* A host all ends are on; -1 if there is none. */
static int32_t only_host(const struct comms_track *t)
{
    const struct comms_group *g = t->group;

    for (size_t i = t->src < 0 ? 0 : (size_t)t->src; i < g->cap; i++)
        if (g->member[i])
            return comms_host(g->member[i]);
    return -1;
}

static void add_series(struct trial *t, size_t i)
{
    const struct comms_evidence *e = &t->e[i];
    const struct comms_group *g = e->track->group;
    int32_t src = e->track->src, dst = e->track->dst;

    if (!(e->w > 0))
        return;
    belongs(t, add_hypothesis(t, GROUP, (int32_t)i, -1), i);
    if (e->remote)
        belongs(t, t->all, i);
    if (t->hosts && !e->remote) {
        int32_t host = only_host(e->track);

        if (host >= 0)
            belongs(t, node_of(t, t->inside, INSIDE, host), i);
        return;
    }
    if (src < 0)
        cross_group(t, i, g);
    else if ((size_t)src < g->cap && (size_t)dst < g->cap)
        cross(t, i, g->member[src], g->member[dst]);
}

/* ==== Likelihood ==== */

static void weigh(struct trial *t)
{
    static const double prior[KINDS] = {
        [LINK] = 1, [NODE] = 1, [INSIDE] = 0.3, [GROUP] = 0.1, [ALL] = 0.3};
    double count[KINDS] = {0};

    for (size_t k = 0; k < t->nh; k++)
        count[t->h[k].kind] += t->h[k].n > 0;
    for (size_t k = 0; k < t->nh; k++) {
        struct hypothesis *h = &t->h[k];

        if (!h->n)
            continue;
        h->phi = fmax(t->least, fmin(log(factor_max), h->wy / h->w));
        h->gain = h->phi * h->wy - h->phi * h->phi / 2 * h->w +
                  log(prior[h->kind] / count[h->kind]);
    }
}

/* The best of those that can be named; all that have its set go with it. */
static const struct hypothesis *best_of(struct trial *t, double *p)
{
    const struct hypothesis *best = NULL;
    double sum, same = 0;

    for (size_t k = 0; k < t->nh; k++)
        if (t->h[k].n && (!best || t->h[k].gain > best->gain))
            best = &t->h[k];
    if (!best || !(best->gain > 0))
        return NULL;
    sum = exp(-best->gain); /* none */
    for (size_t k = 0; k < t->nh; k++) {
        struct hypothesis *h = &t->h[k];

        if (!h->n)
            continue;
        h->weight = exp(h->gain - best->gain);
        sum += h->weight;
        if (h->set == best->set && h->n == best->n)
            same += h->weight;
    }
    *p = same / sum;
    return best;
}

static size_t hosts_in_use(const struct comms_job *j)
{
    int32_t first = -1;

    for (size_t i = 0; i < j->ranks; i++) {
        int32_t h = j->rank[i] ? j->rank[i]->host : -1;

        if (h >= 0 && first >= 0 && h != first)
            return 2;
        first = h >= 0 ? h : first;
    }
    return first >= 0;
}

static void set_up(struct trial *t, const struct comms_job *j)
{
    size_t nodes;

    t->job = j;
    t->hosts = hosts_in_use(j) > 1;
    nodes = t->hosts ? ep_intern_count(j->hosts) : j->ranks;
    t->node = ep_calloc(nodes + 1, sizeof *t->node);
    t->inside = ep_calloc(nodes + 1, sizeof *t->inside);
    t->until = ep_calloc(t->n + 1, sizeof *t->until);
    t->all = add_hypothesis(t, ALL, -1, -1);
    for (size_t i = 0; i < t->n; i++) {
        add_series(t, i);
        t->until[i] = t->nin;
    }
}

static void tear_down(struct trial *t)
{
    free(t->h);
    free(t->table);
    free(t->node);
    free(t->inside);
    free(t->in);
    free(t->until);
}

/* What a series of the set takes more; the most of each sort, together. */
static double lost(const struct trial *t, const struct hypothesis *best)
{
    double most[2] = {0, 0};

    for (size_t i = 0, k = 0; i < t->n; i++) {
        const struct comms_evidence *e = &t->e[i];
        double ref = t->classes ? 0 : comms_main(e->track)->ref;
        bool pair = e->track->src >= 0, in = false;

        for (; k < t->until[i]; k++)
            in = in || t->in[k] == (uint32_t)(best - t->h) + 1;
        if (in && e->w > 0)
            most[pair] = fmax(most[pair], e->nsince * (exp(ref + e->since) -
                                                       exp(ref + e->before)));
    }
    return most[0] + most[1];
}

static bool locate(const struct comms_job *j, double since,
                   struct ep_comms_place *out)
{
    struct trial t = {0};
    const struct hypothesis *best;
    double classes;
    bool found;
    struct comms_evidence *e = comms_gather(j, since, &t.n, &classes);

    t.e = e;
    t.least = fmax(j->all->least, classes);
    t.classes = classes > 0;
    set_up(&t, j);
    weigh(&t);
    best = best_of(&t, &out->p);
    found = best && out->p >= sure && comms_name(&t, best, out);
    if (found) {
        out->factor = exp(best->phi);
        out->lost = lost(&t, best);
        comms_explain(&t, best, classes > 0, out);
    }
    tear_down(&t);
    free(e);
    return found;
}

bool ep_comms_locate(struct ep_comms *c, struct ep_span job, double since_ts,
                     struct ep_comms_place *out)
{
    const struct comms_job *j = comms_job(c, job);

    *out = (struct ep_comms_place){.rank = -1};
    if (!j)
        return false;
    return locate(j, since_ts, out) || comms_locate_late(c, j, since_ts, out);
}
