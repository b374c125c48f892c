/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comms_names.c - what the hypothesis that explains best is called, and why: if
 * several have the same set, what holds under each of them; see comms.h.
 */
#include "config.h"

#include "detect/comms_trial.h"

#include "base/num.h"

#include <math.h>

enum { NAMED = 8 }; /* candidates that are listed */

/* What ties with the best: links, nodes. */
struct tie {
    const struct hypothesis *link, *node, *inside, *group; /* the first */
    size_t links, nodes;
    int32_t
        common; /* the node of all links, with which no other node ties; -1 */
};

static void tie_link(struct tie *tie, const struct hypothesis *h)
{
    if (!tie->links++) {
        tie->link = h;
        return;
    }
    if (tie->links == 2) {
        const struct hypothesis *f = tie->link;

        tie->common = h->a == f->a || h->a == f->b   ? h->a
                      : h->b == f->a || h->b == f->b ? h->b
                                                     : -1;
    } else if (tie->common != h->a && tie->common != h->b) {
        tie->common = -1;
    }
}

static struct tie find_tie(const struct trial *t, const struct hypothesis *best)
{
    struct tie tie = {.common = -1};

    for (size_t k = 0; k < t->nh; k++) {
        const struct hypothesis *h = &t->h[k];

        if (h->set != best->set || h->n != best->n)
            continue;
        if (h->kind == LINK)
            tie_link(&tie, h);
        else if (h->kind == NODE && !tie.nodes++)
            tie.node = h;
        else if (h->kind == INSIDE)
            tie.inside = h;
        else if (h->kind == GROUP)
            tie.group = h;
    }
    for (size_t k = 0; k < t->nh; k++) /* nodes beside the common one? */
        if (t->h[k].kind == NODE && t->h[k].set == best->set &&
            t->h[k].n == best->n && t->h[k].a != tie.common)
            tie.common = -1;
    return tie;
}

/* The evidence of the group of the set that is slower most surely; -1: none. */
static long group_of(const struct trial *t, const struct hypothesis *best)
{
    uint32_t number = (uint32_t)(best - t->h) + 1;
    double most = 0;
    long at = -1;

    for (size_t i = 0, k = 0; i < t->n; i++) {
        double x = t->e[i].w * t->e[i].y;
        bool in = false;

        for (; k < t->until[i]; k++)
            in = in || t->in[k] == number;
        if (in && t->e[i].track->src < 0 && x > most) {
            most = x;
            at = (long)i;
        }
    }
    return at;
}

/* ==== Names ==== */

static void add_node(const struct trial *t, struct ep_buf *b, int32_t n)
{
    if (t->hosts)
        ep_buf_adds(b, ep_intern_name(t->job->hosts, (size_t)n));
    else
        ep_buf_addf(b, "rank%d", (int)n);
}

static void add_time(struct ep_buf *b, const struct comms_evidence *e)
{
    const struct comms_track *t = e->track;
    double ref = e->nbefore > 0 ? comms_main(t)->ref : 0;

    ep_buf_addf(b, " (%.64s", t->group->name);
    if (t->src >= 0)
        ep_buf_addf(b, " %d to %d", (int)t->src, (int)t->dst);
    ep_buf_addc(b, ' ');
    ep_num_format_duration(b, exp(ref + e->before));
    ep_buf_adds(b, " -> ");
    ep_num_format_duration(b, exp(ref + e->since));
    ep_buf_addc(b, ')');
}

/* What the others did, on average. */
static double others(const struct trial *t, const struct hypothesis *best)
{
    double wy = -best->wy, w = -best->w;

    for (size_t i = 0; i < t->n; i++) {
        wy += t->e[i].w * t->e[i].y;
        w += t->e[i].w;
    }
    return w > 0 ? exp(wy / w) : 1;
}

static void add_candidates(const struct trial *t, struct ep_buf *b,
                           const struct hypothesis *best, size_t all)
{
    size_t told = 0;

    for (size_t k = 0; k < t->nh && told < NAMED; k++) {
        const struct hypothesis *h = &t->h[k];

        if (h->set != best->set || h->n != best->n ||
            (h->kind != LINK && h->kind != NODE))
            continue;
        told++;
        ep_buf_adds(b, told == 1 ? "; " : told == all ? " or " : ", ");
        add_node(t, b, h->a);
        if (h->kind == LINK) {
            ep_buf_addc(b, '-');
            add_node(t, b, h->b);
        }
    }
    if (all > told)
        ep_buf_addf(b, " or %zu more", all - told);
    ep_buf_adds(b, ": the calls cannot tell");
}

