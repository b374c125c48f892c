/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_pairs.c - which send and receive belongs to which computation, and
 * which send to which receive; see graph.h.
 */
#include "config.h"

#include "base/mem.h"
#include "replay/graph_impl.h"

#include <stdlib.h>

/* Clocks within a stage are trusted to this. */
#define EPSILON 5e-5 /* s */

static bool is_send(enum ep_op_role r)
{
    return r == EP_OP_FORWARD_SEND || r == EP_OP_BACKWARD_SEND;
}

static enum ep_op_role direction(enum ep_op_role r)
{
    return r == EP_OP_FORWARD_SEND || r == EP_OP_FORWARD_RECV ? EP_OP_FORWARD
                                                              : EP_OP_BACKWARD;
}

static enum ep_op_role opposite(enum ep_op_role r)
{
    switch (r) {
    case EP_OP_FORWARD_SEND:
        return EP_OP_FORWARD_RECV;
    case EP_OP_FORWARD_RECV:
        return EP_OP_FORWARD_SEND;
    case EP_OP_BACKWARD_SEND:
        return EP_OP_BACKWARD_RECV;
    default:
        return EP_OP_BACKWARD_SEND;
    }
}

/* Does the message go to (or come from) the next stage, or the one before? */
static bool is_downward(enum ep_op_role r)
{
    return r == EP_OP_FORWARD_SEND || r == EP_OP_BACKWARD_RECV;
}

static size_t peer_stage(const struct ep_graph_maker *m, size_t pp,
                         enum ep_op_role r)
{
    return (is_downward(r) ? pp + 1 : pp + m->pp - 1) % m->pp;
}

/* Has a computation somebody to send to, or to receive from? */
static bool has_peer(const struct ep_graph_maker *m, uint32_t compute,
                     enum ep_op_role r)
{
    size_t place = ep_graph_place(m, ep_graph_at(m, compute));

    if (m->pp == 1)
        return false;
    return is_downward(r) ? place + 1 < m->vpp * m->pp : place > 0;
}

static double end_of(const struct ep_graph_op *op)
{
    return op->start + op->dur;
}

/* Sends and receives of before the first and behind the last computation of
   their direction carry nothing. The others go to kept. */
static void drop_outer(struct ep_graph_maker *m, const struct ep_graph_list *of,
                       const struct ep_graph_list *list, bool send,
                       struct ep_graph_list *kept)
{
    double last_start = 0, first_end = 0;

    for (size_t i = 0; i < of->n; i++) {
        const struct ep_graph_op *op = ep_graph_at(m, of->v[i]);

        if (!i || op->start > last_start)
            last_start = op->start;
        if (!i || end_of(op) < first_end)
            first_end = end_of(op);
    }
    for (size_t i = 0; i < list->n; i++) {
        const struct ep_graph_op *op = ep_graph_at(m, list->v[i]);

        if (!of->n || (send ? end_of(op) < first_end - EPSILON
                            : op->start > last_start + EPSILON))
            m->g->skip[list->v[i]] = true;
        else
            ep_graph_add(kept, list->v[i]);
    }
}

/* The number of the first operation that their seq says is not there. */
static size_t first_hole(const struct ep_graph_maker *m,
                         const struct ep_graph_list *l)
{
    size_t k = 0;

    while (k < l->n && ep_graph_at(m, l->v[k])->seq == (int32_t)k)
        k++;
    return k < l->n && ep_graph_at(m, l->v[k])->seq < 0 ? l->n : k;
}

/* The micro-batch of the k-th computation that has a peer; k if not known. */
static int kth_mb(const struct ep_graph_maker *m,
                  const struct ep_graph_list *of, enum ep_op_role r, size_t k)
{
    size_t seen = 0;

    for (size_t i = 0; i < of->n; i++)
        if (has_peer(m, of->v[i], r) && seen++ == k &&
            ep_graph_at(m, of->v[i])->mb >= 0)
            return ep_graph_at(m, of->v[i])->mb;
    return (int)k;
}

/* There are not as many sends or receives as computations to belong to. */
static int refuse_count(struct ep_graph_maker *m,
                        const struct ep_graph_stage *s, enum ep_op_role r,
                        const struct ep_graph_list *kept, size_t want)
{
    char text[96];

    if (kept->n > want)
        return ep_graph_refuse(
            m, "%s belongs to no computation (%zu for %zu)",
            ep_graph_op_text(ep_graph_at(m, kept->v[kept->n - 1]), m->ops, text,
                             sizeof text),
            kept->n, want);
    return ep_graph_refuse(
        m, "dp=%d,pp=%zu %s mb %d has no partner (pp=%d has %zu %s, not %zu)",
        s->dp, peer_stage(m, (size_t)s->pp, r), ep_op_role_name(opposite(r)),
        kth_mb(m, &s->role[direction(r)], r, first_hole(m, kept)), s->pp,
        kept->n, ep_op_role_name(r), want);
}

/*
 * Give each computation of a direction its send or receive. They are all
 * recorded, or those that carry something, or all but the first receive of
 * the model.
 */
