/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - see graph.h and graph_impl.h. */
#include "config.h"

#include "replay/graph.h"

#include "base/mem.h"
#include "replay/graph_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ==== Lists ==== */

void ep_graph_add(struct ep_graph_list *l, uint32_t v)
{
    l->v = ep_grow(l->v, &l->cap, l->n + 1, sizeof *l->v);
    l->v[l->n++] = v;
}

void ep_graph_edge(struct ep_graph_maker *m, uint32_t from, uint32_t to)
{
    size_t cap = m->edges_cap;

    m->from = ep_grow(m->from, &cap, m->edges + 1, sizeof *m->from);
    m->to = ep_grow(m->to, &m->edges_cap, m->edges + 1, sizeof *m->to);
    m->from[m->edges] = from;
    m->to[m->edges++] = to;
}

void ep_graph_begin_group(struct ep_graph_maker *m, bool sync)
{
    m->group_at = ep_grow(m->group_at, &m->groups_cap, m->groups + 2,
                          sizeof *m->group_at);
    m->sync = ep_grow(m->sync, &m->sync_cap, m->groups + 1, sizeof *m->sync);
    m->sync[m->groups] = sync;
    m->group_at[m->groups++] = (uint32_t)m->members;
    m->group_at[m->groups] = (uint32_t)m->members;
}

void ep_graph_join(struct ep_graph_maker *m, uint32_t v)
{
    m->member =
        ep_grow(m->member, &m->members_cap, m->members + 1, sizeof *m->member);
    m->member[m->members++] = v;
    m->group_at[m->groups] = (uint32_t)m->members;
}

void ep_graph_chain(struct ep_graph_maker *m, const struct ep_graph_list *l)
{
    for (size_t i = 1; i < l->n; i++)
        ep_graph_edge(m, l->v[i - 1], l->v[i]);
}

/* ==== Messages ==== */

int ep_graph_refuse(const struct ep_graph_maker *m, const char *fmt, ...)
{
    char text[200];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return ep_error_set(m->err, EP_EFORMAT, "cannot replay step %lld: %s",
                        m->step, text);
}

const char *ep_graph_op_text(const struct ep_graph_op *op,
                             const struct ep_ops *ops, char *dst, size_t cap)
{
    const char *name = ep_ops_name(ops, (size_t)op->type);
    char shown[48], which[24] = "";

    if (op->mb >= 0)
        (void)snprintf(which, sizeof which, " mb %d", op->mb);
    else if (op->seq >= 0)
        (void)snprintf(which, sizeof which, " seq %d", op->seq);
    (void)snprintf(dst, cap, "dp=%d,pp=%d %s%s", op->dp, op->pp,
                   ep_escape(shown, sizeof shown, name, strlen(name)), which);
    return dst;
}

/* ==== Stages ==== */

/* An operation, and what it is put in order by. */
struct item {
    uint32_t v;
    const struct ep_graph_op *op;
};

static int compare_items(const void *a, const void *b)
{
    const struct item *ia = a, *ib = b;
    const struct ep_graph_op *x = ia->op, *y = ib->op;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->seq != y->seq)
        return x->seq < y->seq ? -1 : 1;
    if (x->type != y->type)
        return x->type < y->type ? -1 : 1;
    return (ia->v > ib->v) - (ia->v < ib->v);
}

static void set_sizes(struct ep_graph_maker *m)
{
    m->vpp = 1;
    for (size_t i = 0; i < m->g->n; i++) {
        const struct ep_graph_op *op = &m->g->op[i];

        if ((size_t)op->dp >= m->dp)
            m->dp = (size_t)op->dp + 1;
        if ((size_t)op->pp >= m->pp)
            m->pp = (size_t)op->pp + 1;
        if ((op->role == EP_OP_FORWARD || op->role == EP_OP_BACKWARD) &&
            op->chunk >= (int32_t)m->vpp)
            m->vpp = (size_t)op->chunk + 1;
    }
}

/* Deal the operations out to the lists of their stages. */
static void fill_stages(struct ep_graph_maker *m)
{
    size_t n = m->g->n;
    struct item *item = ep_calloc(n, sizeof *item);

    m->stage = ep_calloc(m->dp * m->pp, sizeof *m->stage);
    for (size_t i = 0; i < m->dp * m->pp; i++) {
        m->stage[i].dp = (int32_t)(i / m->pp);
        m->stage[i].pp = (int32_t)(i % m->pp);
    }
    for (size_t i = 0; i < n; i++)
        item[i] = (struct item){(uint32_t)i, &m->g->op[i]};
    qsort(item, n, sizeof *item, compare_items);
    for (size_t i = 0; i < n; i++) {
        const struct ep_graph_op *op = item[i].op;
        struct ep_graph_stage *s =
            &m->stage[(size_t)op->dp * m->pp + (size_t)op->pp];

        ep_graph_add(&s->role[op->role], item[i].v);
        if (op->role <= EP_OP_COMPUTE)
            ep_graph_add(&s->chain, item[i].v);
    }
    free(item);
}

