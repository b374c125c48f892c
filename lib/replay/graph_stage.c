/* SPDX-License-Identifier: Apache-2.0 */
/* graph_stage.c - what waits for what within a stage; see graph.h. */
#include "config.h"

#include "base/mem.h"
#include "replay/graph_impl.h"

#include <stdlib.h>

#define EPSILON 5e-5 /* s */

/* A computation waits for its receive, that for the computation before; a
   send waits for its computation. */
static void tie_messages(struct ep_graph_maker *m, struct ep_graph_stage *s,
                         enum ep_op_role dir, enum ep_op_role send,
                         enum ep_op_role recv)
{
    const struct ep_graph_list *of = &s->role[dir];

    for (size_t i = 0; i < of->n; i++) {
        uint32_t out = s->of[send].v[i], in = s->of[recv].v[i];

        if (out != EP_GRAPH_NONE)
            ep_graph_edge(m, of->v[i], out);
        if (in == EP_GRAPH_NONE)
            continue;
        ep_graph_edge(m, in, of->v[i]);
        if (i > 0)
            ep_graph_edge(m, of->v[i - 1], in);
    }
}

/* The first of a stream that carries something; EP_GRAPH_NONE. */
static uint32_t first_of(const struct ep_graph_maker *m,
                         const struct ep_graph_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (!m->g->skip[l->v[i]])
            return l->v[i];
    return EP_GRAPH_NONE;
}

static void chain_stream(struct ep_graph_maker *m,
                         const struct ep_graph_list *l)
{
    uint32_t last = EP_GRAPH_NONE;

    for (size_t i = 0; i < l->n; i++) {
        if (m->g->skip[l->v[i]])
            continue;
        if (last != EP_GRAPH_NONE)
            ep_graph_edge(m, last, l->v[i]);
        last = l->v[i];
    }
}

/* The first backward send and receive wait for the last but one of the
   forward computations before the first backward one. */
static void tie_first_backward(struct ep_graph_maker *m,
                               struct ep_graph_stage *s)
{
    static const enum ep_op_role roles[] = {EP_OP_BACKWARD_SEND,
                                            EP_OP_BACKWARD_RECV};
    uint32_t last = EP_GRAPH_NONE, before = EP_GRAPH_NONE;

    for (size_t i = 0; i < s->chain.n; i++) {
        enum ep_op_role r = ep_graph_at(m, s->chain.v[i])->role;

        if (r == EP_OP_BACKWARD)
            break;
        if (r != EP_OP_FORWARD)
            continue;
        before = last;
        last = s->chain.v[i];
    }
    for (size_t k = 0; k < 2 && before != EP_GRAPH_NONE; k++) {
        uint32_t v = first_of(m, &s->role[roles[k]]);

        if (v != EP_GRAPH_NONE)
            ep_graph_edge(m, before, v);
    }
}

static int32_t chunk_of(const struct ep_graph_maker *m, uint32_t v)
{
    int32_t chunk = ep_graph_at(m, v)->chunk;

    return chunk < 0 ? 0 : chunk;
}

/* Gathering and reduction, in one chain by start: both lists are in order. */
static void chain_dp(struct ep_graph_maker *m, struct ep_graph_stage *s)
{
    const struct ep_graph_list *a = &s->role[EP_OP_PARAMS],
                               *b = &s->role[EP_OP_REDUCE];
    uint32_t last = EP_GRAPH_NONE;
    size_t i = 0, j = 0;

    while (i < a->n || j < b->n) {
        bool first =
            j >= b->n || (i < a->n && ep_graph_at(m, a->v[i])->start <=
                                          ep_graph_at(m, b->v[j])->start);
        uint32_t v = first ? a->v[i++] : b->v[j++];

        if (last != EP_GRAPH_NONE)
            ep_graph_edge(m, last, v);
        last = v;
    }
}

/* Per chunk the first (or last) of a list, EP_GRAPH_NONE for none. */
static uint32_t *by_chunk(const struct ep_graph_maker *m,
                          const struct ep_graph_list *l, bool last)
{
    uint32_t *of = ep_calloc(m->vpp, sizeof *of);

    for (size_t c = 0; c < m->vpp; c++)
        of[c] = EP_GRAPH_NONE;
    for (size_t i = 0; i < l->n; i++) {
        size_t chunk = (size_t)chunk_of(m, l->v[i]);

        if (chunk < m->vpp && (last || of[chunk] == EP_GRAPH_NONE))
            of[chunk] = l->v[i];
    }
    return of;
}

/* In each chunk, one of a list waits for one of another. */
static void tie_chunks(struct ep_graph_maker *m,
                       const struct ep_graph_list *from, bool last_from,
                       const struct ep_graph_list *to, bool last_to)
{
    uint32_t *a = by_chunk(m, from, last_from), *b = by_chunk(m, to, last_to);

    for (size_t c = 0; c < m->vpp; c++)
        if (a[c] != EP_GRAPH_NONE && b[c] != EP_GRAPH_NONE)
            ep_graph_edge(m, a[c], b[c]);
    free(a);
    free(b);
}

