/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_impl.h - what the files of graph.h share while a graph is built.
 *
 * graph.c has the lists and the order in which the operations run,
 * graph_stage.c what waits for what in a stage, graph_pairs.c sends and
 * receives, graph_groups.c what waits for each other.
 */
#ifndef EP_REPLAY_GRAPH_IMPL_H
#define EP_REPLAY_GRAPH_IMPL_H

#include "replay/graph.h"

/* A list of operations: numbers into graph.op. */
struct ep_graph_list {
    uint32_t *v;
    size_t n, cap;
};

/* One stage of one data-parallel rank; lists are in order of start. */
struct ep_graph_stage {
    int32_t dp, pp;
    struct ep_graph_list role[EP_OP_ROLES];
    struct ep_graph_list chain; /* all computation */
    /* [computation] the send or receive that belongs to each computation of
       a direction, EP_GRAPH_NONE for none: by role of the send or receive */
    struct ep_graph_list of[EP_OP_ROLES];
};

struct ep_graph_maker {
    struct ep_graph *g;
    const struct ep_ops *ops;
    long long step;
    struct ep_error *err;
    size_t dp, pp, vpp; /* sizes */
    bool overlapped;
    struct ep_graph_stage *stage; /* [dp][pp] */
    /* edges as they come: to waits for from */
    uint32_t *from, *to;
    size_t edges, edges_cap;
    /* groups as they come */
    uint32_t *group_at, *member; /* group_at[0] is 0 */
    bool *sync;
    size_t groups, groups_cap, sync_cap, members, members_cap;
};

void ep_graph_add(struct ep_graph_list *l, uint32_t v);
void ep_graph_edge(struct ep_graph_maker *m, uint32_t from, uint32_t to);
/* Add v to the group that was begun last. */
void ep_graph_begin_group(struct ep_graph_maker *m, bool sync);
void ep_graph_join(struct ep_graph_maker *m, uint32_t v);

/* Each of the list waits for the one before; the first for none. */
void ep_graph_chain(struct ep_graph_maker *m, const struct ep_graph_list *l);

int ep_graph_match(struct ep_graph_maker *m) EP_MUST_USE;
int ep_graph_order_stages(struct ep_graph_maker *m) EP_MUST_USE;
int ep_graph_group(struct ep_graph_maker *m) EP_MUST_USE;

/* "cannot replay step N: " and a message; returns EP_EFORMAT. */
int ep_graph_refuse(const struct ep_graph_maker *m, const char *fmt, ...)
    EP_PRINTF(2, 3);

static inline const struct ep_graph_op *
ep_graph_at(const struct ep_graph_maker *m, uint32_t v)
{
    return &m->g->op[v];
}

/* Stage of the whole model, counted over chunks: 0 is the first one. */
static inline size_t ep_graph_place(const struct ep_graph_maker *m,
                                    const struct ep_graph_op *op)
{
    return (size_t)(op->chunk < 0 ? 0 : op->chunk) * m->pp + (size_t)op->pp;
}

#endif