static void free_maker(struct ep_graph_maker *m)
{
    for (size_t i = 0; m->stage && i < m->dp * m->pp; i++) {
        for (int r = 0; r < EP_OP_ROLES; r++) {
            free(m->stage[i].role[r].v);
            free(m->stage[i].of[r].v);
        }
        free(m->stage[i].chain.v);
    }
    free(m->stage);
    free(m->from);
    free(m->to);
    free(m->group_at);
    free(m->member);
    free(m->sync);
}

/* ==== In an order in which they can run ==== */

/* While the units are put in order. */
struct sorter {
    uint32_t *unit;    /* [n] the unit of an operation, EP_GRAPH_NONE */
    uint32_t *first;   /* [units + 1] where its members are in all */
    uint32_t *all;     /* [n] members by unit */
    uint32_t *open;    /* [units] edges that have not been satisfied */
    uint32_t *next_at; /* [n + 1] */
    uint32_t *next;    /* [edges] who waits for an operation */
    uint32_t *queue;   /* [units] */
    size_t units, done;
};

/* What waits for each (ends), given who it waits for (keys), as rows. */
static void make_rows(const uint32_t *keys, const uint32_t *ends, size_t edges,
                      size_t n, uint32_t *at, uint32_t *row)
{
    for (size_t e = 0; e < edges; e++)
        at[keys[e] + 1]++;
    for (size_t i = 0; i < n; i++)
        at[i + 1] += at[i];
    for (size_t e = edges; e-- > 0;)
        row[--at[keys[e] + 1]] = ends[e];
    /* the loop took at[k + 1] to where row k begins: shift back */
    for (size_t i = 0; i < n; i++)
        at[i] = at[i + 1];
    at[n] = (uint32_t)edges;
}

/* Groups first, then each operation that is in none. */
static void make_units(const struct ep_graph_maker *m, struct sorter *s)
{
    const struct ep_graph *g = m->g;
    uint32_t k = 0;

    for (size_t v = 0; v < g->n; v++)
        s->unit[v] = EP_GRAPH_NONE;
    for (size_t i = 0; i < m->groups; i++) {
        s->first[s->units] = k;
        for (size_t j = m->group_at[i]; j < m->group_at[i + 1]; j++) {
            s->unit[m->member[j]] = (uint32_t)s->units;
            s->all[k++] = m->member[j];
        }
        s->units++;
    }
    for (size_t v = 0; v < g->n; v++) {
        if (g->skip[v] || s->unit[v] != EP_GRAPH_NONE)
            continue;
        s->first[s->units] = k;
        s->unit[v] = (uint32_t)s->units++;
        s->all[k++] = (uint32_t)v;
    }
    s->first[s->units] = k;
}

static void run_queue(const struct ep_graph_maker *m, struct sorter *s)
{
    size_t tail = 0;

    for (size_t e = 0; e < m->edges; e++)
        s->open[s->unit[m->to[e]]]++;
    for (size_t u = 0; u < s->units; u++)
        if (!s->open[u])
            s->queue[tail++] = (uint32_t)u;
    while (s->done < tail) {
        uint32_t u = s->queue[s->done++];

        for (uint32_t i = s->first[u]; i < s->first[u + 1]; i++)
            for (uint32_t j = s->next_at[s->all[i]];
                 j < s->next_at[s->all[i] + 1]; j++)
                if (--s->open[s->unit[s->next[j]]] == 0)
                    s->queue[tail++] = s->unit[s->next[j]];
    }
}

/* What keeps unit u from running: an operation of it, *to, and what that
   waits for. */
static uint32_t find_blocking(const struct ep_graph *g, const struct sorter *s,
                              uint32_t u, uint32_t *to)
{
    for (uint32_t i = s->first[u]; i < s->first[u + 1]; i++) {
        *to = s->all[i];
        for (uint32_t k = g->dep_at[*to]; k < g->dep_at[*to + 1]; k++)
            if (s->open[s->unit[g->dep[k]]])
                return g->dep[k];
    }
    return EP_GRAPH_NONE; /* not of a unit that is kept from running */
}