/* Behind the last computation, one after the other. */
static void chain_tail(struct ep_graph_maker *m, struct ep_graph_stage *s)
{
    static const enum ep_op_role roles[] = {
        EP_OP_GC,       EP_OP_LAYERNORM, EP_OP_EMBEDDING, EP_OP_REDUCE,
        EP_OP_SEPARATE, EP_OP_CLIP,      EP_OP_OPTIMIZER};
    const struct ep_graph_list *rs = &s->role[EP_OP_REDUCE];
    uint32_t last = s->chain.v[s->chain.n - 1];
    uint32_t reduced = EP_GRAPH_NONE;

    if (m->overlapped && rs->n)
        reduced = rs->v[rs->n - 1];
    for (size_t k = 0; k < sizeof roles / sizeof roles[0]; k++) {
        const struct ep_graph_list *l = &s->role[roles[k]];

        if (roles[k] == EP_OP_REDUCE && m->overlapped)
            continue;
        for (size_t i = 0; i < l->n; i++) {
            ep_graph_edge(m, last, l->v[i]);
            last = l->v[i];
            if (reduced != EP_GRAPH_NONE && roles[k] != EP_OP_GC) {
                ep_graph_edge(m, reduced, l->v[i]);
                reduced = EP_GRAPH_NONE;
            }
        }
    }
}

/* gc in the midst of computation takes its turn there. */
static void place_gc(struct ep_graph_maker *m, struct ep_graph_stage *s)
{
    struct ep_graph_list *gc = &s->role[EP_OP_GC];
    struct ep_graph_list chain = {.n = 0};
    size_t i = 0;

    for (size_t k = 0; k < s->chain.n; k++) {
        while (i < gc->n && ep_graph_at(m, gc->v[i])->start <
                                ep_graph_at(m, s->chain.v[k])->start)
            ep_graph_add(&chain, gc->v[i++]);
        ep_graph_add(&chain, s->chain.v[k]);
    }
    free(s->chain.v);
    s->chain = chain;
    for (size_t k = i; k < gc->n; k++)
        gc->v[k - i] = gc->v[k];
    gc->n -= i;
}

/* Is gradient reduction taken out of the tail? */
static bool is_overlapped(const struct ep_graph_maker *m,
                          const struct ep_graph_stage *s)
{
    const struct ep_graph_list *rs = &s->role[EP_OP_REDUCE];
    const struct ep_graph_list *gc = &s->role[EP_OP_GC];
    const struct ep_graph_op *last =
        ep_graph_at(m, gc->n ? gc->v[gc->n - 1] : s->chain.v[s->chain.n - 1]);
    double begins;

    if (s->role[EP_OP_SEPARATE].n)
        return true;
    if (!rs->n)
        return false;
    begins = ep_graph_at(m, rs->v[0])->start + EPSILON;
    if (begins < last->start + last->dur)
        return true;
    for (int r = EP_OP_LAYERNORM; r <= (int)EP_OP_EMBEDDING; r++)
        if (s->role[r].n && begins < ep_graph_at(m, s->role[r].v[0])->start)
            return true;
    return false;
}

static void order_stage(struct ep_graph_maker *m, struct ep_graph_stage *s)
{
    ep_graph_chain(m, &s->chain);
    for (int r = EP_OP_FORWARD_SEND; r <= (int)EP_OP_BACKWARD_RECV; r++)
        chain_stream(m, &s->role[r]);
    tie_messages(m, s, EP_OP_FORWARD, EP_OP_FORWARD_SEND, EP_OP_FORWARD_RECV);
    tie_messages(m, s, EP_OP_BACKWARD, EP_OP_BACKWARD_SEND,
                 EP_OP_BACKWARD_RECV);
    tie_first_backward(m, s);
    chain_dp(m, s);
    /* the first forward computation waits for the last gathering, the first
       reduction for the last backward computation */
    tie_chunks(m, &s->role[EP_OP_PARAMS], true, &s->role[EP_OP_FORWARD], false);
    if (m->overlapped)
        tie_chunks(m, &s->role[EP_OP_BACKWARD], true, &s->role[EP_OP_REDUCE],
                   false);
    chain_tail(m, s);
}

int ep_graph_order_stages(struct ep_graph_maker *m)
{
    for (size_t i = 0; i < m->dp * m->pp; i++) {
        struct ep_graph_stage *s = &m->stage[i];

        if (!s->chain.n)
            return ep_graph_refuse(m, "dp=%d,pp=%d has no computation", s->dp,
                                   s->pp);
        if (!s->role[EP_OP_OPTIMIZER].n)
            return ep_graph_refuse(m, "dp=%d,pp=%d has no %s", s->dp, s->pp,
                                   ep_op_role_name(EP_OP_OPTIMIZER));
        place_gc(m, s);
        m->overlapped = m->overlapped || is_overlapped(m, s);
    }
    for (size_t i = 0; i < m->dp * m->pp; i++)
        order_stage(m, &m->stage[i]);
    return 0;
}