static int match_stream(struct ep_graph_maker *m, struct ep_graph_stage *s,
                        enum ep_op_role r)
{
    const struct ep_graph_list *of = &s->role[direction(r)];
    struct ep_graph_list kept = {.n = 0};
    size_t want = 0, next = 0, first = 0;
    bool all;
    int rc = 0;

    drop_outer(m, of, &s->role[r], is_send(r), &kept);
    for (size_t i = 0; i < of->n; i++)
        want += has_peer(m, of->v[i], r);
    if (!is_send(r) && kept.n + 1 == of->n && kept.n != want &&
        !has_peer(m, of->v[0], r))
        first = 1;
    all = kept.n + first == of->n;
    if (!all && kept.n != want)
        rc = refuse_count(m, s, r, &kept, want);
    for (size_t i = 0; rc == 0 && i < of->n; i++) {
        bool carries = has_peer(m, of->v[i], r);
        uint32_t v = EP_GRAPH_NONE;

        if (i >= first && (all || carries) && next < kept.n)
            v = kept.v[next++];
        if (v != EP_GRAPH_NONE && !carries) {
            m->g->skip[v] = true;
            v = EP_GRAPH_NONE;
        }
        ep_graph_add(&s->of[r], v);
    }
    free(kept.v);
    return rc;
}

/* ==== Pairs ==== */

/* One end, and what it is paired by. */
struct end {
    uint32_t v;     /* the send or receive */
    int32_t mb;     /* of its computation; -1: not all are known */
    uint32_t order; /* in its stream */
    size_t place;   /* of the receiving computation in the model */
};

static int compare_ends(const void *a, const void *b)
{
    const struct end *x = a, *y = b;

    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    if (x->mb != y->mb)
        return x->mb < y->mb ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

/* The ends of a stream; returns how many. *known: have all of them an mb? */
static size_t list_ends(const struct ep_graph_maker *m,
                        const struct ep_graph_stage *s, enum ep_op_role r,
                        struct end *end, bool *known)
{
    const struct ep_graph_list *of = &s->role[direction(r)];
    size_t n = 0;

    for (size_t i = 0; i < of->n; i++) {
        const struct ep_graph_op *op = ep_graph_at(m, of->v[i]);
        size_t place = ep_graph_place(m, op);

        if (s->of[r].v[i] == EP_GRAPH_NONE)
            continue;
        if (is_send(r))
            place = is_downward(r) ? place + 1 : place - 1;
        *known = *known && op->mb >= 0;
        end[n] = (struct end){s->of[r].v[i], op->mb, (uint32_t)n, place};
        n++;
    }
    return n;
}

static int refuse_single(struct ep_graph_maker *m, const struct end *e)
{
    struct ep_graph_op op = *ep_graph_at(m, e->v);
    char text[96];

    if (e->mb >= 0)
        op.mb = e->mb;
    return ep_graph_refuse(m, "%s has no partner",
                           ep_graph_op_text(&op, m->ops, text, sizeof text));
}

static int pair_ends(struct ep_graph_maker *m, const struct end *out,
                     size_t nout, const struct end *in, size_t nin)
{
    for (size_t i = 0; i < nout || i < nin; i++) {
        if (i >= nin)
            return refuse_single(m, &out[i]);
        if (i >= nout)
            return refuse_single(m, &in[i]);
        if (out[i].place != in[i].place || out[i].mb != in[i].mb)
            return refuse_single(m, compare_ends(&out[i], &in[i]) < 0 ? &out[i]
                                                                      : &in[i]);
        ep_graph_begin_group(m, false);
        ep_graph_join(m, out[i].v);
        ep_graph_join(m, in[i].v);
    }
    return 0;
}

/* The sends of a stage with the receives of the stage that they go to. */
static int pair_stream(struct ep_graph_maker *m, const struct ep_graph_stage *s,
                       enum ep_op_role r)
{
    const struct ep_graph_stage *peer =
        &m->stage[(size_t)s->dp * m->pp + peer_stage(m, (size_t)s->pp, r)];
    enum ep_op_role back = opposite(r);
    struct end *out = ep_calloc(s->of[r].n, sizeof *out);
    struct end *in = ep_calloc(peer->of[back].n, sizeof *in);
    bool known = true;
    size_t nout = list_ends(m, s, r, out, &known);
    size_t nin = list_ends(m, peer, back, in, &known);
    int rc;

    for (size_t i = 0; !known && i < nout; i++)
        out[i].mb = -1;
    for (size_t i = 0; !known && i < nin; i++)
        in[i].mb = -1;
    qsort(out, nout, sizeof *out, compare_ends);
    qsort(in, nin, sizeof *in, compare_ends);
    rc = pair_ends(m, out, nout, in, nin);
    free(out);
    free(in);
    return rc;
}

int ep_graph_match(struct ep_graph_maker *m)
{
    size_t n = m->dp * m->pp;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < n; i++)
        for (int r = EP_OP_FORWARD_SEND;
             rc == 0 && r <= (int)EP_OP_BACKWARD_RECV; r++)
            rc = match_stream(m, &m->stage[i], (enum ep_op_role)r);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = pair_stream(m, &m->stage[i], EP_OP_FORWARD_SEND);
        if (rc == 0)
            rc = pair_stream(m, &m->stage[i], EP_OP_BACKWARD_SEND);
    }
    return rc;
}