/* Go back from a unit that cannot run until one is met again. */
static int refuse_circle(const struct ep_graph_maker *m, const struct sorter *s)
{
    bool *seen = ep_calloc(s->units, sizeof *seen);
    uint32_t u = 0, from = 0, to = 0;
    char a[96], b[96];

    while (!s->open[u])
        u++;
    while (from != EP_GRAPH_NONE && !seen[u]) {
        seen[u] = true;
        from = find_blocking(m->g, s, u, &to);
        if (from != EP_GRAPH_NONE)
            u = s->unit[from];
    }
    if (from == EP_GRAPH_NONE)
        from = to;
    free(seen);
    return ep_graph_refuse(
        m, "%s waits for %s, which waits for it",
        ep_graph_op_text(ep_graph_at(m, to), m->ops, a, sizeof a),
        ep_graph_op_text(ep_graph_at(m, from), m->ops, b, sizeof b));
}

static void store_units(const struct ep_graph_maker *m, const struct sorter *s)
{
    struct ep_graph *g = m->g;
    uint32_t k = 0;

    g->units = s->units;
    g->groups = m->groups;
    g->unit_at = ep_calloc(s->units + 1, sizeof *g->unit_at);
    g->member = ep_calloc(g->n, sizeof *g->member);
    g->waits = ep_calloc(s->units, sizeof *g->waits);
    g->syncs = ep_calloc(s->units, sizeof *g->syncs);
    for (size_t i = 0; i < s->units; i++) {
        uint32_t u = s->queue[i];

        g->unit_at[i] = k;
        g->waits[i] = u < m->groups;
        g->syncs[i] = u < m->groups && m->sync[u];
        for (uint32_t j = s->first[u]; j < s->first[u + 1]; j++)
            g->member[k++] = s->all[j];
    }
    g->unit_at[s->units] = k;
}

static int sort_units(struct ep_graph_maker *m)
{
    struct ep_graph *g = m->g;
    size_t n = g->n, edges = m->edges;
    struct sorter s = {.units = 0};
    int rc = 0;

    g->edges = m->edges;
    g->dep_at = ep_calloc(n + 1, sizeof *g->dep_at);
    g->dep = ep_calloc(edges, sizeof *g->dep);
    make_rows(m->to, m->from, m->edges, g->n, g->dep_at, g->dep);
    s.unit = ep_calloc(n, sizeof *s.unit);
    s.first = ep_calloc(n + 1, sizeof *s.first);
    s.all = ep_calloc(n, sizeof *s.all);
    s.open = ep_calloc(n, sizeof *s.open);
    s.queue = ep_calloc(n, sizeof *s.queue);
    s.next_at = ep_calloc(n + 1, sizeof *s.next_at);
    s.next = ep_calloc(edges, sizeof *s.next);
    make_rows(m->from, m->to, m->edges, g->n, s.next_at, s.next);
    make_units(m, &s);
    run_queue(m, &s);
    if (s.done < s.units)
        rc = refuse_circle(m, &s);
    else
        store_units(m, &s);
    free(s.unit);
    free(s.first);
    free(s.all);
    free(s.open);
    free(s.queue);
    free(s.next_at);
    free(s.next);
    return rc;
}

/* ==== All of it ==== */

int ep_graph_build(struct ep_graph *g, const struct ep_graph_op *op, size_t n,
                   const struct ep_ops *ops, int64_t step, struct ep_error *err)
{
    struct ep_graph_maker m = {
        .g = g, .ops = ops, .step = (long long)step, .err = err};
    int rc;

    *g = (struct ep_graph){.n = n};
    g->op = ep_calloc(n, sizeof *g->op);
    g->skip = ep_calloc(n, sizeof *g->skip);
    if (n)
        memcpy(g->op, op, n * sizeof *op);
    set_sizes(&m);
    fill_stages(&m);
    rc = ep_graph_match(&m);
    if (rc == 0)
        rc = ep_graph_order_stages(&m);
    if (rc == 0)
        rc = ep_graph_group(&m);
    if (rc == 0)
        rc = sort_units(&m);
    free_maker(&m);
    if (rc < 0)
        ep_graph_free(g);
    return rc;
}

void ep_graph_free(struct ep_graph *g)
{
    free(g->op);
    free(g->skip);
    free(g->dep_at);
    free(g->dep);
    free(g->unit_at);
    free(g->member);
    free(g->waits);
    free(g->syncs);
    *g = (struct ep_graph){.n = 0};
}