void comms_explain(const struct trial *t, const struct hypothesis *best,
                   bool classes, struct ep_comms_place *out)
{
    struct ep_buf *b = &t->job->all->text;
    size_t n = 0, show = 0;
    double most = 0;

    ep_buf_reset(b);
    for (size_t i = 0, k = 0; i < t->n; i++) {
        bool in = false;

        n += t->e[i].w > 0;
        for (; k < t->until[i]; k++)
            in = in || t->in[k] == (uint32_t)(best - t->h) + 1;
        if (in && t->e[i].w * t->e[i].y > most) {
            most = t->e[i].w * t->e[i].y;
            show = i;
        }
    }
    ep_buf_addf(b, "%zu of %zu series of transfers cross it: %.2fx", best->n, n,
                out->factor);
    add_time(b, &t->e[show]);
    if (best->n < n)
        ep_buf_addf(b, ", the others %.2fx", others(t, best));
    if (classes)
        ep_buf_adds(b,
                    ", compared with others of their class: no past is known");
    if (out->candidates > 1)
        add_candidates(t, b, best, out->candidates);
    out->evidence = b->ptr;
}

/* ==== Answers ==== */

static void name_link(const struct trial *t, const struct hypothesis *h,
                      struct ep_comms_place *out)
{
    struct ep_buf *b = &t->job->all->id;

    out->scope = EP_SCOPE_LINK;
    ep_buf_adds(b, "src=");
    add_node(t, b, h->a);
    ep_buf_adds(b, ",dst=");
    add_node(t, b, h->b);
}

static void name_node(const struct trial *t, int32_t node,
                      struct ep_comms_place *out)
{
    struct ep_buf *b = &t->job->all->id;

    out->scope = t->hosts ? EP_SCOPE_HOST : EP_SCOPE_RANK;
    if (t->hosts)
        ep_buf_addf(b, "host=%s", ep_intern_name(t->job->hosts, (size_t)node));
    else
        ep_buf_addf(b, "rank=%d", (int)node);
    if (!t->hosts)
        out->rank = node;
}

static bool name_series(const struct trial *t, long i,
                        struct ep_comms_place *out)
{
    struct ep_buf *b = &t->job->all->id;
    const struct comms_track *k;
    const struct comms_group *g;

    if (i < 0)
        return false;
    k = t->e[i].track;
    g = k->group;
    if (k->src < 0) {
        out->scope = EP_SCOPE_GROUP;
        ep_buf_addf(b, "comm=%s", g->name);
        return true;
    }
    if ((size_t)k->src >= g->cap || (size_t)k->dst >= g->cap ||
        !g->member[k->src] || !g->member[k->dst])
        return false;
    out->scope = EP_SCOPE_LINK;
    ep_buf_addf(b, "src=rank%d,dst=rank%d", (int)g->member[k->src]->rank,
                (int)g->member[k->dst]->rank);
    return true;
}

bool comms_name(const struct trial *t, const struct hypothesis *best,
                struct ep_comms_place *out)
{
    struct tie tie = find_tie(t, best);

    ep_buf_reset(&t->job->all->id);
    out->candidates = tie.links + tie.nodes;
    if (tie.links == 1)
        name_link(t, tie.link, out);
    else if (tie.links && tie.common >= 0)
        name_node(t, tie.common, out);
    else if (!tie.links && tie.nodes == 1)
        name_node(t, tie.node->a, out);
    else if (tie.links || tie.nodes) {
        if (!name_series(t, group_of(t, best), out))
            return false;
    } else if (tie.inside) {
        out->candidates = 1;
        name_node(t, tie.inside->a, out);
    } else if (tie.group) {
        out->candidates = 1;
        if (!name_series(t, tie.group->a, out))
            return false;
    } else {
        return false; /* everything */
    }
    out->id = t->job->all->id.ptr;
    return true;
}
